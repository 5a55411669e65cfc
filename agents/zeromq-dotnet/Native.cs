using System;
using System.Diagnostics;
using System.Runtime.InteropServices;
using System.Text;

/// What is asked of the kernel and of the C library.
static unsafe class Native
{
    const string LibC = "libc.so.6";
    const int Monotonic = 1, ProcessCpu = 2, AbsoluteTime = 1, TimerSlack = 29, Now = 2, Global = 0x100;

    struct TimeSpec { public long Seconds, Nanoseconds; }

    [DllImport(LibC)] static extern int clock_gettime(int clock, out TimeSpec time);
    [DllImport(LibC)] static extern int clock_nanosleep(int clock, int flags, ref TimeSpec until, IntPtr left);
    [DllImport(LibC)] static extern int getrusage(int who, long* usage);
    [DllImport(LibC)] static extern int prctl(int option, IntPtr value);
    [DllImport(LibC)] static extern int sched_setaffinity(int thread, IntPtr size, byte* mask);
    [DllImport(LibC)] static extern int dup(int fd);
    [DllImport(LibC)] static extern int dup2(int from, int to);
    [DllImport(LibC)] static extern IntPtr write(int fd, byte* data, IntPtr length);
    [DllImport(LibC)] static extern IntPtr dlopen(string path, int flags);
    [DllImport(LibC)] static extern IntPtr dlerror();
    [DllImport(LibC)] public static extern void _exit(int status);
    [DllImport(LibC)] public static extern int getpid();
    [DllImport(LibC)] public static extern int memcmp(byte* one, byte* other, IntPtr length);

    static readonly bool exact = Stopwatch.Frequency == Clock.Second;
    static int output = 1;

    /// CLOCK_MONOTONIC, ns. Stopwatch is that on .NET; Mono's counts in steps of 100.
    public static long Time() { return exact ? Stopwatch.GetTimestamp() : Read(Monotonic); }

    static long Read(int clock)
    {
        TimeSpec time;
        clock_gettime(clock, out time);
        return time.Seconds * Clock.Second + time.Nanoseconds;
    }

    public static void SleepUntil(long at)
    {
        var until = new TimeSpec { Seconds = at / Clock.Second, Nanoseconds = at % Clock.Second };
        clock_nanosleep(Monotonic, AbsoluteTime, ref until, IntPtr.Zero);
    }

    /// Timers of this thread to the nanosecond, and its processors.
    public static bool Prepare(int[] cpus)
    {
        prctl(TimerSlack, (IntPtr)1);
        if (cpus.Length == 0) return true;
        var mask = stackalloc byte[1024];
        for (var at = 0; at < 1024; at++) mask[at] = 0;
        foreach (var cpu in cpus) mask[cpu / 8 % 1024] |= (byte)(1 << cpu % 8);
        return sched_setaffinity(0, (IntPtr)1024, mask) == 0;
    }

    /// Processor time, its part in user mode, switches of both kinds; so far.
    public static long[] Usage()
    {
        var usage = stackalloc long[18];
        getrusage(0, usage);
        return new[] { Read(ProcessCpu), usage[0] * Clock.Second + usage[1] * 1000, usage[16], usage[17] };
    }

    /// Keeps standard output for the protocol: what a library prints goes to standard error.
    public static void TakeOutput()
    {
        output = dup(1);
        dup2(2, 1);
    }

    public static void Say(string line)
    {
        var bytes = Encoding.UTF8.GetBytes(line + "\n");
        fixed (byte* data = bytes)
        {
            for (var at = 0; at < bytes.Length;)
            {
                at += Math.Max(0, (int)write(output, data + at, (IntPtr)(bytes.Length - at)));
            }
        }
    }

    /// Loads a library, so that it is the one that is found by its soname; null, or what is wrong.
    public static string Load(string path)
    {
        return dlopen(path, Now | Global) != IntPtr.Zero ? null : Marshal.PtrToStringAnsi(dlerror());
    }
}
