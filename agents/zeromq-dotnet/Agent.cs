using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Runtime;
using System.Text;
using System.Threading;

/// What the runtime says of itself; what the compiler's reference assemblies do not know is asked for by name.
static class Runtime
{
    static readonly Func<TimeSpan> paused = Find<Func<TimeSpan>>("GetTotalPauseDuration");
    static readonly Func<bool, long> allocated = Find<Func<bool, long>>("GetTotalAllocatedBytes", typeof(bool));

    static T Find<T>(string name, params Type[] parameters) where T : class
    {
        var method = typeof(GC).GetMethod(name, parameters);
        return method == null ? null : Delegate.CreateDelegate(typeof(T), method) as T;
    }

    public static bool TellsPauses { get { return paused != null; } }
    public static long PausedNs { get { return paused == null ? 0 : paused().Ticks * 100; } }
    public static long? AllocatedBytes { get { return allocated == null ? (long?)null : allocated(false); } }
    public static long Collections { get { return GC.CollectionCount(0); } }

    public static string Name
    {
        get
        {
            var mono = Type.GetType("Mono.Runtime");
            if (mono == null) return ".NET " + Environment.Version;
            var name = mono.GetMethod("GetDisplayName", BindingFlags.NonPublic | BindingFlags.Static);
            return "Mono " + (name == null ? "" : (string)name.Invoke(null, null));
        }
    }

    /// How it compiles and collects.
    public static string Flags
    {
        get
        {
            var given = new List<string>();
            foreach (var name in new[] { "TieredCompilation", "TieredPGO" })
            {
                var value = Environment.GetEnvironmentVariable("DOTNET_" + name) ?? AppContext.GetData("System.Runtime." + name);
                if (Type.GetType("Mono.Runtime") == null) given.Add(name + "=" + (value ?? "on, the default"));
            }
            var mono = Environment.GetEnvironmentVariable("MONO_ENV_OPTIONS");
            if (mono != null) given.Add(mono);
            given.Add((GCSettings.IsServerGC ? "server" : "workstation") + " collector, " + GCSettings.LatencyMode);
            return "mcs -optimize+; " + string.Join("; ", given);
        }
    }
}

/// What the process has used so far.
sealed class Reading
{
    public readonly long At = Native.Time(), Collections = Runtime.Collections;
    public readonly long? Allocated = Runtime.AllocatedBytes;
    public readonly long[] Used = Native.Usage();
    public readonly long Rss, Uss;

    public Reading()
    {
        foreach (var line in File.ReadLines("/proc/self/smaps_rollup").Where(line => line.EndsWith(" kB")))
        {
            var bytes = long.Parse(line.Split(' ').Reverse().ElementAt(1)) * 1024;
            if (line.StartsWith("Rss:")) Rss = bytes;
            if (line.StartsWith("Private_Clean:") || line.StartsWith("Private_Dirty:")) Uss += bytes;
        }
    }
}

/// Gaps: how many, the longest, and when it was.
sealed class Gaps
{
    public long Count, Total, Longest, LongestAt;

    public void Add(long from, long length)
    {
        Count++;
        Total += length;
        if (length <= Longest) return;
        Longest = length;
        LongestAt = from;
    }

    public Dictionary<string, object> Figures(long begin)
    {
        return Json.Map("count", Count, "longest_ns", Longest, "longest_at_ns", Math.Max(0, LongestAt - begin));
    }
}

/// One run: its clients, and what becomes true of them.
sealed class Run : IRun
{
    const long WatchEvery = 50 * Clock.Millisecond, Pause = 150 * Clock.Millisecond;

    readonly IBinding binding;
    readonly Dictionary<string, object> order;
    readonly List<Client> clients = new List<Client>();
    readonly List<Thread> threads = new List<Thread>();
    readonly HashSet<string> said = new HashSet<string>();
    readonly List<Reading> readings = new List<Reading>();
    readonly List<object> remarks = new List<object>();
    readonly Gaps pauses = new Gaps(), collections = new Gaps();
    volatile Window window;
    volatile Dictionary<long, Total> totals;
    volatile bool stopped, crashed;
    long deadline = long.MaxValue;

