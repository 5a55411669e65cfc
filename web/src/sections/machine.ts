import { copyable } from "../controls";
import { h } from "../dom";
import { fact, flat } from "../facts";
import type { Result } from "../model";
import { clean, many } from "../text";
import { badge, type Tone } from "../words";

type Check = Result["doctor"][number];

const TONE: Record<Check["severity"], [Tone, string]> = { good: ["good", "✓"], note: ["warn", "i"], bad: ["bad", "!"] };

/** Facts shown before the rest is asked for. */
const FACTS = 7;

/** A fact as text: what the environment holds as JSON, without its signs. */
export function plain(value: string): string {
  if (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)) return `${value.slice(0, 19).replace("T", " ")} UTC`;
  if (!/^[[{]/.test(value) || value.length > 4_000) return clean(value);
  let parsed: unknown;
  try {
    parsed = JSON.parse(value);
  } catch {
    return clean(value);
  }
  const parts = Array.isArray(parsed) ? parsed.map((one) => fact("", one)) : flat(parsed as Record<string, unknown>).map(([name, one]) => `${name} ${fact(name, one)}`);
  return clean(parts.join(", "));
}

const facts = (all: Result["machine"]): HTMLElement =>
  h("dl", { class: "facts" }, all.map((fact) => [h("dt", null, clean(fact.label)), h("dd", null, plain(fact.value))]));

/** What a shell would take: to be copied. All else is advice, to be read. */
const COMMAND = /^(sudo|echo|sysctl|ulimit|pubmark|apt(-get)?|systemctl|cpupower|modprobe|swapoff|docker|export) /;

function mending(mend: string): HTMLElement {
  return COMMAND.test(mend) ? copyable(clean(mend, 400)) : h("div", { class: "muted" }, clean(mend, 400));
}

function check(one: Check): HTMLElement {
  const [tone, mark] = TONE[one.severity];
  return h(
    "li",
    null,
    badge(one.severity, tone, mark),
    h("div", null, h("strong", null, clean(one.what)), " ", clean(one.found, 400), one.mend === null ? null : mending(one.mend)),
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
    facts(result.machine.slice(0, FACTS)),
    result.machine.length <= FACTS ? null : h("details", null, h("summary", null, `${result.machine.length - FACTS} more facts`), facts(result.machine.slice(FACTS))),
    wrong.length === 0 ? null : h("ul", { class: "checks", "aria-label": "What may have disturbed the measurement" }, wrong.map(check)),
    good.length === 0
      ? null
      : h("details", null, h("summary", null, `${many(good.length, "check")} passed`), h("ul", { class: "checks" }, good.map(check))),
  );
}
