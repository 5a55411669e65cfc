// The bindings that the agent plays: sockets of zeromq.js, and queues of JavaScript for the floor.
import fs from "node:fs";
import { createRequire } from "node:module";

const ZERO_COPY_ABOVE = 128; // bytes; compiled into zeromq.js
const SYNC_OPERATIONS = 512; // calls that may follow one another without a turn of the event loop; the same
const SEND_TIMEOUT_MS = 10;
const RECONNECT_MS = 10;
const INT_MAX = 2 ** 31 - 1;
const SHARED = ["linger", "io_threads", "queue_messages", "queue_bytes", "socket_buffer", "tcp_nodelay"];

/** What the system cannot do with an option. */
export class OptionError extends Error {}

const queueOf = ({ queue_messages = 1000, queue_bytes = Infinity }, bytes) =>
  Math.min(INT_MAX, Math.max(1, Math.min(queue_messages, Math.floor(queue_bytes / bytes))));

/** One of the values of a text option; the first is the default. */
function choice(options, name, ...values) {
  const value = options[name] ?? values[0];
  if (!values.includes(value)) throw new OptionError(`${name} is ${value}: it may be ${values.join(" or ")}`);
  return value;
}

function milliseconds(text) {
  const [, number, unit] = /^([\d.]+)(ns|us|µs|ms|s|m|min|h)$/.exec(text) ?? [];
  if (number === undefined) throw new OptionError(`linger is ${text}: it may be a time, such as "10s"`);
  const scale = { ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1e3, m: 6e4, min: 6e4, h: 3.6e6 };
  return Math.min(INT_MAX, Math.floor(Number(number) * scale[unit]));
}

/** The path of a file that the process has mapped, or null. */
const mapped = (name) => name.exec(fs.readFileSync("/proc/self/maps", "utf8"))?.[0] ?? null;

/** The libzmq that the addon is linked with, or null: the prebuilt one holds its own. */
const shared = () => mapped(/\/\S*libzmq\.so\S*/);

/** libzmq, through zeromq.js. */
export class ZeroMq {
  static options = [...SHARED, "idiom", "request_reply", "pairs"];
  static transports = ["inproc", "ipc", "tcp"];
  applied = {};

  /** zeromq.js and its version, or an error that says how to get it. */
  static load() {
    const require = createRequire(import.meta.url);
    try {
      return { zmq: require("zeromq"), version: require("zeromq/package.json").version };
    } catch (error) {
      const how = "run `make -C agents/zeromq-node`, or `npm install --ignore-scripts zeromq@6.8.0`";
      throw new Error(`zeromq.js cannot be loaded: ${error.message.split("\n")[0]}; ${how}`);
    }
  }

  constructor({ zmq, version }, work, options) {
    Object.assign(this, { zmq, version, work, options });
    const { io_threads = 1, linger = "10s", tcp_nodelay = true, socket_buffer = 0 } = options;
    if (tcp_nodelay !== true) throw new OptionError("tcp_nodelay is false: the library cannot turn TCP_NODELAY off");
    if (!(io_threads >= 1)) throw new OptionError("io_threads is 0, which leaves no thread to move messages");
    this.idiom = choice(options, "idiom", "iterator", "await");
    this.dealer = choice(options, "request_reply", "req-rep", "dealer-router") === "dealer-router";
    this.pair = choice(options, "pairs", "pub-sub", "pair") === "pair" && work.pattern === "pairs";
    this.lingerMs = milliseconds(linger);
    this.buffer = work.transport === "inproc" ? 0 : Math.min(INT_MAX, socket_buffer);
    this.context = new zmq.Context({ ioThreads: Math.min(INT_MAX, io_threads), maxSockets: 16_383 });
    this.copiesAbove = ZERO_COPY_ABOVE;
  }

  /** An open socket for this client: bound or connected, and where it is bound. */
  async open({ role, bind, connect = [] }) {
    const { zmq, context, work } = this;
    const sends = role !== "subscriber";
    const receives = role !== "publisher";
    const queue = queueOf(this.options, work.payload_bytes);
    const options = { context, linger: this.lingerMs, reconnectInterval: RECONNECT_MS, maxMessageSize: -1 };
    if (sends) Object.assign(options, { sendHighWaterMark: queue, sendTimeout: SEND_TIMEOUT_MS });
    if (receives) options.receiveHighWaterMark = queue;
    if (sends && this.buffer > 0) options.sendBufferSize = this.buffer;
    if (receives && this.buffer > 0) options.receiveBufferSize = this.buffer;
    if (role === "requester") {
      options.receiveTimeout = Math.max(1, Math.ceil(work.drain_ns / 1e6));
      if (!this.dealer) options.relaxed = true;
    }
    const socket = new (this.#kind(role))(options);
    if (socket instanceof zmq.Subscriber) socket.subscribe();
    if (bind) await socket.bind(bind.replace(/^(tcp:.*):0$/, "$1:*"));
    for (const endpoint of connect) socket.connect(endpoint);
    this.#record(socket);
    return { socket, endpoint: bind && socket.lastEndpoint };
  }

  #kind(role) {
    const { Dealer, Pair, Publisher, Pull, Push, Reply, Request, Router, Subscriber } = this.zmq;
    if (role === "requester") return this.dealer ? Dealer : Request;
    if (role === "replier") return this.dealer ? Router : Reply;
    if (this.pair) return Pair;
    if (this.work.pattern === "pipeline") return role === "publisher" ? Push : Pull;
    return role === "publisher" ? Publisher : Subscriber;
  }

