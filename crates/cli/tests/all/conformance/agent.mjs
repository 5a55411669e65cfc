// Plays publishers and subscribers over plain TCP sockets: the system `kernel`.
import fs from "node:fs";
import net from "node:net";
import os from "node:os";

const PROBE = 0xffffffff, END = 0xfffffffe, SECOND = 1e9, MILLISECOND = 1e6;
const COUNTS = ["expected", "delivered", "duplicated", "reordered", "corrupted", "unidentified", "negative"];
const TIMES = ["latency", "intended_latency", "service_latency", "send_lag", "own_lag"];
const now = () => Number(process.hrtime.bigint()); // CLOCK_MONOTONIC

// A pipe takes 64 KiB at a time.
function say(type, fields = {}) {
  let line = Buffer.from(`${JSON.stringify({ type, ...fields })}\n`);
  while (line.length > 0) line = line.subarray(fs.writeSync(1, line));
}

function fatal(message) {
  say("error", { message, fatal: true });
  process.exit(1);
}

/** SplitMix64 from a fixed seed, little-endian. */
function body(length) {
  const bytes = Buffer.alloc(length + 8), mask = (1n << 64n) - 1n;
  let state = 0x7075626d61726b31n;
  for (let at = 0; at < length; at += 8) {
    state = (state + 0x9e3779b97f4a7c15n) & mask;
    let word = ((state ^ (state >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
    word = ((word ^ (word >> 27n)) * 0x94d049bb133111ebn) & mask;
    bytes.writeBigUInt64LE(word ^ (word >> 31n), at);
  }
  return bytes.subarray(0, length);
}

/** The measured part of a run; a message belongs to it by its intended time. */
function windowOf({ rate, extent, warmup_ns }, start) {
  const perKs = Math.round(rate * 1000); // messages in 1,000 s
  const length = extent.time_ns ?? Math.floor((extent.count * 1000 * SECOND) / perKs);
  const begin = start + warmup_ns, end = begin + length;
  const slice = Math.max(10 * MILLISECOND, Math.min(SECOND, Math.floor(length / 20)), Math.ceil(length / 3600));
  const holds = (at) => begin <= at && at < end;
  const place = (at) => Math.floor((at - begin) / slice);
  return { perKs, count: extent.count, start, begin, end, slice, slices: Math.ceil(length / slice), holds, place };
}

const add = (counter, value, count = 1) => counter.set(value, (counter.get(value) ?? 0) + count);

/** [[value, count], ...]: values rounded to one digit more than is asked for. */
function histogram(counter, digits = 3) {
  const rounded = new Map();
  for (const [value, count] of counter) {
    const step = 10 ** Math.max(0, String(value).length - digits - 1);
    add(rounded, Math.floor(value / step) * step, count);
  }
  return rounded.size ? [...rounded].sort((a, b) => a[0] - b[0]) : null;
}

let work, window, deadline, progress, totals, crashed = false;
const publishers = [], subscribers = [], remarks = [], streams = [], said = new Set(), used = [];

/** What all clients of this process measure together. */
const books = {
  counts: Object.fromEntries(COUNTS.map((name) => [name, 0])),
  times: Object.fromEntries(TIMES.map((name) => [name, new Map()])),
  received: 0, arrived: 0, firstSent: null, lastArrival: null, jitter: 0, pairs: 0,
  sent: [], delivered: [], latency: [], // by slice of the window
};

/** Messages of a stream, each behind its length, 4 bytes. */
function messages(stream, take) {
  let buffer = Buffer.alloc(0);
  streams.push(stream);
  stream.setNoDelay(true);
  stream.on("error", () => stream.destroy());
  stream.on("data", (data) => {
    const at = now();
    buffer = Buffer.concat([buffer, data]);
    while (buffer.length >= 4 && buffer.length >= 4 + buffer.readUInt32LE(0)) {
      const end = 4 + buffer.readUInt32LE(0);
      take(buffer.subarray(4, end), at);
      buffer = buffer.subarray(end);
    }
  });
}

class Publisher {
  constructor({ id }) {
    Object.assign(this, { id, peers: [], sent: 0, offered: 0, free: 0, done: false, nextMarker: 0 });
    this.message = Buffer.concat([Buffer.alloc(4), body(work.payload_bytes)]);
    this.message.writeUInt32LE(work.payload_bytes, 0);
    this.listener = net.createServer((stream) => {
      messages(stream, () => {});
      this.peers.push(stream);
    });
    this.bound = new Promise((done) => this.listener.listen(0, "127.0.0.1", done));
  }
  /** When the next message is due: from its number alone. */
  due() {
    const interval = (1000 * SECOND) / window.perKs;
    const offset = Math.floor((Math.floor(interval) * this.id) / work.publishers);
    return window.start + offset + Math.floor(this.sent * interval);
  }
  write(sequence, intended, free) {
    const sent = now(), length = this.message.length - 4;
    this.message.writeBigUInt64LE(BigInt(intended), 4);
    this.message.writeUInt32LE(this.id, 12);
    this.message.writeUInt32LE(sequence, 16);
    if (length >= 24) this.message.writeBigUInt64LE(BigInt(sent), 20);
    if (length >= 32) this.message.writeBigUInt64LE(BigInt(free), 28);
    for (const peer of this.peers) peer.write(Buffer.from(this.message));
    return sent;
  }
  over() {
    return window.count ? this.offered >= window.count : this.due() >= window.end;
  }
  /** Sends what is due; when to come again. */
  step() {
    if (!window || this.done) {
      if (now() >= this.nextMarker) {
        this.write(this.done ? END : PROBE, now(), now());
        this.nextMarker = now() + 5 * MILLISECOND;
      }
      return this.nextMarker;
    }
    while (!this.over() && this.due() <= now()) {
      const due = this.due(), free = Math.max(this.free, due);
      const sent = this.write(this.sent, due, free);
      this.free = free + now() - sent; // the call was the system's
      this.sent += 1;
      if (window.holds(sent)) books.sent[window.place(sent)] += 1;
      if (due < window.begin) continue;
      this.offered += 1;
      books.firstSent ??= sent;
      add(books.times.send_lag, sent - due);
      add(books.times.own_lag, sent - free);
    }
    this.done = this.over();
    return this.done ? now() : this.due();
  }
  kill() {
    this.step();
    this.done = true;
    this.peers = [];
    this.listener.close();
  }
  total() {
    const { id: publisher, sent, offered } = this;
    return { publisher, sent, window_first: sent - offered, window_end: sent, offered };
  }
}

class Subscriber {
  constructor({ hears_first, hears_count, connect }) {
    this.body = body(work.payload_bytes);
    this.hears = Array.from({ length: hears_count }, (_, at) => hears_first + at);
    this.seen = new Map(this.hears.map((publisher) => [publisher, new Set()]));
    [this.probed, this.ended, this.highest, this.before] = [new Set(), new Set(), new Map(), new Map()];
    for (const endpoint of connect) {
      const { hostname, port } = new URL(endpoint.replace("tcp:", "http:"));
      messages(net.connect(Number(port), hostname), (message, at) => this.take(message, at));
    }
  }
  take(message, at) {
    const { counts, times } = books, { length } = message;
    const word = (from) => (length >= from + 8 ? Number(message.readBigUInt64LE(from)) : 0);
    const [publisher, sequence] = length >= 16 ? [message.readUInt32LE(8), message.readUInt32LE(12)] : [];
    const seen = this.seen.get(publisher), [intended, sent, free] = [word(0), word(16), word(24)];
    if (seen && sequence === PROBE) return void this.probed.add(publisher);
    if (seen && sequence === END) return void this.ended.add(publisher);
    const sound = window && seen && length === work.payload_bytes;
    if (!sound || intended < window.start || intended > at + SECOND) return void (counts.unidentified += 1);
    books.received += 1;
    const measured = window.holds(intended), twice = seen.has(sequence);
    seen.add(sequence);
    if (twice) return void (counts.duplicated += measured);
    const highest = this.highest.get(publisher) ?? 0;
    counts.reordered += measured && sequence < highest;
    this.highest.set(publisher, Math.max(sequence, highest));
    const within = window.holds(at), place = window.place(at);
    books.arrived += within;
    if (within) books.delivered[place] += 1;
    if (!measured) return;
    books.lastArrival = at;
    const header = length >= 32 ? 32 : Math.min(24, length);
    const changed = work.verify === "full" && this.body.compare(message, header, length, header) !== 0;
    if (changed) return void (counts.corrupted += 1);
    if (at < intended) return void (counts.negative += 1);
    const own = length >= 32 && intended <= free && free <= sent ? sent - free : 0;
    const latency = at - intended - own, before = this.before.get(publisher);
    this.before.set(publisher, [sequence, latency]);
    add(times.latency, Math.max(0, latency));
    add(times.intended_latency, Math.max(0, at - intended));
    if (length >= 24) add(times.service_latency, Math.max(0, at - sent));
    if (before && before[0] + 1 === sequence) {
      books.jitter += Math.abs(latency - before[1]);
      books.pairs += 1;
    }
    if (within) add(books.latency[place], Math.max(0, latency));
  }
  complete() {
    return crashed || this.hears.every((id) => this.ended.has(id) || this.seen.get(id).size >= totals.get(id).sent);
  }
  close() {
    for (const id of this.hears) {
      const { window_first, window_end, sent } = totals.get(id), seen = [...this.seen.get(id)];
      books.counts.unidentified += seen.filter((sequence) => sequence >= sent).length; // nobody sent them
      books.counts.expected += window_end - window_first;
      books.counts.delivered += seen.filter((sequence) => window_first <= sequence && sequence < window_end).length;
    }
  }
}

function usage() {
  const lines = fs.readFileSync("/proc/self/smaps_rollup", "utf8").split("\n");
  const bytes = (name) => 1024 * Number(lines.find((line) => line.startsWith(name + ":")).match(/\d+/)[0]);
  const cpu = process.cpuUsage(), used = process.resourceUsage();
  return {
    wall_ns: now(), cpu_ns: (cpu.user + cpu.system) * 1000, user_ns: cpu.user * 1000,
    voluntary_switches: used.voluntaryContextSwitches, involuntary_switches: used.involuntaryContextSwitches,
    rss_bytes: bytes("Rss"), uss_bytes: bytes("Private_Clean") + bytes("Private_Dirty"),
  };
}

const once = (word, fields) => said.has(word) || (said.add(word), say(word, fields));

async function prepare(order) {
  work = order.flows[0].workload;
  const held = order.publisher_cpus.length + order.subscriber_cpus.length > 0;
  if (held) remarks.push("its threads run on any processor: Node.js cannot hold them to those that it was given");
  for (const client of order.clients) {
    if (client.role === "publisher") publishers.push(new Publisher(client));
    else subscribers.push(new Subscriber(client));
  }
  await Promise.all(publishers.map((publisher) => publisher.bound));
  const endpoint = ({ id, listener }) => ({ role: "publisher", id, endpoint: `tcp://127.0.0.1:${listener.address().port}` });
  once("bound", { endpoints: publishers.map(endpoint) });
}

function hear(command) {
  if (command.type === "hello" && command.protocol === 2) {
    const features = { patterns: ["pairs", "fan-out", "fan-in"], transports: ["tcp"], crash: true };
    const who = { name: "sockets-node", version: "1.0", pid: process.pid, drivers: ["kernel"], options: { kernel: [] } };
    say("hello", { protocol: 2, ...who, clock_ns: now(), versions: { node: process.version }, features });
  } else if (command.type === "prepare" && command.driver === "kernel" && !Object.keys(command.options).length) {
    prepare(command);
  } else if (command.type === "start" && command.at_ns > now()) {
    window = windowOf(work, command.at_ns);
    progress = command.at_ns + SECOND;
    [books.sent, books.delivered] = [0, 1].map(() => new Array(window.slices).fill(0));
    books.latency = books.sent.map(() => new Map());
  } else if (command.type === "crash") {
    crashed = true;
    for (const publisher of publishers) publisher.kill();
    for (const stream of streams) stream.destroy();
  } else if (command.type === "drain") {
    totals = new Map(command.publishers.map((total) => [total.publisher, total]));
    deadline = command.deadline_ns;
  } else if (command.type === "stop") {
    result();
  } else if (command.type === "exit") {
    process.exit(0);
  } else {
    fatal("this cannot be done: " + JSON.stringify(command).slice(0, 200));
  }
}

/** Says what has become true; when to look again. */
function look() {
  const at = now();
  if (!said.has("bound") || said.has("result")) return at + 5 * MILLISECOND;
  if (subscribers.every(({ hears, probed }) => hears.every((id) => probed.has(id)))) once("ready");
  const again = Math.min(at + 5 * MILLISECOND, ...publishers.map((publisher) => publisher.step()));
  if (!window) return again;
  if (used.length < 2 && at >= [window.begin, window.end][used.length]) used.push(usage());
  if (at >= progress) {
    progress += SECOND;
    say("progress", { sent: publishers.reduce((all, { sent }) => all + sent, 0), received: books.received });
  }
  if (publishers.length && publishers.every(({ done }) => done)) {
    once("sent", { publishers: publishers.map((publisher) => publisher.total()) });
  }
  if (deadline && (at >= deadline || subscribers.every((subscriber) => subscriber.complete()))) once("drained");
  return again;
}

function result() {
  while (used.length < 2) used.push(usage());
  if (deadline) for (const subscriber of subscribers) subscriber.close();
  const flow = {
    publishers: publishers.map((publisher) => publisher.total()),
    ledger: { ...books.counts, corrupted: books.counts.corrupted + books.counts.unidentified },
    arrived: books.arrived, first_sent_ns: books.firstSent, last_arrival_ns: books.lastArrival,
    histograms: { receive_lag: null, ...Object.fromEntries(TIMES.map((name) => [name, histogram(books.times[name])])) },
    jitter_sum_ns: books.jitter, jitter_pairs: books.pairs,
    series: {
      slice_ns: window?.slice ?? 0, sent: books.sent, delivered: books.delivered,
      latency: books.latency.map((counter) => histogram(counter, 2)),
    },
    stalls: null, // it cannot tell
  };
  const [before, after] = used;
  const between = (name) => (name.endsWith("_bytes") ? [before[name], after[name]] : after[name] - before[name]);
  once("result", {
    flows: [flow], usage: Object.fromEntries(Object.keys(after).map((name) => [name, between(name)])),
    versions: { library: "kernel", version: os.release() }, applied: { tcp_nodelay: true },
    loops: 1, pauses: null, remarks,
  });
}

let orders = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (data) => {
  const lines = (orders + data).split("\n");
  orders = lines.pop();
  for (const line of lines) hear(JSON.parse(line));
});
process.stdin.on("end", () => process.exit(1)); // the coordinator has gone

(function again() {
  setTimeout(again, Math.max(0, Math.floor((look() - now()) / MILLISECOND)));
})();
