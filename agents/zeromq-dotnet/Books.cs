using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;

/// Counts of times in buckets whose width is a fixed part of the time: of 3 digits, or 2.
sealed class Histogram
{
    const long Longest = 86400 * Clock.Second;
    readonly int bits, half;
    uint[] counts;

    public Histogram(int digits = 3)
    {
        bits = digits == 3 ? 11 : 8;
        half = 1 << (bits - 1);
        counts = new uint[half * 16];
    }

    public void Record(long value)
    {
        value = Math.Max(0, Math.Min(Longest, value));
        var log = (int)(BitConverter.DoubleToInt64Bits(value) >> 52) - 1023;
        var shift = Math.Max(0, log + 1 - bits);
        var index = shift * half + (int)(value >> shift);
        if (index >= counts.Length) Array.Resize(ref counts, index + half);
        counts[index]++;
    }

    /// [[value, count], ...] of all of them, or null if nothing was counted.
    public static List<long[]> Pairs(IEnumerable<Histogram> all)
    {
        var sums = new SortedDictionary<long, long>();
        foreach (var one in all.Where(one => one != null))
        {
            for (var index = 0; index < one.counts.Length; index++)
            {
                if (one.counts[index] == 0) continue;
                var shift = Math.Max(0, index / one.half - 1);
                var value = ((long)(index - shift * one.half) << shift) + (1L << shift >> 1);
                long before;
                sums.TryGetValue(value, out before);
                sums[value] = before + one.counts[index];
            }
        }
        return sums.Count == 0 ? null : sums.Select(pair => new[] { pair.Key, pair.Value }).ToList();
    }
}

/// What a publisher sent.
struct Total
{
    public long Publisher, Sent, First, End, Offered;
}

/// What a publisher or requester measured.
sealed class SendBook
{
    readonly Window window;
    public readonly long[] Series;
    public readonly Histogram SendLag, OwnLag;
    public long FirstSent = long.MaxValue;
    /// Since the display asked last; -1 if nothing was sent.
    public long OwnLagMost = -1;

    public SendBook(Workload work, Window window)
    {
        this.window = window;
        Series = new long[window.Slices];
        if (work.AtMax) return;
        SendLag = new Histogram();
        OwnLag = new Histogram();
    }

    public void Sent(long intended, long free, long at)
    {
        if (window.Holds(at)) Series[window.Place(at)]++;
        if (OwnLag != null) OwnLagMost = Math.Max(OwnLagMost, at - free);
        if (intended < window.Begin) return;
        FirstSent = Math.Min(FirstSent, at);
        if (OwnLag == null) return;
        SendLag.Record(at - intended);
        OwnLag.Record(at - free);
    }
}

/// Which sequences have come: a bit each.
sealed class Seen
{
    byte[] bytes = new byte[1 << 13];
    public long End { get; private set; }

    /// True if it is new.
    public bool Mark(uint sequence)
    {
        var at = (int)(sequence >> 3);
        if (at >= bytes.Length) Array.Resize(ref bytes, Math.Max(at + 1, 2 * bytes.Length));
        End = Math.Max(End, sequence + 1L);
        var bit = 1 << (int)(sequence & 7);
        var fresh = (bytes[at] & bit) == 0;
        bytes[at] |= (byte)bit;
        return fresh;
    }

    public long Count(long first, long end)
    {
        long count = 0;
        for (var at = first; at < Math.Min(end, End); at++) count += bytes[at >> 3] >> (int)(at & 7) & 1;
        return count;
    }

    /// Raw DEFLATE, in stored blocks: Mono's own compressor is a library that may not be there.
    public string Packed()
    {
        var packed = new MemoryStream();
        var length = (int)((End + 7) / 8);
        for (int at = 0, size; at == 0 || at < length; at += size)
        {
            size = Math.Min(65535, length - at);
            packed.WriteByte((byte)(at + size >= length ? 1 : 0));
            packed.Write(new[] { (byte)size, (byte)(size >> 8), (byte)~size, (byte)(~size >> 8) }, 0, 4);
            packed.Write(bytes, at, size);
            if (size == 0) break;
        }
        return Convert.ToBase64String(packed.ToArray());
    }
}

/// What a subscriber, or the receiving side of a requester, heard of whom, and when.
sealed unsafe class Incoming
{
    public const uint Probe = uint.MaxValue, Ended = uint.MaxValue - 1;
    const long Waited = 5000; // a call that takes longer, ns, has waited

    sealed class Stream
    {
        public readonly Seen Seen = new Seen();
        public long Distinct, Next, LatencyBefore;
        public long Before = -1;
        public bool Heard, Ended;
    }

    readonly Workload work;
    readonly byte* body;
    readonly int first, bodyAt;
    readonly Stream[] streams;
    readonly long stall, most;
    Window window;
    long lastAny, asked, backlog;
    long taken = long.MaxValue;

    public long Expected, Delivered, Duplicated, Reordered, Corrupted, Unidentified, Negative;
    public long Received, Arrived, JitterPairs, StallCount, StallLongest, StallAt;
    public long LastArrival = -1;
    public double JitterSum;
    public int Unheard { get; private set; }
    public long[] Series = new long[0];
    public Histogram[] Slices = new Histogram[0];
    public Histogram Latency, IntendedLatency, ServiceLatency, ReceiveLag;

    public Incoming(Workload work, byte* body, int first, int count)
    {
        this.work = work;
        this.body = body;
        this.first = first;
        bodyAt = work.PayloadBytes >= 32 ? 32 : Math.Min(24, work.PayloadBytes);
        streams = Enumerable.Range(0, count).Select(at => new Stream()).ToArray();
        stall = work.StallNs(count);
        most = work.MostMessages;
        Unheard = count;
    }

