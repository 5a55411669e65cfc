// What is due when: pure functions of the workload, in whole nanoseconds.
import { MILLISECOND, SECOND } from "./clock.mjs";

const KILOSECOND = 1000n * BigInt(SECOND);
const MASK = (1n << 64n) - 1n;
const MOST_SLICES = 3600;
const FASTEST = 50e6; // messages a second that a ledger has room for where no schedule says how many there are

class SplitMix64 {
  constructor(state) {
    this.state = state;
  }
  next() {
    this.state = (this.state + 0x9e3779b97f4a7c15n) & MASK;
    let word = ((this.state ^ (this.state >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
    word = ((word ^ (word >> 27n)) * 0x94d049bb133111ebn) & MASK;
    return word ^ (word >> 31n);
  }
}

/** The bytes that every message carries. */
export function body(length) {
  const bytes = Buffer.alloc(length + 8);
  const words = new SplitMix64(0x7075626d61726b31n);
  for (let at = 0; at < length; at += 8) bytes.writeBigUInt64LE(words.next(), at);
  return Buffer.from(bytes.subarray(0, length));
}

const perKilosecond = ({ rate }) => BigInt(Math.round(rate * 1000));
const burstOf = ({ arrival }) => (arrival.startsWith("burst:") ? Number(arrival.slice(6)) : 1);

/** Latency is not measured where it is the length of a queue. */
export const measuresLatency = ({ rate, pattern }) => rate !== "max" || pattern === "request-reply";

/** The measured part of a run; a message belongs to it by its intended time. Of a count at `max` it is open. */
export function windowOf(work, start) {
  const { extent, rate, warmup_ns } = work;
  let length = extent.time_ns ?? Infinity;
  if (extent.count && rate !== "max") length = Number((BigInt(extent.count) * KILOSECOND) / perKilosecond(work));
  const begin = start + warmup_ns;
  const end = begin + length;
  const open = length === Infinity;
  const finest = Math.max(10 * MILLISECOND, Math.ceil(length / MOST_SLICES));
  const slice = open ? SECOND : Math.max(finest, Math.min(SECOND, Math.floor(length / 20)));
  return {
    start,
    begin,
    end,
    open,
    slice,
    count: extent.count,
    slices: open ? MOST_SLICES : Math.max(1, Math.ceil(length / slice)),
    holds: (at) => begin <= at && at < end,
    place: (at) => Math.floor((at - begin) / slice),
  };
}

/** The silence that counts as a stall, ns. */
export function stallOf(work, heard) {
  if (work.rate === "max") return SECOND / 2;
  const sharing = work.pattern === "pipeline" ? work.subscribers : 1;
  const publishers = work.pattern === "request-reply" ? 1 : Math.max(1, heard);
  return Math.max(100 * MILLISECOND, (20 * burstOf(work) * sharing * SECOND) / (work.rate * publishers));
}

/** How many messages of one publisher can come, generously. */
export function mostMessages(work) {
  const seconds = (work.warmup_ns + (work.extent.time_ns ?? 0)) / SECOND;
  const mean = seconds * (work.rate === "max" ? FASTEST : work.rate) + (work.extent.count ?? 0);
  return Math.min(0xfffffffe, Math.ceil(mean + 12 * Math.sqrt(mean) + 64 + burstOf(work)));
}

/** When the messages of publisher `id` are due, after the start. */
export class Schedule {
  #advance;

  constructor(work, id) {
    const perKs = perKilosecond(work);
    if (work.arrival === "poisson") {
      const random = new SplitMix64(new SplitMix64(work.seed ^ (BigInt(id) << 32n)).next());
      let sum = 0;
      this.#advance = () => {
        sum += (-Math.log(1 - Number(random.next() >> 11n) / 2 ** 53) * Number(KILOSECOND)) / Number(perKs);
        this.due = Math.floor(sum);
      };
      this.#advance();
      return;
    }
    const burst = burstOf(work);
    const total = BigInt(burst) * KILOSECOND;
    const [period, rest, whole] = [total / perKs, total % perKs, perKs].map(Number);
    this.due = Number((BigInt(period) * BigInt(id)) / BigInt(work.publishers));
    let [left, carried] = [burst, 0];
    this.#advance = () => {
      left -= 1;
      if (left > 0) return;
      left = burst;
      carried += rest;
      this.due += period + (carried >= whole ? 1 : 0);
      carried -= carried >= whole ? whole : 0;
    };
  }

  /** On to the next message. */
  advance() {
    this.#advance();
  }
}
