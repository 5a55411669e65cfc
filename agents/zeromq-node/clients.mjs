// Clients: async functions on one event loop, each with a socket.
import { now, Pacer } from "./clock.mjs";
import { END, Incoming, PROBE, writeHeader } from "./books.mjs";
import { mostMessages, Schedule } from "./schedule.mjs";

const MARKER_EVERY_MS = 5;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

class Client {
  socket = null;
  killedAt = null;

  constructor(run, { id }) {
    Object.assign(this, { run, id });
  }
  async open(order) {
    const { socket, endpoint } = await this.run.binding.open(order);
    this.socket = socket;
    return endpoint;
  }
  /** Whether the client may go on: not when it was stopped or killed. */
  get alive() {
    return !this.run.stopped && this.killedAt === null;
  }
  kill(at) {
    this.killedAt = at;
    if ("linger" in this.socket) this.socket.linger = 0;
    this.socket.close();
  }
  /** True if the system took it; false if it has no room as yet, or this client is dead. */
  async send(message) {
    try {
      await this.socket.send(message);
      return true;
    } catch (error) {
      return this.refused(error);
    }
  }
  refused(error) {
    if (error.code === "EAGAIN" || !this.alive) return false;
    throw error;
  }
  /** Takes each message that comes, in the idiom that was asked for, until it is over. */
  async listen(take) {
    try {
      if (this.run.binding.idiom === "iterator") {
        for await (const frames of this.socket) await take(frames);
      } else {
        while (this.alive) await take(await this.socket.receive());
      }
    } catch (error) {
      if (this.alive) throw error;
    }
  }
}

export class Publisher extends Client {
  sent = 0;
  offered = 0;
  done = false;
  #first = null;
  #end = 0;
  #free = 0;
  #schedule = null;
  #message;
  #frames;

