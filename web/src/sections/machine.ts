import { copyable } from "../controls";
import { h } from "../dom";
import type { Result } from "../model";
import { clean, many } from "../text";
import { badge, type Tone } from "../words";

type Check = Result["doctor"][number];

const TONE: Record<Check["severity"], [Tone, string]> = { good: ["good", "✓"], note: ["warn", "i"], bad: ["bad", "!"] };

function check(one: Check): HTMLElement {
  const [tone, mark] = TONE[one.severity];
  return h(
    "li",
    null,
    badge(one.severity, tone, mark),
    h("div", null, h("strong", null, clean(one.what)), " ", clean(one.found, 400), one.mend === null ? null : copyable(clean(one.mend, 400))),
  );
}

/** On what it was measured, and what was wrong with that. */
export function machine(result: Result): HTMLElement {
  const wrong = [...result.doctor.filter((one) => one.severity === "bad"), ...result.doctor.filter((one) => one.severity === "note")];
  const good = result.doctor.filter((one) => one.severity === "good");
  return h(
    "div",
    { class: "machine" },
    h("h3", null, "Machine"),
    h("dl", { class: "facts" }, result.machine.map((fact) => [h("dt", null, clean(fact.label)), h("dd", null, clean(fact.value))])),
    wrong.length === 0 ? null : h("ul", { class: "checks", "aria-label": "What may have disturbed the measurement" }, wrong.map(check)),
    good.length === 0
      ? null
      : h("details", null, h("summary", null, `${many(good.length, "check")} of the machine passed`), h("ul", { class: "checks" }, good.map(check))),
  );
}
