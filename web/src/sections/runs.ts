import type { Context, Section } from "../context";
import { link, search, select, type Choice } from "../controls";
import { h } from "../dom";
import { saveRuns } from "../export";
import { NONE, number, quantity } from "../format";
import type { Run, Unit } from "../model";
import { matcher } from "../order";
import { Table, type Column } from "../table";
import { clean, many } from "../text";
import { statusBadge, statusWord, verdictOf } from "../words";

/** Every run, each with its evidence. */
export const runs: Section = {
  id: "runs",
  title: "All runs",
  has: ({ result }) => result.records.length > 0,
  render(context) {
    const { result, state } = context;
    const table = tableOf(context);
    let shown: Run[] = [];
    const said = h("button", { type: "button", onclick: () => saveRuns(result, shown) });
    const show = (keepPage: boolean): void => {
      shown = filtered(context);
      said.textContent = `Download ${many(shown.length, "run")} as CSV`;
      table.show(shown, keepPage);
    };
    show(true);
    state.subscribe((changed) => {
      if (["text", "system", "verdict", "reason"].some((key) => changed.has(`runs.${key}`))) show(false);
    });
    return h("div", null, filters(context), h("p", { class: "actions" }, said), table.element);
  },
};

const stateOf = (run: Run): string => statusWord(verdictOf(run));
const any: Choice = { value: "", label: "any" };
const choices = (values: Iterable<string>): Choice[] => [any, ...[...new Set(values)].sort().map((value) => ({ value, label: clean(value, 40) }))];

function filters({ result, state }: Context): HTMLElement {
  const box = h("div", { class: "filters" });
  const draw = (): void =>
    box.replaceChildren(
      search("Find", "runs.text", "words of a cell, a reason or a time", state),
      select("System", "runs.system", choices(result.systems.map((system) => system.name)), state),
      select("Verdict", "runs.verdict", choices(result.records.map(stateOf)), state),
      select("Reason", "runs.reason", choices(result.records.flatMap((run) => run.reasons)), state),
    );
  draw();
  // Chosen elsewhere, as in the opening: the lists show it too.
  state.subscribe((changed) => {
    const there = ["system", "verdict", "reason", "text"].some((key) => changed.has(`runs.${key}`));
    if (there && !box.contains(document.activeElement)) draw();
  });
  return box;
}

function filtered({ result, state }: Context): Run[] {
  const fits = matcher(state.get("runs.text"));
  const [system, verdict, reason] = ["system", "verdict", "reason"].map((key) => state.get(`runs.${key}`));
  return result.records.filter((run) => {
    const cell = result.cells[run.cell];
    return (
      (system === "" || cell?.system === system) &&
      (verdict === "" || stateOf(run) === verdict) &&
      (reason === "" || run.reasons.includes(reason!)) &&
      fits(`${clean(cell?.label ?? "")} ${run.reasons.join(" ")} ${run.started} ${stateOf(run)}`)
    );
  });
}

function tableOf(context: Context): Table<Run> {
  const { result, state } = context;
  const index = new Map(result.records.map((run, at) => [run, at]));
  const open = (run: Run): void => state.set("run", String(index.get(run)));
  const figure = (key: string, label: string, unit: Unit, value: (run: Run) => number | null): Column<Run> => ({
    key,
    label,
    numeric: true,
    sort: value,
    cell: (run) => {
      const found = value(run);
      return found === null ? NONE : quantity(found, unit);
    },
  });
  const axes = result.axes
    .filter((axis) => axis.name !== "system")
    .map((axis): Column<Run> => ({
      key: `axis.${axis.name}`,
      label: clean(axis.label, 40),
      numeric: axis.numeric,
      sort: (run) => place(context, run, axis.name),
      cell: (run) => clean(axis.values.find((value) => value.value === result.cells[run.cell]?.axes[axis.name])?.label ?? NONE, 60),
    }));
  const count = (key: string, label: string, value: (run: Run) => number | null): Column<Run> => ({
    key,
    label,
    numeric: true,
    sort: value,
    cell: (run) => value(run)?.toLocaleString("en") ?? NONE,
  });
  // What became of each message, where that is to be seen before any latency.
  const first = result.cells.some((cell) => cell.delivery_first);
  const acknowledged = result.records.some((run) => run.acked !== null) ? [count("acked", "acked", (run) => run.acked), count("acked_lost", "acked lost", (run) => run.acked_lost)] : [];
  const refuses = result.records.some((run) => run.refused > 0);
  const refused = refuses ? [count("refused", "refused", (run) => run.refused)] : [];
  const delivery = first || refuses ? [...acknowledged, ...refused, count("lost", "lost", (run) => run.lost), count("duplicated", "duplicated", (run) => run.duplicated)] : [];
  const columns: Column<Run>[] = [
    {
      key: "system",
      label: "system",
      sort: (run) => result.cells[run.cell]?.system ?? null,
      cell: (run) => link(clean(result.cells[run.cell]?.system ?? NONE, 40), () => open(run), { "data-run": String(index.get(run)), "aria-label": `Evidence: ${clean(result.cells[run.cell]?.label ?? "")}, run ${run.repeat}` }),
    },
    ...axes,
    { key: "repeat", label: "run", numeric: true, sort: (run) => run.repeat, cell: (run) => String(run.repeat) },
    { key: "verdict", label: "verdict", sort: stateOf, cell: (run) => [statusBadge(verdictOf(run)), run.reasons.length === 0 ? null : h("div", { class: "small narrow" }, clean(run.reasons.join(", "), 120))] },
    ...delivery,
    figure("p50", "latency p50", "ns", (run) => run.p50),
    figure("p99", "latency p99", "ns", (run) => run.p99),
    figure("delivered", "delivered", "per_s", (run) => run.delivered_per_s),
    figure("ratio", "of expected", "share", (run) => run.delivered_ratio),
    ...(first ? [] : [count("lost", "lost", (run) => run.lost)]),
    { key: "cpu", label: "CPU cores", numeric: true, sort: (run) => run.cpu_cores, cell: (run) => (run.cpu_cores === null ? NONE : number(run.cpu_cores)) },
    { key: "started", label: "started (UTC)", sort: (run) => run.started, cell: (run) => h("span", { class: "unbroken" }, clean(run.started.slice(0, 19).replace("T", " "), 40)) },
  ];
  return new Table({ id: "runs", caption: "Runs, a row each", columns, state, open, class: verdictOf });
}

/** An axis' values in the order of the axis. */
function place({ result }: Context, run: Run, name: string): number | null {
  const axis = result.axes.find((axis) => axis.name === name);
  const at = axis?.values.findIndex((value) => value.value === result.cells[run.cell]?.axes[name]) ?? -1;
  return at < 0 ? null : at;
}
