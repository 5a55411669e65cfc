using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Threading;

/// What a client is told, and whom it tells.
interface IRun
{
    Workload Work { get; }
    /// Null before the start.
    Window Window { get; }
    /// Null before the drain.
    Dictionary<long, Total> Totals { get; }
    bool Stopped { get; }
    bool Crashed { get; }
    double SpinCores { get; }
    /// Something may have become true of a client.
    void Look();
}

/// A client on a thread of its own: nothing is shared while a run is on but a few fields that are read.
abstract unsafe class Client
{
    protected const uint Probe = Incoming.Probe, End = Incoming.Ended;

    public readonly string Role;
    public readonly int Id;
    public ISocket Socket;
    public Incoming Incoming;
    /// When it was killed; far away if it was not.
    public long KilledAt = long.MaxValue;
    protected readonly IRun run;
    protected readonly Workload work;
    readonly GCHandle kept;
    /// The message that it sends; its body is that of all.
    protected readonly byte* message;
    protected readonly int length;

    protected Client(IRun run, string role, int id)
    {
        this.run = run;
        work = run.Work;
        Role = role;
        Id = id;
        length = work.PayloadBytes;
        kept = GCHandle.Alloc(Workload.Body(length), GCHandleType.Pinned);
        message = (byte*)kept.AddrOfPinnedObject();
    }

    public virtual bool IsReady { get { return true; } }
    public virtual bool IsDrained { get { return true; } }
    public bool Sends { get { return this is Publisher; } }
    protected bool Alive { get { return !run.Stopped && !run.Crashed; } }

    /// Plays until it is stopped or killed.
    public void Run()
    {
        Play();
        if (!run.Crashed) return;
        KilledAt = Native.Time();
        Socket.Kill();
        Killed();
        run.Look();
    }

    protected abstract void Play();
    protected virtual void Killed() { }
}

/// Sends what is due, when it is due.
class Publisher : Client
{
    Schedule schedule;
    long free, first = -1, end, offered;
    long sent;
    readonly int copies;
    readonly long markerEvery;
    readonly long most;

    public SendBook Book;
    public Pacer Pacer;
    public volatile bool IsDone;

    public Publisher(IRun run, string role, int id) : base(run, role, id)
    {
        if (!work.AtMax) schedule = new Schedule(work, id);
        copies = work.Competing ? work.Subscribers : 1;
        markerEvery = Math.Min(Clock.Second, Math.Max(5 * Clock.Millisecond, work.Publishers * Clock.Millisecond / 10));
        most = work.MostMessages;
    }

    public long Sent { get { return Volatile.Read(ref sent); } }

    public Total Total
    {
        get
        {
            var from = first < 0 ? sent : first;
            return new Total { Publisher = Id, Sent = sent, First = from, End = Math.Max(from, end), Offered = offered };
        }
    }

    /// Writes what the message says of itself, its instants as all hosts mean them.
    protected unsafe void Write(long intended, uint sequence, long at, long from)
    {
        *(long*)message = intended + work.AheadNs;
        *(uint*)(message + 8) = (uint)Id;
        *(uint*)(message + 12) = sequence;
        if (length >= 24) *(long*)(message + 16) = at + work.AheadNs;
        if (length >= 32) *(long*)(message + 24) = from + work.AheadNs;
    }

    protected unsafe void Mark(uint sequence)
    {
        for (var copy = 0; copy < copies; copy++)
        {
            var now = Native.Time();
            Write(now, sequence, now, now);
            Socket.Send(message, length);
        }
    }

    protected override void Play()
    {
        while (Alive && run.Window == null)
        {
            Mark(Probe);
            Rest();
        }
        Publish();
        while (Alive)
        {
            Mark(End);
            Rest();
        }
    }

    void Rest()
    {
        var until = Native.Time() + markerEvery;
        for (long now; Alive && (now = Native.Time()) < until;) Native.SleepUntil(Math.Min(until, now + Clock.Nap));
    }

    protected void Publish()
    {
        var window = run.Window;
        if (window == null) return;
        Book = new SendBook(work, window);
        Pacer = new Pacer(work, run.SpinCores, window.Begin);
        var giveUp = window.Open ? long.MaxValue : window.End + work.DrainNs;
        var now = Native.Time();
        long woke = 0;
        while (Alive && !IsOver(now))
        {
            var intended = schedule == null ? Math.Max(now, window.Start) : window.Start + schedule.Due;
            if (intended > now)
            {
                now = Pacer.Until(Math.Max(intended, woke + work.QuantumNs));
                woke = now;
            }
            else if (now >= giveUp) break;
            else now = Offer(window, intended, now);
        }
        if (!run.Crashed) Finish(long.MaxValue);
    }

