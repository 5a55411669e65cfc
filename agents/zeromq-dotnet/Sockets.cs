using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Runtime.InteropServices;

/// What an order cannot have: a fatal error that names it.
sealed class RefusedException : Exception
{
    public RefusedException(string message) : base(message) { }
}

/// A client's end of a messaging system. Another binding is one more class like this.
unsafe interface ISocket
{
    /// Where it is bound, with the real port; null if it is not.
    string Endpoint { get; }
    /// False if the system has no room for it as yet.
    bool Send(byte* message, int length);
    /// Null if none came for a short time; else it stays where it is until the next call.
    byte* Receive(out int length);
    /// Sends the message that came last back to where it came from.
    bool Return();
    /// Closes it without taking leave: what waits in it is thrown away.
    void Kill();
}

/// A messaging system, opened for one run.
interface IBinding
{
    ISocket Open(string role, string bind, IEnumerable<string> connect);
    Dictionary<string, object> Applied { get; }
    Dictionary<string, object> Versions { get; }
    Dictionary<string, object> Made { get; }
}

/// The values of a run's options.
sealed class Options
{
    public const int WaitMs = 10;
    readonly Dictionary<string, object> values;

    public Options(Dictionary<string, object> values) { this.values = values; }

    public int Number(string name, int standard)
    {
        return values.ContainsKey(name) ? (int)Math.Min(int.MaxValue, (decimal)values[name]) : standard;
    }

    public bool IsFalse(string name) { return values.ContainsKey(name) && !(bool)values[name]; }

    public string Text(string name) { return values.ContainsKey(name) ? (string)values[name] : null; }

    /// One of these; the first is the default.
    public string Choice(string name, params string[] choices)
    {
        var value = Text(name) ?? choices[0];
        if (choices.Contains(value)) return value;
        throw new RefusedException(name + " is " + value + ": it may be " + string.Join(" or ", choices));
    }

    public int Milliseconds(string name, int standard)
    {
        var text = Text(name);
        if (text == null) return standard;
        var digits = text.TakeWhile(letter => char.IsDigit(letter) || letter == '.').Count();
        var units = new Dictionary<string, double> { { "ns", 1e-6 }, { "us", 1e-3 }, { "µs", 1e-3 }, { "ms", 1 }, { "s", 1e3 }, { "m", 6e4 }, { "min", 6e4 }, { "h", 3.6e6 } };
        double number, unit;
        if (double.TryParse(text.Substring(0, digits), NumberStyles.Float, CultureInfo.InvariantCulture, out number)
            && units.TryGetValue(text.Substring(digits), out unit)) return (int)Math.Min(int.MaxValue, number * unit);
        throw new RefusedException(name + " is " + text + ": it may be a time, such as 10s");
    }

    public int Queue(int payloadBytes)
    {
        return Math.Max(1, Math.Min(Number("queue_messages", 1000), Number("queue_bytes", int.MaxValue) / payloadBytes));
    }
}

/// libzmq by P/Invoke.
sealed unsafe class ZeroMq : IBinding
{
    public static readonly string[] Options = {
        "linger", "io_threads", "queue_messages", "queue_bytes", "socket_buffer", "tcp_nodelay", "library", "idiom", "request_reply", "pairs" };
    const string Library = "libzmq.so.5";
    const int IoThreads = 1, MaxSockets = 2, Subscribe = 6, RoutingId = 5, SendBuffer = 11, ReceiveBuffer = 12, ReceiveMore = 13;
    const int Linger = 17, ReconnectMs = 18, MaxMessage = 22, SendQueue = 23, ReceiveQueue = 24, ReceiveTimeout = 27;
    const int SendTimeout = 28, LastEndpoint = 32, Relaxed = 53, More = 2, Again = 11, Interrupted = 4, WrongState = 156384763;
    static readonly string[] kinds = { "pair", "pub", "sub", "req", "rep", "dealer", "router", "pull", "push" };

