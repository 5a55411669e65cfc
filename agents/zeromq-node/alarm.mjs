// The thread behind Alarm: sleeps until the instant that it was set to, and rings.
import { workerData } from "node:worker_threads";
import { MILLISECOND, now } from "./clock.mjs";

const { words, due } = workerData;
for (let set = 0; ;) {
  Atomics.wait(words, 0, set);
  set = Atomics.load(words, 0);
  for (let left; (left = due[0] - now()) > 0; set = Atomics.load(words, 0)) {
    Atomics.wait(words, 0, set, left / MILLISECOND);
  }
  Atomics.add(words, 1, 1);
  Atomics.notify(words, 1);
}
