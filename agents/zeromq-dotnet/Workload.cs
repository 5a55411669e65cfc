using System;
using System.Collections.Generic;

/// Lengths of time, ns.
static class Clock
{
    public const long Second = 1000000000, Millisecond = 1000000;
    /// A thread that waits looks about as often, ns.
    public const long Nap = 10 * Millisecond;
}

/// What is asked for, as the protocol has it.
sealed class Workload
{
    const long MostSlices = 3600;
    const double Fastest = 50e6; // messages a second that a ledger has room for where no schedule says how many there are

    public readonly string Pattern, Transport, Arrival, Pacing, Verify;
    public readonly int Publishers, Subscribers, PayloadBytes, Burst;
    public readonly long WarmupNs, DrainNs, QuantumNs, TimeNs, Count;
    /// Messages in 1,000 s; 0 at `max`.
    public readonly long PerKilosecond;
    public readonly ulong Seed;
    public readonly bool Spins;
    /// What is added to this machine's clock in messages, ns.
    public readonly long AheadNs;

    public Workload(Dictionary<string, object> fields, long aheadNs)
    {
        AheadNs = aheadNs;
        Func<string, object> field = name => fields.ContainsKey(name) ? fields[name] : null;
        Func<string, long> number = name => (long)(decimal)(field(name) ?? 0m);
        Pattern = (string)field("pattern");
        Transport = (string)field("transport");
        Arrival = (string)field("arrival");
        Pacing = (string)field("pacing");
        Verify = (string)field("verify");
        Publishers = (int)number("publishers");
        Subscribers = (int)number("subscribers");
        PayloadBytes = (int)number("payload_bytes");
        WarmupNs = number("warmup_ns");
        DrainNs = number("drain_ns");
        QuantumNs = number("pacing_quantum_ns");
        Seed = (ulong)(decimal)(field("seed") ?? 0m);
        Spins = (string)field("receive") == "spin";
        var extent = (Dictionary<string, object>)field("extent");
        if (extent.ContainsKey("count")) Count = (long)(decimal)extent["count"];
        else TimeNs = (long)(decimal)extent["time_ns"];
        PerKilosecond = field("rate") is decimal ? (long)Math.Round((decimal)field("rate") * 1000) : 0;
        Burst = Arrival.StartsWith("burst:") ? int.Parse(Arrival.Substring(6)) : 1;
    }

    public bool AtMax { get { return PerKilosecond == 0; } }
    public bool Competing { get { return Pattern == "pipeline"; } }
    public bool RoundTrip { get { return Pattern == "request-reply"; } }
    /// Not where latency is the length of a queue.
    public bool MeasuresLatency { get { return !AtMax || RoundTrip; } }
    public double Rate { get { return PerKilosecond / 1000.0; } }

    /// How many messages of one publisher can come, generously.
    public long MostMessages
    {
        get
        {
            var mean = (WarmupNs + TimeNs) / (double)Clock.Second * (AtMax ? Fastest : Rate) + Count;
            return (long)Math.Min(0xfffffffe, mean + 12 * Math.Sqrt(mean) + 64 + Burst);
        }
    }

    /// The silence that counts as a stall, ns.
    public long StallNs(int heard)
    {
        if (AtMax) return Clock.Second / 2;
        var publishers = RoundTrip ? 1 : Math.Max(1, heard);
        var gap = Burst * (Competing ? Subscribers : 1) * (double)Clock.Second / (Rate * publishers);
        return Math.Max(100 * Clock.Millisecond, (long)(20 * gap));
    }

    /// The measured part of a run that starts at an instant; of a count at `max` it has no end.
    public Window From(long start)
    {
        var open = AtMax && Count > 0;
        var length = Count > 0 && !open ? (long)((decimal)Count * 1000 * Clock.Second / PerKilosecond) : TimeNs;
        var finest = Math.Max(10 * Clock.Millisecond, (length + MostSlices - 1) / MostSlices);
        var slice = open ? Clock.Second : Math.Max(finest, Math.Min(Clock.Second, length / 20));
        var slices = open ? MostSlices : Math.Max(1, (length + slice - 1) / slice);
        var begin = start + WarmupNs;
        return new Window(start, begin, open ? long.MaxValue : begin + length, slice, (int)slices);
    }