    [DllImport(Library)] static extern void zmq_version(out int major, out int minor, out int patch);
    [DllImport(Library)] static extern IntPtr zmq_strerror(int number);
    [DllImport(Library)] static extern IntPtr zmq_ctx_new();
    [DllImport(Library)] static extern int zmq_ctx_set(IntPtr context, int option, int value);
    [DllImport(Library)] static extern int zmq_ctx_get(IntPtr context, int option);
    [DllImport(Library, SetLastError = true)] static extern IntPtr zmq_socket(IntPtr context, int kind);
    [DllImport(Library)] static extern int zmq_close(IntPtr socket);
    [DllImport(Library, SetLastError = true)] static extern int zmq_setsockopt(IntPtr socket, int option, byte* value, IntPtr size);
    [DllImport(Library, SetLastError = true)] static extern int zmq_getsockopt(IntPtr socket, int option, byte* value, ref IntPtr size);
    [DllImport(Library, SetLastError = true)] static extern int zmq_bind(IntPtr socket, string endpoint);
    [DllImport(Library, SetLastError = true)] static extern int zmq_connect(IntPtr socket, string endpoint);
    [DllImport(Library, SetLastError = true)] static extern int zmq_send(IntPtr socket, byte* data, IntPtr size, int flags);
    [DllImport(Library, SetLastError = true)] static extern int zmq_recv(IntPtr socket, byte* data, IntPtr size, int flags);
    [DllImport(Library)] static extern int zmq_msg_init(byte* message);
    [DllImport(Library)] static extern int zmq_msg_init_size(byte* message, IntPtr size);
    [DllImport(Library)] static extern byte* zmq_msg_data(byte* message);
    [DllImport(Library, SetLastError = true)] static extern int zmq_msg_send(byte* message, IntPtr socket, int flags);
    [DllImport(Library, SetLastError = true)] static extern int zmq_msg_recv(byte* message, IntPtr socket, int flags);

    readonly IntPtr context = zmq_ctx_new();
    readonly Workload work;
    readonly Options options;
    readonly bool byMessage, dealer, pair;

    public Dictionary<string, object> Applied { get; private set; }

    /// Before any other call: the library that is asked for, in place of the one that the loader finds.
    public static void Load(string path)
    {
        if (path == null) return;
        var wrong = Native.Load(path);
        if (wrong != null) throw new RefusedException("library: " + wrong);
        Version();
        var found = LoadedPath();
        if (found != RealPath(path)) throw new RefusedException("library is " + path + ", but " + found + " is what was loaded: its soname must be " + Library);
    }

    public static string Version()
    {
        int major, minor, patch;
        zmq_version(out major, out minor, out patch);
        return major + "." + minor + "." + patch;
    }

    static string LoadedPath()
    {
        var line = File.ReadLines("/proc/self/maps").FirstOrDefault(one => one.Contains("/libzmq"));
        return line == null ? null : line.Substring(line.IndexOf('/'));
    }

    [DllImport("libc.so.6")] static extern IntPtr realpath(string path, byte* into);

    static string RealPath(string path)
    {
        var into = stackalloc byte[4097];
        return realpath(path, into) == IntPtr.Zero ? path : Marshal.PtrToStringAnsi((IntPtr)into);
    }

    public ZeroMq(Workload work, Options options)
    {
        this.work = work;
        this.options = options;
        if (options.IsFalse("tcp_nodelay")) throw new RefusedException("tcp_nodelay is false: the library cannot turn TCP_NODELAY off");
        var threads = options.Number("io_threads", 1);
        if (threads < 1) throw new RefusedException("io_threads is 0, which leaves no thread to move messages");
        byMessage = options.Choice("idiom", "copy", "message") == "message";
        dealer = options.Choice("request_reply", "req-rep", "dealer-router") == "dealer-router";
        pair = options.Choice("pairs", "pub-sub", "pair") == "pair" && work.Pattern == "pairs";
        if (zmq_ctx_set(context, IoThreads, threads) != 0) throw new RefusedException("io_threads is " + threads + ": the library refuses it");
        zmq_ctx_set(context, MaxSockets, 16383);
        Applied = Json.Map("io_threads", zmq_ctx_get(context, IoThreads), "idiom", byMessage ? "message" : "copy",
            "request_reply", dealer ? "dealer-router" : "req-rep", "pairs", pair ? "pair" : "pub-sub");
        if (work.Transport == "tcp") Applied["tcp_nodelay"] = true;
    }

    string KindOf(string role)
    {
        if (role == "requester") return dealer ? "dealer" : "req";
        if (role == "replier") return dealer ? "router" : "rep";
        if (pair) return "pair";
        if (work.Competing) return role == "publisher" ? "push" : "pull";
        return role == "publisher" ? "pub" : "sub";
    }