    public Workload Work { get; private set; }
    public Window Window { get { return window; } }
    public Dictionary<long, Total> Totals { get { return totals; } }
    public bool Stopped { get { return stopped; } }
    public bool Crashed { get { return crashed; } }
    public double SpinCores { get; private set; }

    public Run(Workload work, Dictionary<string, object> order, IBinding binding)
    {
        Work = work;
        this.order = order;
        this.binding = binding;
    }

    IEnumerable<Publisher> Publishers { get { return clients.OfType<Publisher>(); } }
    IEnumerable<Incoming> Incomings { get { return clients.Select(client => client.Incoming).Where(one => one != null); } }

    static int[] Cpus(object list) { return ((List<object>)list ?? new List<object>()).Select(cpu => (int)(decimal)cpu).ToArray(); }

    public void Prepare()
    {
        var endpoints = new List<object>();
        // Who connects may be named before who binds.
        foreach (var one in ((List<object>)order["clients"]).Cast<Dictionary<string, object>>().OrderBy(one => !one.ContainsKey("bind")))
        {
            Func<string, object> field = name => one.ContainsKey(name) ? one[name] : null;
            var role = (string)one["role"];
            var id = (int)(decimal)one["id"];
            var client = role == "publisher" ? new Publisher(this, role, id)
                : role == "requester" ? new Requester(this, id)
                : role == "replier" ? new Replier(this, id)
                : (Client)new Subscriber(this, id, (int)(decimal)one["hears_first"], (int)(decimal)one["hears_count"]);
            var connect = ((List<object>)field("connect") ?? new List<object>()).Cast<string>();
            client.Socket = binding.Open(role, (string)field("bind"), connect);
            if (field("bind") != null) endpoints.Add(Json.Map("role", role, "id", id, "endpoint", client.Socket.Endpoint));
            clients.Add(client);
        }
        SpinCores = (double)((order.ContainsKey("spin_cores") ? (decimal?)order["spin_cores"] : null) ?? 0) / Math.Max(1, Publishers.Count());
        Once("bound", "endpoints", endpoints);
        foreach (var client in clients) Begin(client);
        Look();
    }

    void Begin(Client client)
    {
        var name = client.Sends ? "publisher_cpus" : "subscriber_cpus";
        var cpus = Cpus(order.ContainsKey(name) ? order[name] : null);
        var thread = new Thread(() =>
        {
            try
            {
                if (!Native.Prepare(cpus)) lock (remarks) remarks.Add(client.Role + " " + client.Id + " was not pinned to its processors");
                client.Run();
            }
            catch (Exception error) { Agent.Fatal(client.Role + " " + client.Id + ": " + error.Message); }
        });
        thread.IsBackground = true;
        threads.Add(thread);
        thread.Start();
    }

    void Once(string word, params object[] fields) { lock (said) if (said.Add(word)) Agent.Say(word, fields); }

    public void Start(long at)
    {
        new Reading(); // compiled before it counts
        window = Work.From(at);
        var keeper = new Thread(Keep) { IsBackground = true };
        keeper.Start();
    }

    /// Looks at the clock all the time: for pauses, readings, progress and the end of the drain.
    void Keep()
    {
        Native.Prepare(new int[0]);
        long last = Native.Time(), progress = window.Start + Clock.Second, paused = Runtime.PausedNs;
        while (!stopped)
        {
            var now = Native.Time();
            var edge = readings.Count == 0 ? window.Begin : readings.Count == 1 ? window.End : long.MaxValue;
            var next = Math.Min(Math.Min(last + WatchEvery, edge), Math.Min(progress, Volatile.Read(ref deadline)));
            if (next > now) Native.SleepUntil(next);
            now = Native.Time();
            Watch(last, now, ref paused);
            last = now;
            if (now >= edge)
            {
                lock (readings) readings.Add(new Reading());
                last = Native.Time(); // to read took its time
            }
            if (now >= progress) Progress(ref progress);
            if (now >= Volatile.Read(ref deadline))
            {
                Once("drained");
                Volatile.Write(ref deadline, long.MaxValue);
            }
        }
    }

    void Watch(long last, long now, ref long paused)
    {
        long from = Math.Max(last, window.Begin), to = Math.Min(now, window.End), before = paused;
        paused = Runtime.PausedNs;
        if (to - from >= Pause) pauses.Add(from, to - from - WatchEvery);
        if (to > from && paused > before) collections.Add(from, paused - before);
    }

