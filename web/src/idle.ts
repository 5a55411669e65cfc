/** Longest wait for an idle moment, ms. */
const IDLE_MS = 1_000;

/** Calls back once the browser has nothing else to do. */
export function whenIdle(act: () => void): void {
  // Safari has no idle callback.
  if (typeof window.requestIdleCallback === "function") window.requestIdleCallback(act, { timeout: IDLE_MS });
  else window.setTimeout(act, 50);
}