    public ISocket Open(string role, string bind, IEnumerable<string> connect)
    {
        var kind = KindOf(role);
        var socket = new Socket(zmq_socket(context, Array.IndexOf(kinds, kind)), work.PayloadBytes, byMessage, kind == "router");
        var buffer = work.Transport == "inproc" ? 0 : options.Number("socket_buffer", 0);
        var queue = options.Queue(work.PayloadBytes);
        foreach (var option in new[] { SendQueue, ReceiveQueue }) socket.Set(option, queue);
        foreach (var option in new[] { SendBuffer, ReceiveBuffer }.Where(option => buffer > 0)) socket.Set(option, buffer);
        socket.Set(SendTimeout, WaitOf(work));
        socket.Set(ReceiveTimeout, WaitOf(work));
        socket.Set(Linger, options.Milliseconds("linger", 10000));
        socket.Set(ReconnectMs, 10);
        long unlimited = -1;
        socket.Set(MaxMessage, (byte*)&unlimited, 8);
        if (kind == "sub") socket.Set(Subscribe, null, 0);
        if (kind == "req") socket.Set(Relaxed, 1);
        if (bind != null) socket.Bind(bind);
        foreach (var endpoint in connect) socket.Check(zmq_connect(socket.Handle, endpoint), "connect to " + endpoint);
        Record(socket);
        return socket;
    }

    static int WaitOf(Workload work) { return work.Spins ? 0 : global::Options.WaitMs; }

    /// Reads back what took effect.
    void Record(Socket socket)
    {
        var linger = socket.Get(Linger);
        Applied["linger"] = linger % 1000 == 0 ? linger / 1000 + "s" : linger + "ms";
        Applied["send_queue_messages"] = socket.Get(SendQueue);
        Applied["receive_queue_messages"] = socket.Get(ReceiveQueue);
        if (work.Transport == "inproc") return;
        Func<int, object> bytes = option => socket.Get(option) > 0 ? (object)socket.Get(option) : "automatic";
        Applied["send_buffer_bytes"] = bytes(SendBuffer);
        Applied["receive_buffer_bytes"] = bytes(ReceiveBuffer);
    }

    public Dictionary<string, object> Versions
    {
        get { return Json.Map("library", "libzmq", "version", Version(), "path", LoadedPath(), "binding", "P/Invoke of pubmark's own"); }
    }

    public Dictionary<string, object> Made
    {
        get
        {
            var copies = byMessage
                ? "send: into a message of the library; receive: none, read where the library has it"
                : "send: into a message of the library; receive: into a kept array";
            return Json.Map("binding", "P/Invoke of pubmark's own (not Net.Zmq)", "library", "libzmq " + Version(), "copies", copies, "call", "blocking");
        }
    }

    sealed class Socket : ISocket
    {
        readonly byte[] kept;
        readonly byte* buffer;
        readonly byte* message = (byte*)Marshal.AllocHGlobal(64);
        readonly byte* sending = (byte*)Marshal.AllocHGlobal(64);
        readonly byte* identity = (byte*)Marshal.AllocHGlobal(256);
        readonly bool byMessage, router;
        int identityLength, length;

        public readonly IntPtr Handle;
        public string Endpoint { get; private set; }

        public Socket(IntPtr handle, int payloadBytes, bool byMessage, bool router)
        {
            Handle = handle;
            if (handle == IntPtr.Zero) throw Failed("open a socket");
            this.byMessage = byMessage;
            this.router = router;
            kept = new byte[payloadBytes + 1]; // one byte too long is told from right
            buffer = (byte*)GCHandle.Alloc(kept, GCHandleType.Pinned).AddrOfPinnedObject();
            zmq_msg_init(message);
        }

        static RefusedException Failed(string what)
        {
            var reason = Marshal.PtrToStringAnsi(zmq_strerror(Marshal.GetLastWin32Error()));
            return new RefusedException("libzmq cannot " + what + ": " + reason);
        }

        public void Check(int status, string what) { if (status < 0) throw Failed(what); }

        /// True if a call did it; false if it would have had to wait.
        bool Done(int status, string what)
        {
            if (status >= 0) return true;
            var number = Marshal.GetLastWin32Error();
            if (number == Again || number == Interrupted) return false;
            if (number != WrongState) throw Failed(what);
            Native.SleepUntil(Native.Time() + Clock.Nap); // a late reply was taken for the one awaited: none is due
            return false;
        }

        public void Set(int option, byte* value, int size)
        {
            Check(zmq_setsockopt(Handle, option, value, (IntPtr)size), "set its option " + option);
        }

        public void Set(int option, int value) { Set(option, (byte*)&value, 4); }

        public int Get(int option)
        {
            int value;
            var size = (IntPtr)4;
            Check(zmq_getsockopt(Handle, option, (byte*)&value, ref size), "read its option " + option);
            return value;
        }

        public void Bind(string endpoint)
        {
            var any = endpoint.StartsWith("tcp:") && endpoint.EndsWith(":0");
            Check(zmq_bind(Handle, any ? endpoint.Substring(0, endpoint.Length - 1) + "*" : endpoint), "bind " + endpoint);
            var text = stackalloc byte[1024];
            var size = (IntPtr)1024;
            Check(zmq_getsockopt(Handle, LastEndpoint, text, ref size), "tell where it is bound");
            Endpoint = any ? Marshal.PtrToStringAnsi((IntPtr)text) : endpoint;
        }