  /** Reads back what took effect. */
  #record(socket) {
    const { transport } = this.work;
    const bytes = (size) => (size > 0 ? size : "automatic");
    const { linger, sendHighWaterMark, receiveHighWaterMark, sendBufferSize, receiveBufferSize } = socket;
    Object.assign(this.applied, {
      linger: linger % 1000 ? `${linger}ms` : `${linger / 1000}s`,
      io_threads: this.context.ioThreads,
      ...(sendHighWaterMark !== undefined && { send_queue_messages: sendHighWaterMark }),
      ...(receiveHighWaterMark !== undefined && { receive_queue_messages: receiveHighWaterMark }),
      ...(transport === "tcp" && { tcp_nodelay: true }),
      ...(transport !== "inproc" && sendBufferSize !== undefined && { send_buffer_bytes: bytes(sendBufferSize) }),
      ...(transport !== "inproc" &&
        receiveBufferSize !== undefined && { receive_buffer_bytes: bytes(receiveBufferSize) }),
      idiom: this.idiom,
      request_reply: this.dealer ? "dealer-router" : "req-rep",
      pairs: this.pair ? "pair" : "pub-sub",
      sync_operations: SYNC_OPERATIONS,
      zero_copy_above_bytes: ZERO_COPY_ABOVE,
    });
  }

  versions() {
    return {
      library: "libzmq",
      version: this.zmq.version,
      path: shared() ?? mapped(/\/\S*zeromq\S*\.node/),
      binding: `zeromq.js ${this.version}`,
    };
  }

  made() {
    return {
      binding: `zeromq.js ${this.version}`,
      library: `libzmq ${this.zmq.version}`,
      copies: `send: into the message up to ${ZERO_COPY_ABOVE} bytes, by reference above; receive: into a new Buffer up to ${ZERO_COPY_ABOVE} bytes, by reference above`,
      build: shared() ? "addon built from source against the system's libzmq" : "prebuilt addon of npm",
    };
  }
}

/** Promises to resume whoever waits here. */
class Gate {
  #waiting = [];
  wait() {
    return new Promise((resume) => this.#waiting.push(resume));
  }
  open() {
    for (const resume of this.#waiting.splice(0)) resume();
  }
}

/** One end of bounded queues within the process, called as a socket of zeromq.js is. */
class QueueSocket {
  closed = false;
  #messages = [];
  #filled = new Gate();
  #emptied = new Gate();
  #peers = [];
  #next = 0;
  #operations = 0;

  constructor(room, toAll) {
    Object.assign(this, { room, toAll });
  }
  join(peer) {
    this.#peers.push(peer);
    peer.#peers.push(this);
  }
  async send([message]) {
    await this.#turn();
    const peers = this.toAll ? this.#peers : this.#peers.slice((this.#next %= this.#peers.length || 1), ++this.#next);
    for (const peer of peers) {
      while (peer.#messages.length >= this.room && !peer.closed) await peer.#emptied.wait();
      peer.#messages.push(message);
      peer.#filled.open();
    }
  }
  async receive() {
    await this.#turn();
    while (this.#messages.length === 0) {
      if (this.closed) throw Object.assign(new Error("closed"), { code: "EAGAIN" });
      await this.#filled.wait();
    }
    this.#emptied.open();
    return [this.#messages.shift()];
  }
  /** Lets the event loop come round after as many operations as zeromq.js does. */
  #turn() {
    this.#operations += 1;
    return this.#operations % SYNC_OPERATIONS ? undefined : new Promise(setImmediate);
  }
  close() {
    this.closed = true;
    this.#filled.open();
    this.#emptied.open();
  }
}

/** No library: what the agent itself costs. */
export class Null {
  static options = ["queue_messages", "queue_bytes"];
  static transports = ["inproc"];
  idiom = "await";
  copiesAbove = 0;
  #bound = new Map();

  constructor(work, options) {
    this.room = queueOf(options, work.payload_bytes);
    this.toAll = work.pattern !== "pipeline";
    this.applied = { send_queue_messages: this.room, receive_queue_messages: 0 };
  }
  async open({ bind, connect = [] }) {
    const socket = new QueueSocket(this.room, this.toAll);
    if (bind) this.#bound.set(bind, socket);
    for (const endpoint of connect) socket.join(this.#bound.get(endpoint));
    return { socket, endpoint: bind };
  }
  versions() {
    return { library: "null", version: process.versions.node };
  }
  made() {
    return { binding: "none", library: "none: arrays and promises", copies: "none: by reference", build: "none" };
  }
}