    /// Offers a message once; the time after it.
    unsafe long Offer(Window window, long intended, long began)
    {
        var from = Math.Max(intended, free);
        Write(intended, (uint)sent, began, from);
        var taken = Socket.Send(message, length);
        var now = Native.Time();
        if (!taken)
        {
            free = Math.Max(free, now);
            return now;
        }
        Book.Sent(intended, from, began);
        if (intended >= window.Begin)
        {
            if (first < 0) first = sent;
            end = sent + 1;
            offered++;
        }
        Volatile.Write(ref sent, sent + 1);
        if (schedule != null) schedule.Advance();
        free = from + now - began;
        return Accepted(now);
    }

    /// What comes after a send; the time after that.
    protected virtual long Accepted(long now) { return now; }

    /// What it waited for until now was the system.
    protected void Waited(long now) { free = Math.Max(free, now); }

    bool IsOver(long now)
    {
        if (sent >= most) return true;
        if (work.Count > 0) return offered >= work.Count;
        return (schedule == null ? now : run.Window.Start + schedule.Due) >= run.Window.End;
    }

    /// Ends it, with what was due until then and not sent.
    void Finish(long until)
    {
        var window = run.Window;
        while (window != null && schedule != null && window.Start + schedule.Due <= until && !IsOver(0))
        {
            if (window.Start + schedule.Due >= window.Begin) offered++;
            schedule.Advance();
        }
        IsDone = true;
        run.Look();
    }

    protected override void Killed() { if (!IsDone) Finish(KilledAt); }
}

class Subscriber : Client
{
    const int LookEvery = 256;
    volatile bool heard, drained;

    public unsafe Subscriber(IRun run, int id, int first, int count) : base(run, "subscriber", id)
    {
        Incoming = new Incoming(work, message, first, count);
    }

    public override bool IsReady { get { return heard; } }
    public override bool IsDrained { get { return drained; } }

    protected override unsafe void Play()
    {
        var since = 0;
        while (Alive)
        {
            Incoming.Listens();
            int size;
            var data = Socket.Receive(out size);
            if (data == null) Incoming.Idle();
            else
            {
                var now = Native.Time();
                if (!Incoming.Started && run.Window != null) Incoming.Start(run.Window);
                Incoming.Take(data, size, now);
                if (++since < LookEvery && heard && run.Totals == null) continue;
            }
            since = 0;
            Tell();
        }
        if (!Incoming.Started && run.Window != null) Incoming.Start(run.Window);
    }

    void Tell()
    {
        if (!heard && Incoming.Unheard == 0)
        {
            heard = true;
            run.Look();
        }
        if (!drained && run.Totals != null && Incoming.Complete(run.Totals))
        {
            drained = true;
            run.Look();
        }
    }

    protected override void Killed() { drained = true; }
}

sealed class Requester : Publisher
{
    volatile bool ready;

    public unsafe Requester(IRun run, int id) : base(run, "requester", id)
    {
        Incoming = new Incoming(work, message, id, 1);
    }

    public override bool IsReady { get { return ready; } }

    protected override void Play()
    {
        while (Alive && Incoming.Unheard > 0)
        {
            Mark(Probe);
            Await(Native.Time() + work.DrainNs);
        }
        ready = true;
        run.Look();
        while (Alive && run.Window == null) Native.SleepUntil(Native.Time() + Clock.Millisecond);
        if (run.Window != null) Incoming.Start(run.Window);
        Publish();
        while (Alive) Native.SleepUntil(Native.Time() + Clock.Nap);
    }

    protected override long Accepted(long now)
    {
        now = Await(now + work.DrainNs);
        Waited(now);
        return now;
    }

    /// Waits for a reply; the time when it came, or when it was given up.
    unsafe long Await(long deadline)
    {
        for (;;)
        {
            int size;
            var data = Socket.Receive(out size);
            var now = Native.Time();
            if (data != null) Incoming.Take(data, size, now);
            if (data != null || now >= deadline || !Alive) return now;
        }
    }
}

sealed class Replier : Client
{
    long received;

    public Replier(IRun run, int id) : base(run, "replier", id) { }

    public long Received { get { return Volatile.Read(ref received); } }

    protected override unsafe void Play()
    {
        while (Alive)
        {
            int size;
            if (Socket.Receive(out size) == null) continue;
            Volatile.Write(ref received, received + 1);
            while (!Socket.Return() && Alive) { }
        }
    }
}
