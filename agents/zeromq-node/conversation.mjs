// Plays publishers and subscribers over zeromq.js: an agent of pubmark, by docs/agent-protocol.md.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { PerformanceObserver } from "node:perf_hooks";
import { ReceiveBook, SendBook } from "./books.mjs";
import { Publisher, Replier, Requester, Subscriber } from "./clients.mjs";
import { Alarm, MILLISECOND, now, SECOND } from "./clock.mjs";
import { body, windowOf } from "./schedule.mjs";
import { Null, ZeroMq } from "./sockets.mjs";

const WATCH_EVERY_MS = 50;
const PAUSE = 150 * MILLISECOND;
const ROLES = { publisher: Publisher, subscriber: Subscriber, requester: Requester, replier: Replier };
const PATTERNS = ["pairs", "fan-out", "fan-in", "request-reply", "pipeline"];

/** An event of the protocol, written whole: a pipe takes 64 KiB at a time. */
function say(type, fields = {}) {
  let line = Buffer.from(JSON.stringify({ type, ...fields }) + "\n");
  while (line.length > 0) {
    try {
      line = line.subarray(fs.writeSync(1, line));
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
}

function fatal(message, too_late = false) {
  say("error", { message, fatal: true, too_late });
  process.exit(1);
}

/** What the process has used so far; memory is read beside the event loop, which it would hold up. */
function reading() {
  const used = process.resourceUsage();
  const cpu = { cpu_ns: (used.userCPUTime + used.systemCPUTime) * 1000, user_ns: used.userCPUTime * 1000 };
  const switches = {
    voluntary_switches: used.voluntaryContextSwitches,
    involuntary_switches: used.involuntaryContextSwitches,
  };
  return { at_ns: now(), ...cpu, ...switches };
}

async function memory() {
  const lines = await fs.promises.readFile("/proc/self/smaps_rollup", "utf8");
  const bytes = (name) => 1024 * Number(new RegExp(`^${name}: *(\\d+)`, "m").exec(lines)[1]);
  return { rss: bytes("Rss"), uss: bytes("Private_Clean") + bytes("Private_Dirty") };
}

/** Counts gaps: in which this event loop did not come round, or in which V8 collected garbage. */
class Gaps {
  count = 0;
  total = 0;
  longest = 0;
  longestAt = 0;

  add(from, length) {
    this.count += 1;
    this.total += length;
    if (length <= this.longest) return;
    this.longest = length;
    this.longestAt = from;
  }
  figures(begin) {
    return { count: this.count, longest_ns: this.longest, longest_at_ns: Math.max(0, this.longestAt - begin) };
  }
}

/** One run: its clients, and what becomes true of them. */
class Run {
  window = null;
  totals = null;
  stopped = false;
  publishers = [];
  listeners = [];
  remarks = [];
  #said = new Set();
  #readings = [];
  #memory = [];
  #pauses = new Gaps();
  #collections = new Gaps();
  #crashed = false;

  constructor(work, order, binding) {
    Object.assign(this, { work, order, binding, body: body(work.payload_bytes), spinCores: order.spin_cores ?? 0 });
    this.measures = work.rate !== "max" || work.pattern === "request-reply";
    this.ahead = order.clock_offset_ns ?? 0;
    this.receives = new ReceiveBook(work, this.body, this.ahead);
    this.alarm = new Alarm();
    this.started = new Promise((resolve) => (this.resolveStarted = resolve));
  }
  async prepare() {
    const endpoints = [];
    // Who connects may be named before who binds.
    for (const order of [...this.order.clients].sort((one, other) => Number(!one.bind) - Number(!other.bind))) {
      const client = new ROLES[order.role](this, order);
      if (client instanceof Publisher) this.publishers.push(client);
      if (!(client instanceof Publisher) || client instanceof Requester) this.listeners.push(client);
      const endpoint = await client.open(order);
      if (order.bind) endpoints.push({ role: order.role, id: order.id, endpoint });
    }
    this.#pin();
    this.#once("bound", { endpoints });
    for (const client of this.clients) client.play().catch((error) => fatal(`client ${client.id}: ${error.message}`));
    this.look();
  }
  get clients() {
    return new Set([...this.publishers, ...this.listeners]);
  }
  /** The event loop, and nothing else, on the processors that are given. */
  #pin() {
    const { publisher_cpus = [], subscriber_cpus = [] } = this.order;
    const cpus = [...(this.publishers.length ? publisher_cpus : []), ...(this.listeners.length ? subscriber_cpus : [])];
    if (cpus.length === 0) return;
    try {
      execFileSync("taskset", ["-cp", cpus.join(","), String(process.pid)], { stdio: "ignore" });
    } catch (error) {
      this.remarks.push(`it was not pinned to processors ${cpus.join(",")}: ${error.message.split("\n")[0]}`);
    }
  }
  #once(word, fields) {
    if (!this.#said.has(word)) say(word, fields);
    this.#said.add(word);
  }
  start(at) {
    this.window = windowOf(this.work, at);
    this.sends = new SendBook(this.work, this.window);
    this.receives.start(this.window);
    this.resolveStarted();
    const { begin, end, open } = this.window;
    this.alarm.at(begin).then(() => this.#read());
    if (!open) this.alarm.at(end).then(() => this.#read());
    this.alarm.at(at).then(() => setInterval(() => this.#progress(), 1000));
    this.#watch();
  }
  async #read() {
    if (this.stopped) return;
    this.#readings.push(reading());
    this.#memory.push(await memory());
  }
  #progress() {
    if (this.stopped) return;
    const sent = this.publishers.reduce((all, publisher) => all + publisher.sent, 0);
    const { ownLagMost } = this.sends;
    this.sends.ownLagMost = null;
    say("progress", {
      sent,
      received: this.receives.received,
      ...(ownLagMost !== null && { own_lag_max_ns: ownLagMost }),
    });
    if (this.window.open && this.#readings.length > 0) this.#readings.push(reading());
  }
  /** Looks for times at which nothing of this process ran, and for those that V8 tells. */
  #watch() {
    const { begin, end } = this.window;
    let last = now();
    setInterval(() => {
      const time = now();
      const [from, to] = [Math.max(last, begin), Math.min(time, end)];
      if (to - from >= PAUSE) this.#pauses.add(from, to - from - WATCH_EVERY_MS * MILLISECOND);
      last = time;
    }, WATCH_EVERY_MS);
    const origin = now() - performance.now() * MILLISECOND;
    this.collected = (entries) => {
      for (const { startTime, duration } of entries) {
        const from = Math.round(origin + startTime * MILLISECOND);
        if (this.window.holds(from)) this.#collections.add(from, Math.round(duration * MILLISECOND));
      }
    };
    this.observer = new PerformanceObserver((list) => this.collected(list.getEntries()));
    this.observer.observe({ entryTypes: ["gc"] });
  }
  /** Says what has become true. */
  look() {
    if (!this.#said.has("bound") || this.stopped) return;
    if (this.listeners.every(({ ready }) => ready)) this.#once("ready");
    if (this.window && this.publishers.length && this.publishers.every(({ done }) => done)) {
      this.#once("sent", { publishers: this.publishers.map((publisher) => publisher.total()) });
    }
    if (this.totals && (this.#crashed || this.#heardAll())) this.#once("drained");
  }
  #heardAll() {
    return this.listeners.every((client) => client instanceof Publisher || client.complete(this.totals));
  }
  drain({ publishers, deadline_ns }) {
    this.totals = new Map(publishers.map((total) => [total.publisher, total]));
    this.alarm.at(deadline_ns).then(() => !this.stopped && this.#once("drained"));
    this.look();
  }
  crash() {
    this.#crashed = true;
    const time = now();
    for (const client of this.clients) client.kill(time);
  }
  async stop() {
    this.stopped = true;
    for (const publisher of this.publishers) publisher.finish();
    if (this.observer) this.collected(this.observer.takeRecords());
    while (this.#readings.length < 2 || this.#memory.length < 2) {
      this.#readings.push(reading());
      this.#memory.push(await memory());
    }
    if (this.window?.open) this.#readings.push(reading());
    say("result", this.#result());
  }
  close() {
    for (const { socket } of this.clients) {
      if (socket && "linger" in socket && !socket.closed) socket.linger = 0;
    }
  }
  #usage() {
    const [first] = this.#readings;
    const since = this.#readings.map((one) => {
      const used = Object.keys(first).filter((name) => name !== "at_ns");
      return { at_ns: one.at_ns, ...Object.fromEntries(used.map((name) => [name, one[name] - first[name]])) };
    });
    const { at_ns, ...used } = since.at(-1);
    const samples = { rss_bytes: this.#memory.map(({ rss }) => rss), uss_bytes: this.#memory.map(({ uss }) => uss) };
    const course = since.map((one) => ({ ...one, samples: 1 }));
    return { wall_ns: at_ns - first.at_ns, ...used, ...samples, ...(this.window?.open && { course }) };
  }
  #flow() {
    const { sends, receives, window, publishers, totals } = this;
    const closing = this.listeners.filter((client) => totals || client instanceof Requester);
    const seen = closing.flatMap((client) => client.close(totals));
    const times = { ...sends?.times, ...receives.times };
    const names = ["latency", "intended_latency", "service_latency", "send_lag", "own_lag", "receive_lag"];
    const pacers = publishers.map(({ pacer }) => pacer).filter(Boolean);
    const heard = this.listeners.length > 0 && window;
    const last = (counts) => (window.open ? counts.slice(0, counts.findLastIndex((count) => count > 0) + 1) : counts);
    return {
      publishers: publishers.map((publisher) => publisher.total()),
      ledger: receives.counts,
      arrived: receives.arrived,
      last_arrival_ns: receives.lastArrival,
      first_sent_ns: sends?.firstSent ?? null,
      histograms: Object.fromEntries(names.map((name) => [name, times[name]?.pairs() ?? null])),
      pacing:
        (pacers.length && {
          budget_cores: this.spinCores,
          spent_cores:
            pacers.reduce((all, { spent }) => all + spent, 0) / (window.open ? SECOND : window.end - window.begin),
          margin_ns: Math.round(Math.max(...pacers.map(({ margin }) => margin))),
        }) ||
        null,
      jitter_sum_ns: receives.jitter,
      jitter_pairs: receives.pairs,
      series: {
        slice_ns: window?.slice ?? 0,
        sent: publishers.length && window ? last(sends.series) : [],
        delivered: heard ? last(receives.delivered) : [],
        latency: heard && receives.times ? receives.latency.map((one) => one?.pairs() ?? null) : [],
      },
      stalls: receives.stalls,
      seen,
    };
  }
  #result() {
    const { binding } = this;
    const begin = this.window?.begin ?? 0;
    const { total, count } = this.#collections;
    const node = `node ${process.versions.node}`;
    const flags = [...process.execArgv, process.env.NODE_OPTIONS].filter(Boolean).join(" ");
    return {
      flows: [this.#flow()],
      usage: this.#usage(),
      versions: { ...binding.versions(), runtime: `${node}, V8 ${process.versions.v8}` },
      applied: binding.applied,
      loops: 1,
      pauses: this.#pauses.figures(begin),
      remarks: this.remarks,
      runtime: { pauses: { ...this.#collections.figures(begin), total_ns: total }, collections: count },
      made: {
        language: "JavaScript",
        runtime: `${node}, V8 ${process.versions.v8}`,
        ...binding.made(),
        call: "async",
        memory: "garbage collected",
        flags: flags || "none: V8's defaults",
      },
    };
  }
}

/** The conversation. */
class Agent {
  run = null;

  constructor(library) {
    this.drivers = library ? { zeromq: ZeroMq, null: Null } : { null: Null };
    this.library = library;
  }
  hear(line) {
    let command;
    try {
      command = JSON.parse(line);
    } catch (error) {
      return say("error", { message: `this is no command: ${error.message}`, fatal: false });
    }
    const { type } = command ?? {};
    if (type === "hello") return this.#greet(command);
    if (type === "prepare" && !this.run) return this.#prepare(command, line);
    if (type === "exit") return leave(0, this.run);
    if (type === "start" && this.run) {
      if (!(command.at_ns > now())) fatal("start: its instant has passed", true);
      return this.run.start(command.at_ns);
    }
    if (["drain", "crash", "stop"].includes(type) && this.run) return this.run[type](command);
    fatal(`this cannot be done: ${line.slice(0, 200)}`);
  }
  #greet({ protocol }) {
    if (protocol !== 2) fatal(`protocol ${protocol} is asked for; this agent speaks version 2: update the older one`);
    const { node, v8 } = process.versions;
    const library = this.library && { "zeromq.js": this.library.version, libzmq: this.library.zmq.version };
    say("hello", {
      protocol: 2,
      name: "zeromq-node",
      version: "1.0",
      pid: process.pid,
      clock_ns: now(),
      drivers: Object.keys(this.drivers),
      options: Object.fromEntries(Object.entries(this.drivers).map(([name, driver]) => [name, driver.options])),
      versions: { node, v8, ...library },
      features: {
        patterns: PATTERNS,
        transports: Object.values(this.drivers)[0].transports,
        arrivals: ["uniform", "poisson", "burst"],
        verification: ["header", "full"],
        pacing: ["sleep", "hybrid"],
        profiles: ["constant", "max"],
        flows: 1,
        pauses: true,
        crash: true,
        clock_offset: true,
      },
    });
  }
  #prepare(order, line) {
    const { driver, options, flows } = order;
    if (!(driver in this.drivers)) fatal(`there is no driver ${driver} here: ${Object.keys(this.drivers).join(", ")}`);
    const unknown = Object.keys(options).filter((name) => !this.drivers[driver].options.includes(name));
    if (unknown.length) fatal(`${driver} knows no option ${unknown.join(", ")}`);
    if (flows.length !== 1) fatal(`${flows.length} flows are asked for: this agent plays one`);
    const { workload: work } = flows[0];
    work.seed = BigInt(/"seed"\s*:\s*(\d+)/.exec(line)?.[1] ?? 0); // uses bits that a number has not
    if (!PATTERNS.includes(work.pattern)) fatal(`there is no pattern ${work.pattern} here: ${PATTERNS.join(", ")}`);
    const binding = driver === "null" ? new Null(work, options) : new ZeroMq(this.library, work, options);
    this.run = new Run(work, order, binding);
    this.run.prepare().catch((error) => fatal(error.message));
  }
}

/** Ends the process at once, whatever its clients do. */
function leave(status, run) {
  run?.close(); // else the library would wait for its linger
  process.exit(status);
}

/** The coordinator has gone: nobody else tidies up. */
function abandon(run) {
  const scratch = process.env.PUBMARK_SCRATCH ?? "";
  const ours = path.isAbsolute(scratch) && path.basename(scratch).startsWith("pubmark-");
  if (ours && fs.existsSync(path.join(scratch, "lock"))) fs.rmSync(scratch, { recursive: true, force: true });
  leave(1, run);
}

/** Takes orders until there are none any more. */
export function play() {
  let library = null;
  try {
    if (process.argv[2] !== "null") library = ZeroMq.load();
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
  const agent = new Agent(library);
  process.on("uncaughtException", (error) => fatal(error.message));
  let orders = "";
  process.stdin.setEncoding("utf8");
  process.stdin.on("data", (data) => {
    const lines = (orders + data).split("\n");
    orders = lines.pop();
    for (const line of lines) agent.hear(line);
  });
  process.stdin.on("end", () => abandon(agent.run));
}
