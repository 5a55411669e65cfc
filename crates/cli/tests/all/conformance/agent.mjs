// Plays publishers and subscribers over plain TCP sockets: the system `kernel`.
import fs from "node:fs";
import net from "node:net";
import os from "node:os";

const PROBE = 0xffffffff, END = 0xfffffffe, SECOND = 1e9, MILLISECOND = 1e6;
const now = () => Number(process.hrtime.bigint()); // CLOCK_MONOTONIC

const say = (type, fields = {}) => fs.writeSync(1, JSON.stringify({ type, ...fields }) + "\n");

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
class Window {
  constructor(work, start) {
    this.perKs = Math.round(work.rate * 1000); // messages in 1,000 s
    this.count = work.extent.count;
    const length = work.extent.time_ns ?? Math.floor((this.count * 1000 * SECOND) / this.perKs);
    this.start = start;
    this.begin = start + work.warmup_ns;
    this.end = this.begin + length;
    const slice = Math.min(SECOND, Math.floor(length / 20));
    this.slice = Math.max(10 * MILLISECOND, slice, Math.ceil(length / 3600));
    this.slices = Math.ceil(length / this.slice);
  }
  holds(at) {
    return this.begin <= at && at < this.end;
  }
  place(at) {
    return Math.floor((at - this.begin) / this.slice);
  }
}

const add = (counter, value, count = 1) => counter.set(value, (counter.get(value) ?? 0) + count);

/** [[value, count], ...]: values rounded to one digit more than is asked for. */
function histogram(counters, digits = 3) {
  const merged = new Map();
  for (const counter of counters) {
    for (const [value, count] of counter) {
      const step = 10 ** Math.max(0, String(value).length - digits - 1);
      add(merged, Math.floor(value / step) * step, count);
    }
  }
  return merged.size ? [...merged].sort((a, b) => a[0] - b[0]) : null;
}

/** Messages of a stream, each behind its length, 4 bytes. */
function messages(stream, take) {
  let buffer = Buffer.alloc(0);
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
  constructor(client, work) {
    Object.assign(this, { id: client.id, work, peers: [], series: [], done: false, nextMarker: 0 });
    Object.assign(this, { sent: 0, first: 0, offered: 0, firstSent: null, free: 0 });
    [this.sendLag, this.ownLag] = [new Map(), new Map()];
    this.message = Buffer.concat([Buffer.alloc(4), body(work.payload_bytes)]);
    this.message.writeUInt32LE(work.payload_bytes, 0);
    this.listener = net.createServer((stream) => {
      messages(stream, () => {});
      this.peers.push(stream);
    });
    this.bound = new Promise((done) => this.listener.listen(0, "127.0.0.1", done));
  }
  start(window) {
    [this.window, this.series] = [window, new Array(window.slices).fill(0)];
  }
  /** When the next message is due: from its number alone. */
  due() {
    const interval = (1000 * SECOND) / this.window.perKs;
    const offset = Math.floor((Math.floor(interval) * this.id) / this.work.publishers);
    return this.window.start + offset + Math.floor(this.sent * interval);
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
    return this.window.count ? this.offered >= this.window.count : this.due() >= this.window.end;
  }
  /** Sends what is due; when to come again. */
  step() {
    if (!this.window || this.done) {
      if (now() >= this.nextMarker) {
        this.write(this.done ? END : PROBE, now(), now());
        this.nextMarker = now() + 5 * MILLISECOND;
      }
      return this.nextMarker;
    }
    const { window } = this;
    while (!this.over() && this.due() <= now()) {
      const due = this.due(), free = Math.max(this.free, due);
      const sent = this.write(this.sent, due, free);
      this.free = free + now() - sent; // the call was the system's
      if (due < window.begin) {
        this.first += 1;
      } else {
        this.offered += 1;
        this.firstSent ??= sent;
        add(this.sendLag, sent - due);
        add(this.ownLag, sent - free);
      }
      if (window.holds(sent)) this.series[window.place(sent)] += 1;
      this.sent += 1;
    }
    this.done = this.over();
    return this.done ? now() : this.due();
  }
  total() {
    const { id: publisher, sent, first: window_first, offered } = this;
    return { publisher, sent, window_first, window_end: sent, offered };
  }
}