        public bool Send(byte* data, int size)
        {
            if (!byMessage) return Done(zmq_send(Handle, data, (IntPtr)size, 0), "send");
            zmq_msg_init_size(sending, (IntPtr)size);
            Buffer.MemoryCopy(data, zmq_msg_data(sending), size, size);
            if (Done(zmq_msg_send(sending, Handle, 0), "send")) return true;
            zmq_msg_close(sending);
            return false;
        }

        [DllImport(Library)] static extern int zmq_msg_close(byte* message);

        public byte* Receive(out int size)
        {
            size = 0;
            if (router)
            {
                identityLength = zmq_recv(Handle, identity, (IntPtr)256, 0);
                if (!Done(identityLength, "receive")) return null;
            }
            length = byMessage ? zmq_msg_recv(message, Handle, 0) : zmq_recv(Handle, buffer, (IntPtr)kept.Length, 0);
            if (!Done(length, "receive")) return null;
            size = length;
            return byMessage ? zmq_msg_data(message) : buffer;
        }

        public bool Return()
        {
            if (router && !Done(zmq_send(Handle, identity, (IntPtr)identityLength, More), "send")) return false;
            var size = (IntPtr)Math.Min(length, kept.Length);
            return Done(byMessage ? zmq_msg_send(message, Handle, 0) : zmq_send(Handle, buffer, size, 0), "send");
        }

        public void Kill()
        {
            Set(Linger, 0);
            zmq_close(Handle);
        }
    }
}

/// No library: bounded queues of the language between threads. What the agent itself costs.
sealed unsafe class Null : IBinding
{
    public static readonly string[] Options = { "queue_messages", "queue_bytes" };
    readonly Dictionary<string, Socket> bound = new Dictionary<string, Socket>();
    readonly Workload work;
    readonly int room;

    public Null(Workload work, Options options)
    {
        this.work = work;
        room = options.Queue(work.PayloadBytes);
    }

    public ISocket Open(string role, string bind, IEnumerable<string> connect)
    {
        var socket = new Socket(room, work, bind);
        if (bind != null) bound[bind] = socket;
        foreach (var endpoint in connect) socket.Join(bound[endpoint]);
        return socket;
    }

    public Dictionary<string, object> Applied { get { return Json.Map("send_queue_messages", room); } }
    public Dictionary<string, object> Versions { get { return Json.Map("library", "null", "version", Environment.Version.ToString()); } }

    public Dictionary<string, object> Made
    {
        get
        {
            var copies = "send: into a new array, handed over by reference; receive: into a kept array";
            return Json.Map("binding", "none", "library", "none: BlockingCollection", "copies", copies, "call", "blocking");
        }
    }

    sealed class Socket : ISocket
    {
        readonly BlockingCollection<byte[]> inbox;
        readonly byte[] kept;
        readonly byte* buffer;
        readonly bool toAll;
        volatile Socket[] peers = new Socket[0];
        byte[] pending, last;
        int next;

        public string Endpoint { get; private set; }

        public Socket(int room, Workload work, string bind)
        {
            inbox = new BlockingCollection<byte[]>(room);
            kept = new byte[work.PayloadBytes];
            buffer = (byte*)GCHandle.Alloc(kept, GCHandleType.Pinned).AddrOfPinnedObject();
            toAll = !work.Competing;
            Endpoint = bind;
        }

        public void Join(Socket peer)
        {
            peers = peers.Concat(new[] { peer }).ToArray();
            peer.peers = peer.peers.Concat(new[] { this }).ToArray();
        }

        public bool Send(byte* message, int length)
        {
            if (next == 0 || !toAll || pending == null)
            {
                pending = new byte[length];
                Marshal.Copy((IntPtr)message, pending, 0, length);
            }
            return Hand(pending);
        }

        bool Hand(byte[] message)
        {
            var to = peers;
            if (!toAll) return to.Length == 0 || to[next++ % to.Length].inbox.TryAdd(message, global::Options.WaitMs);
            for (; next < to.Length; next++)
            {
                if (!to[next].inbox.TryAdd(message, global::Options.WaitMs)) return false;
            }
            next = 0;
            return true;
        }

        public byte* Receive(out int length)
        {
            length = 0;
            if (!inbox.TryTake(out last, global::Options.WaitMs)) return null;
            length = last.Length;
            Array.Copy(last, kept, length);
            return buffer;
        }

        public bool Return() { return Hand(last); }

        public void Kill() { peers = new Socket[0]; }
    }
}