  constructor(run, order) {
    super(run, order);
    const { work, body } = run;
    this.#message = Buffer.from(body);
    this.#frames = [this.#message];
    if (work.rate !== "max") this.#schedule = new Schedule(work, this.id);
    this.copies = work.pattern === "pipeline" ? work.subscribers : 1;
    this.markerEvery = Math.min(1000, Math.max(MARKER_EVERY_MS, work.publishers * 0.1));
    this.most = mostMessages(work);
  }
  /** The message to send: a buffer that is kept if the binding copies it, else a new one. */
  write(sequence, intended, sent, free) {
    if (this.#message.length > this.run.binding.copiesAbove) this.#frames[0] = Buffer.from(this.#message);
    const { ahead } = this.run;
    writeHeader(this.#frames[0], intended + ahead, this.id, sequence, sent + ahead, free + ahead);
    return this.#frames;
  }
  async mark(sequence) {
    for (let copy = 0; copy < this.copies && this.alive; copy++) {
      const time = now();
      await this.send(this.write(sequence, time, time, time));
    }
  }
  async play() {
    while (this.alive && !this.run.window) {
      await this.mark(PROBE);
      await Promise.race([pause(this.markerEvery), this.run.started]);
    }
    await this.publish();
    while (this.alive) {
      await this.mark(END);
      await pause(this.markerEvery);
    }
  }
  /** Sends what is due. */
  async publish() {
    const { run } = this;
    const { work, window } = run;
    if (!this.alive) return;
    const giveUp = window.end + work.drain_ns;
    this.pacer = new Pacer(run.alarm, work, run.spinCores / run.publishers.length, window.begin);
    let time = now();
    let woke = 0;
    if (time < window.start) time = await this.pacer.until(window.start);
    while (this.alive && !this.over(time)) {
      const intended = this.#schedule ? window.start + this.#schedule.due : time;
      if (intended > time) {
        time = await this.pacer.until(Math.max(intended, woke + work.pacing_quantum_ns));
        woke = time;
      } else if (time >= giveUp) {
        break;
      } else {
        time = await this.offer(intended, time);
      }
    }
    if (this.alive) this.finish();
  }
  /** Offers a message once; the time after it. */
  async offer(intended, began) {
    const free = Math.max(intended, this.#free);
    const frames = this.write(this.sent, intended, began, free);
    let taken = true;
    try {
      await this.socket.send(frames); // not by send(), which would be one promise more for each message
    } catch (error) {
      taken = this.refused(error);
    }
    const ended = now();
    if (!this.alive) return ended;
    if (taken) this.accepted(intended, free, began);
    this.#free = taken ? free + ended - began : Math.max(this.#free, ended);
    return ended;
  }
  accepted(intended, free, began) {
    this.run.sends.sent(intended, free, began);
    if (intended >= this.run.window.begin) {
      this.#first ??= this.sent;
      this.#end = this.sent + 1;
      this.offered += 1;
    }
    this.sent += 1;
    this.#schedule?.advance();
  }
  /** What it waited for until now was the system. */
  waited(time) {
    this.#free = Math.max(this.#free, time);
  }
  over(time) {
    const { window } = this.run;
    if (window.count) return this.offered >= window.count || this.sent >= this.most;
    return (this.#schedule ? window.start + this.#schedule.due : time) >= window.end || this.sent >= this.most;
  }
  /** Ends it, with what was due until then and not sent. */
  finish(until = Infinity) {
    if (this.done) return;
    this.done = true;
    const { window } = this.run;
    while (window && this.#schedule && window.start + this.#schedule.due <= until && !this.over()) {
      if (window.start + this.#schedule.due >= window.begin) this.offered += 1;
      this.#schedule.advance();
    }
    this.run.look();
  }
  kill(at) {
    super.kill(at);
    this.finish(at);
  }
  total() {
    const first = this.#first ?? this.sent;
    const { id: publisher, sent, offered } = this;
    return { publisher, sent, window_first: first, window_end: Math.max(first, this.#end), offered };
  }
}

export class Subscriber extends Client {
  constructor(run, order) {
    super(run, order);
    this.incoming = new Incoming(run.receives, order.hears_first, order.hears_count);
  }
  get ready() {
    return this.incoming.unheard === 0;
  }
  async play() {
    const { run, incoming } = this;
    let asked = now();
    await this.listen(([message]) => {
      const time = now();
      incoming.take(message, time, incoming.listened(asked, time));
      if (!run.window || run.totals) run.look();
      asked = run.measures ? now() : time;
    });
  }
  complete(totals) {
    return this.killedAt !== null || this.incoming.complete(totals);
  }
  close(totals) {
    return this.incoming.close(totals, this.killedAt ?? Infinity);
  }
}

export class Requester extends Publisher {
  constructor(run, order) {
    super(run, order);
    this.incoming = new Incoming(run.receives, this.id, 1);
  }
  get ready() {
    return this.incoming.unheard === 0;
  }
  async play() {
    while (this.alive && !this.ready) {
      await this.mark(PROBE);
      await this.reply();
    }
    this.run.look();
    await this.run.started;
    await this.publish();
  }
  async offer(intended, began) {
    const sent = this.sent;
    await super.offer(intended, began);
    const time = sent < this.sent ? await this.reply() : now();
    this.waited(time);
    return time;
  }
  /** Waits for a reply; the time when it came, or when it was given up. */
  async reply() {
    let frames = null;
    try {
      frames = await this.socket.receive();
    } catch (error) {
      if (error.code !== "EAGAIN" && this.alive) throw error;
    }
    const time = now();
    if (frames && this.alive) this.incoming.take(frames[0], time, 0);
    return time;
  }
  close() {
    const totals = new Map([[this.id, this.total()]]);
    return this.incoming.close(totals, this.killedAt ?? Infinity);
  }
}

export class Replier extends Client {
  ready = true;

  async play() {
    await this.listen(async (frames) => {
      this.run.receives.received += 1;
      while (!(await this.send(frames)) && this.alive);
    });
  }
  complete() {
    return true;
  }
  close() {
    return [];
  }
}