    void Progress(ref long progress)
    {
        progress += Clock.Second;
        var books = Publishers.Select(publisher => publisher.Book).Where(book => book != null).ToList();
        var lag = books.Select(book => Interlocked.Exchange(ref book.OwnLagMost, -1)).DefaultIfEmpty(-1).Max();
        var received = Incomings.Sum(one => Volatile.Read(ref one.Received)) + clients.OfType<Replier>().Sum(one => one.Received);
        var fields = new List<object> { "sent", Publishers.Sum(one => one.Sent), "received", received };
        if (lag >= 0) fields.AddRange(new object[] { "own_lag_max_ns", lag });
        Agent.Say("progress", fields.ToArray());
    }

    /// Says what has become true.
    public void Look()
    {
        if (stopped) return;
        if (clients.All(client => client.IsReady)) Once("ready");
        if (window != null && Publishers.Any() && Publishers.All(one => one.IsDone)) Once("sent", "publishers", Totalled());
        if (totals != null && (crashed || clients.All(client => client.IsDrained))) Once("drained");
    }

    List<object> Totalled()
    {
        return Publishers.Select(one => one.Total).Select(one => (object)Json.Map("publisher", one.Publisher, "sent", one.Sent,
            "window_first", one.First, "window_end", one.End, "offered", one.Offered)).ToList();
    }

    public void Drain(Dictionary<string, object> command)
    {
        var list = ((List<object>)command["publishers"]).Cast<Dictionary<string, object>>();
        totals = list.Select(one => new Total
        {
            Publisher = (long)(decimal)one["publisher"],
            Sent = (long)(decimal)one["sent"],
            First = (long)(decimal)one["window_first"],
            End = (long)(decimal)one["window_end"]
        }).ToDictionary(one => one.Publisher);
        Volatile.Write(ref deadline, (long)(decimal)command["deadline_ns"]);
        Look();
    }

    public void Crash() { crashed = true; }

    public void Stop()
    {
        lock (said) stopped = true;
        foreach (var thread in threads) thread.Join(2000);
        lock (readings) while (readings.Count < 2 || (window != null && window.Open && readings.Count < 3)) readings.Add(new Reading());
        Agent.Say("result", Result());
    }

    Dictionary<string, object> Usage(Reading first, Reading last)
    {
        var used = last.Used.Zip(first.Used, (after, before) => (object)(after - before)).ToArray();
        return Json.Map("wall_ns", last.At - first.At, "cpu_ns", used[0], "user_ns", used[1], "voluntary_switches", used[2],
            "involuntary_switches", used[3], "rss_bytes", readings.Select(one => one.Rss).ToArray(), "uss_bytes", readings.Select(one => one.Uss).ToArray());
    }

    static long[] Sum(IEnumerable<long[]> all)
    {
        var sums = new List<long>();
        foreach (var one in all)
        {
            while (sums.Count < one.Length) sums.Add(0);
            for (var at = 0; at < one.Length; at++) sums[at] += one[at];
        }
        return sums.ToArray();
    }

