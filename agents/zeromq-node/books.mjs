// What all clients of this process measured together: one thread writes, so nothing is shared.
import { deflateRawSync } from "node:zlib";
import { SECOND } from "./clock.mjs";
import { measuresLatency, mostMessages, stallOf } from "./schedule.mjs";

export const PROBE = 0xffffffff;
export const END = 0xfffffffe;
const WORD = 2 ** 32;
const LONGEST_BITS = 47; // of a time that a histogram holds: 39 hours
const WAITED = 5_000; // a call that takes longer, ns, may have waited

/** Counts of times in buckets whose width is a fixed part of the time: of 3 digits, or 2. */
export class Histogram {
  constructor(digits = 3) {
    this.bits = digits === 3 ? 11 : 8;
    this.half = 1 << (this.bits - 1);
    this.counts = new Uint32Array((LONGEST_BITS - this.bits + 2) * this.half);
  }
  record(value) {
    const log = value < WORD ? 31 - Math.clz32(value) : 63 - Math.clz32(value / WORD);
    const shift = Math.max(0, log + 1 - this.bits);
    this.counts[shift * this.half + Math.floor(value / 2 ** shift)] += 1;
  }
  /** [[value, count], ...], or null if nothing was counted. */
  pairs() {
    const pairs = [];
    this.counts.forEach((count, index) => {
      if (count === 0) return;
      const shift = Math.max(0, Math.floor(index / this.half) - 1);
      pairs.push([Math.floor((index - shift * this.half + (shift ? 0.5 : 0)) * 2 ** shift), count]);
    });
    return pairs.length ? pairs : null;
  }
}

/** Which sequences have come: a bit each. */
class Seen {
  #bytes = new Uint8Array(1 << 13);
  end = 0;

