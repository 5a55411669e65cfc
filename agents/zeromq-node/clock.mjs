// The clock, and waking up by it.
import { Worker } from "node:worker_threads";

export const SECOND = 1e9;
export const MILLISECOND = 1e6;

const FIRST = 60_000; // of the margin before a due time, ns
const LONGEST = 200_000;
const SHORTEST = 2_000;
const STEP = 2_000;
const LATE_ONE_IN = 100;

/**
 * CLOCK_MONOTONIC in ns, as a number: exact until the machine has run for 104 days, to 2 ns after that.
 * hrtime() is as exact as hrtime.bigint(), costs two thirds of it, and its pair is never allocated where this is inlined.
 */
export function now() {
  const time = process.hrtime();
  return time[0] * SECOND + time[1];
}

/**
 * Wakes async functions at an instant. Node's own timers know whole milliseconds; a thread that waits
 * for a futex knows less than a hundredth of one, and wakes the event loop by another.
 */
export class Alarm {
  #words = new Int32Array(new SharedArrayBuffer(8)); // how often it was set, and rang
  #due = new Float64Array(new SharedArrayBuffer(8));
  #waiting = new Set();

  constructor() {
    const workerData = { words: this.#words, due: this.#due };
    new Worker(new URL("alarm.mjs", import.meta.url), { workerData }).unref();
    this.#ring();
  }

  /** Resolves at this instant, or as soon after it as the event loop comes round. */
  at(at) {
    return new Promise((wake) => {
      this.#waiting.add({ at, wake });
      if (this.#waiting.size === 1 || at < this.#due[0]) this.#set(at);
    });
  }

  #set(at) {
    this.#due[0] = at;
    Atomics.add(this.#words, 0, 1);
    Atomics.notify(this.#words, 0);
  }

  async #ring() {
    for (;;) {
      const wait = Atomics.waitAsync(this.#words, 1, Atomics.load(this.#words, 1));
      const time = now();
      let next = Infinity;
      for (const one of this.#waiting) {
        if (one.at > time) {
          next = Math.min(next, one.at);
        } else {
          this.#waiting.delete(one);
          one.wake();
        }
      }
      if (next < Infinity) this.#set(next);
      if (wait.async) await wait.value;
    }
  }
}

/**
 * How one publisher waits for a due time: asleep until shortly before it, then watching the clock, as far as its
 * budget allows. The margin follows the 99th percentile of what waking up takes (Robbins and Monro, 1951).
 */
export class Pacer {
  #wake = FIRST;
  #most;
  #from;
  #alarm;
  spent = 0;

  constructor(alarm, { rate, pacing }, spinCores, from) {
    this.#alarm = alarm;
    this.#from = from;
    this.#most = pacing === "hybrid" && rate !== "max" ? Math.min(LONGEST, (spinCores / rate) * SECOND) : 0;
  }

  get margin() {
    return Math.min(this.#wake, this.#most);
  }

  /** Waits until this instant; the time after it. */
  async until(due) {
    const alarm = due - this.margin;
    let time = now();
    if (alarm > time) {
      await this.#alarm.at(alarm);
      time = now();
      const late = time - alarm > this.#wake;
      this.#wake += late ? STEP * (1 - 1 / LATE_ONE_IN) : -STEP / LATE_ONE_IN;
      this.#wake = Math.max(SHORTEST, Math.min(LONGEST, this.#wake));
    }
    const awake = time;
    while (time < due) time = now();
    if (awake >= this.#from && awake < due) this.spent += due - awake;
    return time;
  }
}