    object Flow()
    {
        foreach (var requester in clients.OfType<Requester>())
        {
            requester.Incoming.Close(new Dictionary<long, Total> { { requester.Id, requester.Total } }, requester.KilledAt);
        }
        foreach (var one in clients.OfType<Subscriber>().Where(one => totals != null)) one.Incoming.Close(totals, one.KilledAt);
        var heard = Incomings.ToList();
        var books = Publishers.Select(one => one.Book).Where(one => one != null).ToList();
        var pacers = Publishers.Select(one => one.Pacer).Where(one => one != null).ToList();
        Func<Func<Incoming, Histogram>, object> received = pick => Histogram.Pairs(heard.Select(pick));
        Func<Func<SendBook, Histogram>, object> lag = pick => Histogram.Pairs(books.Select(pick));
        var slices = heard.Select(one => one.Slices.Length).DefaultIfEmpty(0).Max();
        var stalled = heard.OrderByDescending(one => one.StallLongest).FirstOrDefault();
        var first = books.Select(one => one.FirstSent).DefaultIfEmpty(long.MaxValue).Min();
        var last = heard.Select(one => one.LastArrival).DefaultIfEmpty(-1).Max();
        var length = window == null || window.Open ? Clock.Second : window.End - window.Begin;
        return Json.Map(
            "publishers", Totalled(),
            "ledger", Json.Map(
                "expected", heard.Sum(one => one.Expected), "delivered", heard.Sum(one => one.Delivered),
                "duplicated", heard.Sum(one => one.Duplicated), "reordered", heard.Sum(one => one.Reordered),
                "corrupted", heard.Sum(one => one.Corrupted), "unidentified", heard.Sum(one => one.Unidentified),
                "negative", heard.Sum(one => one.Negative)),
            "arrived", heard.Sum(one => one.Arrived),
            "first_sent_ns", first == long.MaxValue ? null : (object)first,
            "last_arrival_ns", last < 0 ? null : (object)last,
            "histograms", Json.Map(
                "latency", received(one => one.Latency), "intended_latency", received(one => one.IntendedLatency),
                "service_latency", received(one => one.ServiceLatency), "receive_lag", received(one => one.ReceiveLag),
                "send_lag", lag(one => one.SendLag), "own_lag", lag(one => one.OwnLag)),
            "pacing", pacers.Count == 0 ? null : Json.Map("budget_cores", SpinCores * pacers.Count,
                "spent_cores", pacers.Sum(one => one.Spent) / (double)length, "margin_ns", pacers.Max(one => one.Margin)),
            "jitter_sum_ns", heard.Sum(one => one.JitterSum), "jitter_pairs", heard.Sum(one => one.JitterPairs),
            "series", Json.Map("slice_ns", window == null ? 0 : window.Slice,
                "sent", Sum(books.Select(one => one.Series)), "delivered", Sum(heard.Select(one => one.Series)),
                "latency", Enumerable.Range(0, slices).Select(at => Histogram.Pairs(heard.Select(one => one.Slices.ElementAtOrDefault(at))))),
            "stalls", Json.Map("count", heard.Sum(one => one.StallCount), "longest_ns", stalled == null ? 0 : stalled.StallLongest,
                "longest_at_ns", stalled == null ? 0 : stalled.StallAt),
            "seen", heard.SelectMany(one => one.SeenBits()));
    }

    object[] Result()
    {
        Reading first = readings[0], last = readings[readings.Count - 1];
        var begin = window == null ? 0 : window.Begin;
        var runtime = Json.Map("collections", last.Collections - first.Collections, "pauses", null);
        if (first.Allocated != null) runtime["allocated_bytes"] = last.Allocated - first.Allocated;
        if (Runtime.TellsPauses)
        {
            var stops = collections.Figures(begin);
            stops["count"] = last.Collections - first.Collections;
            stops["total_ns"] = collections.Total;
            runtime["pauses"] = stops;
        }
        var versions = binding.Versions;
        versions["runtime"] = Runtime.Name;
        var made = binding.Made;
        foreach (var pair in Json.Map("language", "C#", "runtime", Runtime.Name, "memory", "garbage collected", "build", "mcs", "flags", Runtime.Flags))
        {
            made[pair.Key] = pair.Value;
        }
        return new object[]
        {
            "flows", new[] { Flow() }, "usage", Usage(first, last), "versions", versions, "applied", binding.Applied,
            "loops", clients.Count, "pauses", pauses.Figures(begin), "remarks", remarks, "runtime", runtime, "made", made
        };
    }
}

/// The conversation.
static class Agent
{
    static readonly Dictionary<string, string[]> drivers = new Dictionary<string, string[]>();
    static readonly string[] patterns = { "pairs", "fan-out", "fan-in", "request-reply", "pipeline" };
    static readonly object saying = new object();
    static Run run;

    public static void Say(string type, params object[] fields)
    {
        var line = new StringBuilder();
        var map = Json.Map(fields);
        map["type"] = type;
        Json.Write(line, map);
        lock (saying) Native.Say(line.ToString());
    }

    public static void Fatal(string message, bool tooLate = false)
    {
        Say("error", "message", message, "fatal", true, "too_late", tooLate);
        Native._exit(1);
    }