    public bool Started { get { return window != null; } }

    public void Start(Window from)
    {
        Series = new long[from.Slices];
        if (work.MeasuresLatency)
        {
            Slices = new Histogram[from.Open ? 1 : from.Slices];
            Latency = new Histogram();
            IntendedLatency = new Histogram();
            ServiceLatency = new Histogram();
            ReceiveLag = new Histogram();
        }
        window = from;
    }

    /// The next message is asked for.
    public void Listens()
    {
        if (!Started || !work.MeasuresLatency) return;
        asked = Native.Time();
        backlog += Math.Max(0, asked - taken);
    }

    /// There was none.
    public void Idle()
    {
        backlog = 0;
        taken = long.MaxValue;
    }

    /// One came. A library does not say whether it had been there before it was asked for: one that it hands over at
    /// once may have waited while this thread saw to those before it.
    public void Take(byte* message, int length, long at)
    {
        if (at - asked > Waited) backlog = 0;
        taken = at;
        var stream = length >= 16 ? StreamOf(*(uint*)(message + 8)) : null;
        if (stream == null || length != work.PayloadBytes) { Damaged(); return; }
        var sequence = *(uint*)(message + 12);
        if (sequence >= Ended) { Mark(stream, sequence); return; }
        var intended = Instant(message);
        if (!Started || intended < window.Start || intended > at + Clock.Second || sequence >= most) { Damaged(); return; }
        var measured = window.Holds(intended);
        Received++;
        if (!stream.Seen.Mark(sequence))
        {
            if (measured) Duplicated++;
            return;
        }
        stream.Distinct++;
        if (sequence >= stream.Next) stream.Next = sequence + 1L;
        else if (measured) Reordered++;
        var sound = work.Verify != "full"
            || Native.memcmp(message + bodyAt, body + bodyAt, (IntPtr)(length - bodyAt)) == 0;
        if (measured)
        {
            LastArrival = at;
            if (!sound) Corrupted++;
        }
        if (window.Holds(at))
        {
            if (measured || !window.Open)
            {
                Arrived++;
                Series[window.Place(at)]++;
            }
            Silence(at);
        }
        if (measured && sound && Latency != null) Measure(stream, message, length, sequence, intended, at);
    }

    /// An instant that a message carries, by this machine's clock.
    long Instant(byte* at) { return *(long*)at - work.AheadNs; }

    Stream StreamOf(uint publisher)
    {
        var slot = (long)publisher - first;
        return slot >= 0 && slot < streams.Length ? streams[slot] : null;
    }

    void Mark(Stream stream, uint sequence)
    {
        if (sequence == Ended) stream.Ended = true;
        else if (!stream.Heard)
        {
            stream.Heard = true;
            Unheard--;
        }
    }

    void Damaged()
    {
        Corrupted++;
        Unidentified++;
    }

    void Measure(Stream stream, byte* message, int length, uint sequence, long intended, long at)
    {
        if (at < intended)
        {
            Negative++;
            return;
        }
        var sent = length >= 24 ? Instant(message + 16) : 0;
        var free = length >= 32 ? Instant(message + 24) : 0;
        var own = length >= 32 && intended <= free && free <= sent ? sent - free : 0;
        var latency = Math.Max(0, at - intended - own);
        Latency.Record(latency);
        IntendedLatency.Record(at - intended);
        if (sent > 0 && sent <= at) ServiceLatency.Record(at - sent);
        if (asked > 0) ReceiveLag.Record(backlog);
        if (stream.Before >= 0 && (work.Competing || stream.Before + 1 == sequence))
        {
            JitterSum += Math.Abs(latency - stream.LatencyBefore);
            JitterPairs++;
        }
        stream.Before = sequence;
        stream.LatencyBefore = latency;
        if (!window.Holds(at)) return;
        var place = window.Place(at);
        if (place >= Slices.Length) return;
        if (Slices[place] == null) Slices[place] = new Histogram(2);
        Slices[place].Record(latency);
    }

    void Silence(long at)
    {
        var from = Math.Max(lastAny, window.Begin);
        lastAny = at;
        if (at - from <= stall) return;
        StallCount++;
        if (at - from <= StallLongest) return;
        StallLongest = at - from;
        StallAt = from - window.Begin;
    }

    /// Whether nothing more can come.
    public bool Complete(Dictionary<long, Total> totals)
    {
        return Enumerable.Range(0, streams.Length).All(at =>
        {
            Total total;
            var all = totals.TryGetValue(first + at, out total) && streams[at].Distinct >= total.Sent;
            return streams[at].Ended || (!work.Competing && all);
        });
    }

    /// Closes the ledger; its client was killed at an instant, or never.
    public void Close(Dictionary<long, Total> totals, long killed)
    {
        for (var at = 0; at < streams.Length; at++)
        {
            Total total;
            if (!totals.TryGetValue(first + at, out total)) continue;
            var unsent = streams[at].Seen.Count(total.Sent, streams[at].Seen.End);
            Corrupted += unsent;
            Unidentified += unsent;
            Delivered += streams[at].Seen.Count(total.First, total.End);
            if (!work.Competing) Expected += total.End - total.First;
        }
        if (Started && !window.Open && !work.Competing) Silence(Math.Max(lastAny, Math.Min(window.End, killed)));
    }

    public IEnumerable<object> SeenBits()
    {
        if (!work.Competing) yield break;
        for (var at = 0; at < streams.Length; at++)
        {
            yield return Json.Map("publisher", first + at, "bits", streams[at].Seen.Packed());
        }
    }
}