    /// The bytes that every message carries.
    public static byte[] Body(int length)
    {
        var body = new byte[length];
        var words = new SplitMix64(0x7075626d61726b31);
        for (var at = 0; at < length; at += 8)
        {
            Array.Copy(BitConverter.GetBytes(words.Next()), 0, body, at, Math.Min(8, length - at));
        }
        return body;
    }
}

/// A message belongs to it by its intended time.
sealed class Window
{
    public readonly long Start, Begin, End, Slice;
    public readonly int Slices;

    public Window(long start, long begin, long end, long slice, int slices)
    {
        Start = start;
        Begin = begin;
        End = end;
        Slice = slice;
        Slices = slices;
    }

    public bool Open { get { return End == long.MaxValue; } }
    public bool Holds(long at) { return Begin <= at && at < End; }
    public int Place(long at) { return (int)Math.Min(Slices - 1, (at - Begin) / Slice); }
}

sealed class SplitMix64
{
    ulong state;

    public SplitMix64(ulong state) { this.state = state; }

    public ulong Next()
    {
        state += 0x9e3779b97f4a7c15;
        var word = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
        word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
        return word ^ (word >> 31);
    }
}

/// When the messages of a publisher are due, after the start: from the workload alone.
sealed class Schedule
{
    readonly SplitMix64 random;
    readonly long perKilosecond, period, rest;
    readonly int burst;
    double sum;
    long carried;
    int left;

    public long Due { get; private set; }

    public Schedule(Workload work, int id)
    {
        perKilosecond = work.PerKilosecond;
        if (work.Arrival == "poisson")
        {
            random = new SplitMix64(new SplitMix64(work.Seed ^ ((ulong)id << 32)).Next());
            Advance();
            return;
        }
        burst = left = work.Burst;
        var total = (decimal)burst * 1000 * Clock.Second;
        period = (long)decimal.Floor(total / perKilosecond);
        rest = (long)(total % perKilosecond);
        Due = (long)decimal.Floor((decimal)period * id / work.Publishers);
    }

    /// On to the next message.
    public void Advance()
    {
        if (random != null)
        {
            sum += -Math.Log(1 - (random.Next() >> 11) / 9007199254740992.0) * 1e12 / perKilosecond;
            Due = (long)sum;
            return;
        }
        if (--left > 0) return;
        left = burst;
        carried += rest;
        Due += period;
        if (carried < perKilosecond) return;
        carried -= perKilosecond;
        Due++;
    }
}

/// How a publisher waits for a due time: asleep until shortly before it, then watching the clock, as far as its
/// budget allows. The margin follows the 99th percentile of what waking up takes (Robbins and Monro, 1951).
sealed class Pacer
{
    const double First = 60000, Longest = 200000, Shortest = 2000, Step = 2000, LateOneIn = 100; // ns

    readonly Workload work;
    readonly long from;
    readonly double most;
    double wake = First;

    /// Time awake before due times within the window, ns.
    public long Spent { get; private set; }

    public Pacer(Workload work, double spinCores, long from)
    {
        this.work = work;
        this.from = from;
        most = work.Pacing != "hybrid" || work.AtMax ? 0 : Math.Min(Longest, spinCores / work.Rate * Clock.Second);
    }

    public long Margin { get { return (long)Math.Min(wake, most); } }

    /// Waits until this instant, or for a nap where that is sooner; the time after it.
    public long Until(long due)
    {
        var now = Native.Time();
        var alarm = work.Pacing == "spin" ? now : due - Margin;
        if (alarm > now)
        {
            Native.SleepUntil(Math.Min(alarm, now + Clock.Nap));
            now = Native.Time();
            if (now < alarm) return now;
            wake += now - alarm > wake ? Step * (1 - 1 / LateOneIn) : -Step / LateOneIn;
            wake = Math.Max(Shortest, Math.Min(Longest, wake));
        }
        var awake = now;
        var until = Math.Min(due, now + Clock.Nap);
        while (now < until) now = Native.Time();
        if (awake >= from && awake < until) Spent += until - awake;
        return now;
    }
}