    static void Hear(string line)
    {
        Dictionary<string, object> command = null;
        try { command = Json.Read(line) as Dictionary<string, object>; } catch (FormatException) { }
        if (command == null)
        {
            Say("error", "message", "this is no command: " + line.Substring(0, Math.Min(200, line.Length)), "fatal", false);
            return;
        }
        var type = command.ContainsKey("type") ? command["type"] as string : null;
        if (type == "hello") Greet((decimal)command["protocol"]);
        else if (type == "exit") Native._exit(0);
        else if (type == "prepare" && run == null) Prepare(command);
        else if (type == "start" && run != null) Start((long)(decimal)command["at_ns"]);
        else if (type == "drain" && run != null) run.Drain(command);
        else if (type == "crash" && run != null) run.Crash();
        else if (type == "stop" && run != null) run.Stop();
        else Fatal("this cannot be done: " + line.Substring(0, Math.Min(200, line.Length)));
    }

    static void Greet(decimal protocol)
    {
        if (protocol != 2) Fatal("protocol " + protocol + " is asked for; this agent speaks version 2: update the older one");
        var features = Json.Map("patterns", patterns,
            "transports", drivers.ContainsKey("zeromq") ? new[] { "inproc", "ipc", "tcp" } : new[] { "inproc" },
            "arrivals", new[] { "uniform", "poisson", "burst" }, "verification", new[] { "header", "full" },
            "pacing", new[] { "sleep", "hybrid", "spin" }, "profiles", new[] { "constant", "max" },
            "flows", 1, "pauses", true, "crash", true, "clock_offset", true);
        var options = drivers.ToDictionary(driver => driver.Key, driver => (object)driver.Value);
        Say("hello", "protocol", 2, "name", "zeromq-dotnet", "version", "1.0", "pid", Native.getpid(), "drivers", drivers.Keys,
            "clock_ns", Native.Time(), "versions", Json.Map("runtime", Runtime.Name), "features", features, "options", options);
    }

    static void Prepare(Dictionary<string, object> order)
    {
        var driver = (string)order["driver"];
        var values = (Dictionary<string, object>)order["options"];
        var flows = (List<object>)order["flows"];
        if (!drivers.ContainsKey(driver)) Fatal("there is no driver " + driver + " here: " + string.Join(", ", drivers.Keys));
        var unknown = values.Keys.Except(drivers[driver]).ToList();
        if (unknown.Count > 0) Fatal(driver + " knows no option " + string.Join(", ", unknown));
        if (flows.Count != 1) Fatal(flows.Count + " flows are asked for: this agent plays one");
        var ahead = order.ContainsKey("clock_offset_ns") ? (long)(decimal)order["clock_offset_ns"] : 0;
        var work = new Workload((Dictionary<string, object>)((Dictionary<string, object>)flows[0])["workload"], ahead);
        if (!patterns.Contains(work.Pattern)) Fatal("there is no pattern " + work.Pattern + " here: " + string.Join(", ", patterns));
        var options = new Options(values);
        if (driver == "zeromq") ZeroMq.Load(options.Text("library"));
        run = new Run(work, order, driver == "zeromq" ? new ZeroMq(work, options) : (IBinding)new Null(work, options));
        run.Prepare();
    }

    static void Start(long at)
    {
        if (at <= Native.Time()) Fatal("start: its instant has passed", tooLate: true);
        run.Start(at);
    }

    /// The coordinator has gone: nobody else tidies up.
    static void Abandon()
    {
        var scratch = (Environment.GetEnvironmentVariable("PUBMARK_SCRATCH") ?? "").TrimEnd('/');
        var ours = scratch.StartsWith("/") && Path.GetFileName(scratch).StartsWith("pubmark-");
        if (ours && File.Exists(Path.Combine(scratch, "lock"))) Directory.Delete(scratch, true);
    }

    static int Main(string[] arguments)
    {
        Native.TakeOutput();
        if (!arguments.Contains("null")) drivers["zeromq"] = ZeroMq.Options;
        drivers["null"] = Null.Options;
        try
        {
            var input = new StreamReader(Console.OpenStandardInput(), new UTF8Encoding(false), false, 1 << 16);
            for (string line; (line = input.ReadLine()) != null;) Hear(line);
            Abandon();
        }
        catch (Exception error)
        {
            var missing = error is DllNotFoundException ? "libzmq.so.5 cannot be loaded (apt-get install libzmq5, or set the option library): " : "";
            Fatal(missing + error.Message);
        }
        Native._exit(1);
        return 1;
    }
}