  /** True if it is new. */
  mark(sequence) {
    const at = sequence >>> 3;
    if (at >= this.#bytes.length) {
      const more = new Uint8Array(2 ** Math.ceil(Math.log2(at + 1)));
      more.set(this.#bytes);
      this.#bytes = more;
    }
    if (sequence >= this.end) this.end = sequence + 1;
    const bit = 1 << (sequence & 7);
    const fresh = (this.#bytes[at] & bit) === 0;
    this.#bytes[at] |= bit;
    return fresh;
  }
  count(first, end) {
    let count = 0;
    for (let at = first; at < Math.min(end, this.end); at++) count += (this.#bytes[at >>> 3] >> (at & 7)) & 1;
    return count;
  }
  packed() {
    return deflateRawSync(this.#bytes.subarray(0, Math.ceil(this.end / 8))).toString("base64");
  }
}

/** What publishers and requesters write. */
export class SendBook {
  firstSent = null;
  ownLagMost = null; // since the last `progress`

  constructor(work, window) {
    this.window = window;
    this.series = new Array(window.slices).fill(0);
    if (work.rate !== "max") this.times = { send_lag: new Histogram(), own_lag: new Histogram() };
  }
  sent(intended, free, at) {
    const { window, times } = this;
    if (window.holds(at)) this.series[window.place(at)] += 1;
    if (times) this.ownLagMost = Math.max(this.ownLagMost, at - free);
    if (intended < window.begin) return;
    this.firstSent ??= at;
    if (!times) return;
    times.send_lag.record(at - intended);
    times.own_lag.record(at - free);
  }
}

/** What subscribers and requesters write. */
export class ReceiveBook {
  counts = { expected: 0, delivered: 0, duplicated: 0, reordered: 0, corrupted: 0, unidentified: 0, negative: 0 };
  received = 0;
  arrived = 0;
  lastArrival = null;
  jitter = 0;
  pairs = 0;
  stalls = { count: 0, longest_ns: 0, longest_at_ns: 0 };
  window = null;

  /** `ahead`: what is added to this machine's clock in messages, ns. */
  constructor(work, body, ahead) {
    this.work = work;
    this.body = body;
    this.ahead = ahead;
    this.bodyAt = work.payload_bytes >= 32 ? 32 : Math.min(24, work.payload_bytes);
    this.most = mostMessages(work);
  }
  start(window) {
    this.window = window;
    this.delivered = new Array(window.slices).fill(0);
    this.latency = new Array(window.open ? 1 : window.slices).fill(null);
    if (!measuresLatency(this.work)) return;
    const times = ["latency", "intended_latency", "service_latency", "receive_lag"];
    this.times = Object.fromEntries(times.map((name) => [name, new Histogram()]));
  }
  damaged() {
    this.counts.corrupted += 1;
    this.counts.unidentified += 1;
  }
  measure(stream, sequence, intended, own, sent, at, listened) {
    const { times, window } = this;
    if (at < intended) {
      this.counts.negative += 1;
      return;
    }
    const latency = Math.max(0, at - intended - own);
    times.latency.record(latency);
    times.intended_latency.record(at - intended);
    if (sent > 0 && sent <= at) times.service_latency.record(at - sent);
    if (listened > 0) times.receive_lag.record(at - listened);
    if (stream.before >= 0 && (this.work.pattern === "pipeline" || stream.before + 1 === sequence)) {
      this.jitter += Math.abs(latency - stream.beforeLatency);
      this.pairs += 1;
    }
    stream.before = sequence;
    stream.beforeLatency = latency;
    const place = window.holds(at) ? window.place(at) : this.latency.length;
    if (place < this.latency.length) (this.latency[place] ??= new Histogram(2)).record(latency);
  }
}

/** What one subscriber, or the receiving side of a requester, heard of whom. */
export class Incoming {
  #book;
  #streams;
  #first;
  #stall;
  #lastAny = 0;
  #taken = Infinity;
  #backlog = 0;
  #idle = 0;
  unheard;

  constructor(book, first, count) {
    this.#book = book;
    this.#first = first;
    this.#stall = stallOf(book.work, count);
    this.#streams = Array.from({ length: count }, () => ({
      seen: new Seen(),
      distinct: 0,
      next: 0,
      heard: false,
      ended: false,
      before: -1,
      beforeLatency: 0,
    }));
    this.unheard = count;
  }

  /**
   * Since when a message taken at `at` can have been there: the call began at `asked`. One that came at once may have
   * waited while the loop saw to those before it; one that was waited for came later than the loop last slept.
   */
  listened(asked, at) {
    this.#backlog += Math.max(0, asked - this.#taken);
    this.#taken = at;
    const waited = at - asked;
    if (waited > WAITED) {
      const { idleTime } = performance.nodeTiming; // of the event loop, ms
      const slept = (idleTime - this.#idle) * 1e6;
      this.#idle = idleTime;
      this.#backlog = slept > 0 ? Math.max(0, waited - slept) : this.#backlog + waited;
    } else {
      this.#backlog += waited;
    }
    return at - this.#backlog;
  }

  /** A message came. */
  take(message, at, listened) {
    const book = this.#book;
    const { work, window, counts } = book;
    const { length } = message;
    const stream = length >= 16 ? this.#streams[message.readUInt32LE(8) - this.#first] : undefined;
    if (stream === undefined || length !== work.payload_bytes) return book.damaged();
    const sequence = message.readUInt32LE(12);
    if (sequence >= END) {
      if (sequence === END) stream.ended = true;
      else if (!stream.heard) this.unheard -= 1;
      stream.heard ||= sequence === PROBE;
      return;
    }
    const intended = word(message, 0) - book.ahead;
    if (!window || intended < window.start || intended > at + SECOND || sequence >= book.most) return book.damaged();
    const measured = window.holds(intended);
    book.received += 1;
    if (!stream.seen.mark(sequence)) {
      if (measured) counts.duplicated += 1;
      return;
    }
    stream.distinct += 1;
    if (sequence >= stream.next) stream.next = sequence + 1;
    else if (measured) counts.reordered += 1;
    const { body, bodyAt } = book;
    const sound = work.verify !== "full" || body.compare(message, bodyAt, length, bodyAt) === 0;
    if (measured) {
      book.lastArrival = at;
      if (!sound) counts.corrupted += 1;
    }
    if (window.holds(at)) {
      if (measured || !window.open) {
        book.arrived += 1;
        const place = window.place(at);
        if (place < window.slices) book.delivered[place] += 1;
      }
      this.#silence(at);
    }
    if (!measured || !sound || !book.times) return;
    const sent = length >= 24 ? word(message, 16) - book.ahead : 0;
    const free = length >= 32 ? word(message, 24) - book.ahead : 0;
    const own = length >= 32 && intended <= free && free <= sent ? sent - free : 0;
    book.measure(stream, sequence, intended, own, sent, at, listened);
  }

  #silence(at) {
    const { window, stalls } = this.#book;
    const from = Math.max(this.#lastAny, window.begin);
    this.#lastAny = at;
    if (at - from <= this.#stall) return;
    stalls.count += 1;
    if (at - from <= stalls.longest_ns) return;
    stalls.longest_ns = at - from;
    stalls.longest_at_ns = from - window.begin;
  }

  /** Whether nothing more can come. */
  complete(totals) {
    const competing = this.#book.work.pattern === "pipeline";
    return this.#streams.every(({ ended, distinct }, at) => {
      return ended || (!competing && distinct >= (totals.get(this.#first + at)?.sent ?? Infinity));
    });
  }

  /** Closes the ledger; what came in a pipeline, by publisher. `until`: when its client was killed. */
  close(totals, until = Infinity) {
    const { counts, work, window } = this.#book;
    const competing = work.pattern === "pipeline";
    this.#streams.forEach(({ seen }, at) => {
      const total = totals.get(this.#first + at);
      if (!total) return;
      const unsent = seen.count(total.sent, seen.end);
      counts.corrupted += unsent;
      counts.unidentified += unsent;
      counts.delivered += seen.count(total.window_first, total.window_end);
      if (!competing) counts.expected += total.window_end - total.window_first;
    });
    if (window && !window.open && !competing) this.#silence(Math.max(this.#lastAny, Math.min(window.end, until)));
    const bits = this.#streams.map(({ seen }, at) => ({ publisher: this.#first + at, bits: seen.packed() }));
    return competing ? bits : [];
  }
}

/** Eight bytes, little-endian. */
function word(message, at) {
  return message.readUInt32LE(at) + message.readUInt32LE(at + 4) * WORD;
}

/** The header of a message. */
export function writeHeader(message, intended, publisher, sequence, sent, free) {
  const { length } = message;
  writeWord(message, 0, intended);
  message.writeUInt32LE(publisher, 8);
  message.writeUInt32LE(sequence, 12);
  if (length >= 24) writeWord(message, 16, sent);
  if (length >= 32) writeWord(message, 24, free);
}

function writeWord(message, at, value) {
  const high = Math.floor(value / WORD);
  message.writeUInt32LE(value - high * WORD, at);
  message.writeUInt32LE(high, at + 4);
}