const NAMES = ["expected", "delivered", "duplicated", "reordered", "corrupted", "unidentified", "negative"];

class Subscriber {
  constructor(client, work) {
    Object.assign(this, { work, body: body(work.payload_bytes), last: null, jitter: 0, pairs: 0, received: 0, arrived: 0 });
    this.hears = Array.from({ length: client.hears_count }, (_, at) => client.hears_first + at);
    this.seen = new Map(this.hears.map((publisher) => [publisher, new Set()]));
    [this.probed, this.ended, this.highest, this.before] = [new Set(), new Set(), new Map(), new Map()];
    [this.latency, this.intended, this.service] = [new Map(), new Map(), new Map()];
    this.counts = Object.fromEntries(NAMES.map((name) => [name, 0]));
    for (const endpoint of client.connect) {
      const { hostname, port } = new URL(endpoint.replace("tcp:", "http:"));
      messages(net.connect(Number(port), hostname), (message, at) => this.take(message, at));
    }
  }
  start(window) {
    this.window = window;
    this.delivered = new Array(window.slices).fill(0);
    this.slices = this.delivered.map(() => new Map());
  }
  take(message, at) {
    const { window, counts, work } = this, { length } = message;
    const word = (from) => (length >= from + 8 ? Number(message.readBigUInt64LE(from)) : 0);
    const [publisher, sequence] = length >= 16 ? [message.readUInt32LE(8), message.readUInt32LE(12)] : [];
    const seen = this.seen.get(publisher), intended = word(0);
    if (seen && (sequence === PROBE || sequence === END)) {
      (sequence === PROBE ? this.probed : this.ended).add(publisher);
      return;
    }
    const sound = window && seen && length === work.payload_bytes;
    if (!sound || intended < window.start || intended > at + SECOND) {
      counts.corrupted += 1;
      counts.unidentified += 1;
      return;
    }
    this.received += 1;
    const measured = window.holds(intended), twice = seen.has(sequence);
    seen.add(sequence);
    if (work.verify === "full" && measured && this.body.compare(message, 32, length, 32) !== 0) {
      counts.corrupted += 1;
      return;
    }
    if (twice) {
      counts.duplicated += measured;
      return;
    }
    counts.reordered += measured && sequence < (this.highest.get(publisher) ?? 0);
    this.highest.set(publisher, Math.max(sequence, this.highest.get(publisher) ?? 0));
    this.arrived += window.holds(at);
    this.last = at;
    const [sent, free] = [word(16), word(24)];
    const own = length >= 32 && intended <= free && free <= sent ? sent - free : 0;
    const latency = at - intended - own, before = this.before.get(publisher);
    this.before.set(publisher, [sequence, latency]);
    if (!measured) return;
    counts.negative += latency < 0;
    add(this.latency, Math.max(0, latency));
    add(this.intended, Math.max(0, at - intended));
    if (length >= 24) add(this.service, Math.max(0, at - sent));
    if (before && before[0] + 1 === sequence) {
      this.jitter += Math.abs(latency - before[1]);
      this.pairs += 1;
    }
    if (window.holds(at)) {
      this.delivered[window.place(at)] += 1;
      add(this.slices[window.place(at)], Math.max(0, latency));
    }
  }
  complete(totals) {
    return this.hears.every((id) => this.ended.has(id) || this.seen.get(id).size >= totals.get(id).sent);
  }
  close(totals) {
    for (const id of this.hears) {
      const { window_first, window_end, sent } = totals.get(id);
      const neverSent = [...this.seen.get(id)].filter((sequence) => sequence >= sent).length;
      this.counts.corrupted += neverSent;
      this.counts.unidentified += neverSent;
      this.counts.expected += window_end - window_first;
      for (const at of this.seen.get(id)) this.counts.delivered += window_first <= at && at < window_end;
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

let publishers = [], subscribers = [], said = new Set(), used = [];
let work, window, deadline, progress, bound = false, totals = new Map();

function once(word, fields) {
  if (!said.has(word)) say(word, fields);
  said.add(word);
}

async function prepare(order) {
  work = order.flows[0].workload;
  publishers = order.clients.filter((client) => client.role === "publisher").map((client) => new Publisher(client, work));
  subscribers = order.clients.filter((client) => client.role === "subscriber").map((client) => new Subscriber(client, work));
  await Promise.all(publishers.map((publisher) => publisher.bound));
  const endpoint = ({ id, listener }) => ({ role: "publisher", id, endpoint: `tcp://127.0.0.1:${listener.address().port}` });
  say("bound", { endpoints: publishers.map(endpoint) });
  bound = true;
}

function hear(command) {
  if (command.type === "hello" && command.protocol === 2) {
    const features = { patterns: ["pairs", "fan-out", "fan-in"], transports: ["tcp"] };
    const who = { name: "sockets-node", version: "1.0", pid: process.pid, drivers: ["kernel"] };
    say("hello", { protocol: 2, ...who, clock_ns: now(), versions: { node: process.version }, features });
  } else if (command.type === "prepare" && command.driver === "kernel") {
    prepare(command);
  } else if (command.type === "start" && command.at_ns > now()) {
    [window, progress] = [new Window(work, command.at_ns), command.at_ns + SECOND];
    for (const client of [...publishers, ...subscribers]) client.start(window);
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
  if (!bound || said.has("result")) return at + 5 * MILLISECOND;
  if (subscribers.every(({ hears, probed }) => hears.every((id) => probed.has(id)))) once("ready");
  const again = Math.min(at + 5 * MILLISECOND, ...publishers.map((publisher) => publisher.step()));
  const sum = (clients, of) => clients.reduce((all, client) => all + of(client), 0);
  if (window && used.length < 2 && at >= [window.begin, window.end][used.length]) used.push(usage());
  if (window && at >= progress) {
    progress += SECOND;
    say("progress", { sent: sum(publishers, ({ sent }) => sent), received: sum(subscribers, ({ received }) => received) });
  }
  if (window && publishers.length && publishers.every(({ done }) => done)) {
    once("sent", { publishers: publishers.map((publisher) => publisher.total()) });
  }
  if (deadline && (at >= deadline || subscribers.every((subscriber) => subscriber.complete(totals)))) once("drained");
  return again;
}

function result() {
  while (used.length < 2) used.push(usage());
  if (totals.size) for (const subscriber of subscribers) subscriber.close(totals);
  const of = (clients, name) => clients.filter((client) => client.window).map((client) => client[name]);
  const times = (clients, name) => histogram(of(clients, name));
  const total = (name) => of(subscribers, name).reduce((all, one) => all + one, 0);
  const columns = (lists) => (lists[0] ?? []).map((_, at) => lists.map((list) => list[at]));
  const sums = (lists) => columns(lists).map((column) => column.reduce((all, one) => all + one, 0));
  const only = (values) => values.filter((value) => value !== null);
  const [first, last] = [only(of(publishers, "firstSent")), only(of(subscribers, "last"))];
  const ledger = NAMES.map((name) => [name, of(subscribers, "counts").reduce((all, counts) => all + counts[name], 0)]);
  const flow = {
    publishers: publishers.map((publisher) => publisher.total()),
    ledger: Object.fromEntries(ledger), arrived: total("arrived"),
    first_sent_ns: first.length ? Math.min(...first) : null, last_arrival_ns: last.length ? Math.max(...last) : null,
    histograms: {
      latency: times(subscribers, "latency"), intended_latency: times(subscribers, "intended"),
      service_latency: times(subscribers, "service"), receive_lag: null,
      send_lag: times(publishers, "sendLag"), own_lag: times(publishers, "ownLag"),
    },
    jitter_sum_ns: total("jitter"), jitter_pairs: total("pairs"),
    series: {
      slice_ns: window?.slice ?? 0, sent: sums(of(publishers, "series")), delivered: sums(of(subscribers, "delivered")),
      latency: columns(of(subscribers, "slices")).map((counters) => histogram(counters, 2)),
    },
    stalls: null, // it cannot tell
  };
  const [before, after] = used;
  const between = (name) => (name.endsWith("_bytes") ? [before[name], after[name]] : after[name] - before[name]);
  once("result", {
    flows: [flow], usage: Object.fromEntries(Object.keys(after).map((name) => [name, between(name)])),
    versions: { library: "kernel", version: os.release() }, applied: { tcp_nodelay: true },
    loops: 1, pauses: null, remarks: [],
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
