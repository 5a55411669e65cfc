/** A page that is served by a program that is still at work asks it how far it
 *  is, and for new data whenever a run has ended. */
import type { App } from "./app";
import { adopt, type Status } from "./data";
import { fill, h } from "./dom";
import { quantity } from "./format";
import type { Page } from "./model";
import { clean } from "./text";

/** Between two questions, ms. */
const POLL_MS = 2_000;
/** Longest wait for an answer, ms. */
const ANSWER_MS = 10_000;

interface Data {
  page: Page;
  records: string[][];
}

/** Questions after the end, for what the last run left. */
const LAST_TURNS = 5;

/** Asks until the program says that it is done, and goes on asking when it is
 *  gone: it may come back. */
export function follow(app: App): void {
  const { strip } = app;
  strip.hidden = false;
  strip.setAttribute("role", "status");
  strip.setAttribute("aria-live", "off");
  let etag: string | null = null;
  let last: Date | null = null;
  let turns = LAST_TURNS;

  const renew = async (): Promise<void> => {
    const answer = await fetch("/data.json", { cache: "no-store", headers: etag === null ? {} : { "If-None-Match": etag }, signal: AbortSignal.timeout(3 * ANSWER_MS) });
    // Nothing newer, or nothing at all yet: a later turn asks again.
    if (answer.status === 304 || answer.status === 503) return;
    if (!answer.ok) throw new Error(`the program answered ${answer.status}`);
    const data = (await answer.json()) as Data;
    etag = answer.headers.get("ETag");
    adopt(data.records);
    app.replace(data.page);
  };

  const turn = async (): Promise<void> => {
    try {
      const answer = await fetch("/status.json", { cache: "no-store", signal: AbortSignal.timeout(ANSWER_MS) });
      if (!answer.ok) throw new Error(`the program answered ${answer.status}`);
      const status = (await answer.json()) as Status;
      last = new Date();
      draw(strip, status);
      // The data is made anew between runs, a moment after the count has risen.
      if (status.done !== app.runs()) await renew();
      turns = status.running ? LAST_TURNS : turns - 1;
      if (turns === 0 || (!status.running && status.done === app.runs())) return;
    } catch {
      gone(strip, last);
    }
    window.setTimeout(() => void turn(), POLL_MS);
  };
  void turn();
}

function draw(strip: HTMLElement, status: Status): void {
  strip.classList.remove("gone");
  const part = Math.max(0, Math.min(1, status.runs > 0 ? status.done / status.runs : 0));
  const left = status.eta_s === null ? null : h("span", null, `${duration(status.eta_s)} left`);
  fill(
    strip,
    h("span", { class: status.running ? "pulse" : "pulse off", "aria-hidden": "true" }),
    h("b", null, status.running ? "running" : "finished"),
    status.running ? h("span", { class: "label" }, clean(status.label, 120)) : null,
    status.running ? h("span", null, clean(status.phase, 40)) : null,
    status.running ? h("span", null, `sent ${quantity(status.sent_per_s, "per_s")}, received ${quantity(status.received_per_s, "per_s")}`) : null,
    status.running && status.lag_ns !== null ? h("span", null, `lag ${quantity(status.lag_ns, "ns")}`) : null,
    h("span", { class: "progress" }, `${status.done.toLocaleString("en")} of ${status.runs.toLocaleString("en")} runs`, h("progress", { value: part, max: 1, "aria-label": "Runs done" })),
    status.running ? left : null,
  );
}

/** `45 s`, `12 min`, `3 h 20 min`. */
export function duration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  if (s < 90) return `${s} s`;
  const min = Math.round(s / 60);
  return min < 90 ? `${min} min` : `${Math.floor(min / 60)} h ${min % 60} min`;
}

function gone(strip: HTMLElement, last: Date | null): void {
  strip.classList.add("gone");
  const since = last === null ? "" : ` since ${last.toLocaleTimeString("en-GB")}`;
  fill(strip, h("b", null, `The program does not answer${since}`), h("span", null, "What is shown is what it said last; everything here still works. It is asked again every two seconds."));
}
