import { tick } from "../charts/axes";
import { bars, type Bar } from "../charts/bars";
import { chart, type ChartSpec } from "../charts/chart";
import { isLog } from "../charts/controls";
import { panels, type Panel } from "../charts/lines";
import { absentList, across, hollowWords, isWide, linesOver, systemsOf, tableOver } from "../charts/over";
import { scale, spansDecades } from "../charts/scale";
import { cellTip } from "../charts/tip";
import { quotable, value, type Context, type Section } from "../context";
import { h } from "../dom";
import { quantity } from "../format";
import type { Cell, Estimate, Unit } from "../model";
import { UNRELIABLE } from "../words";
import { at, nothing } from "./shared";
import { axisSelect, loadCut } from "./load";
import { cut, cutWords, sliceBar, usefulness, type Cut } from "./slice";

/** What a system takes of the machine. */
export const cost: Section = {
  id: "cost",
  title: "Cost",
  has: ({ result }) => result.cells.some((cell) => cell.figures["cpu_cores"]),
  render(context) {
    const { cells } = context.result;
    const use = usefulness("cpu_cores");
    const now = () => cut(context, cells, [], use);
    return h(
      "div",
      null,
      sliceBar(context, now),
      h(
        "div",
        { class: "chart-grid" },
        chart(stacked(context, now, {
          id: "cpu", title: "Processors in use", total: "cpu_cores", server: "server_cpu_cores",
          about: "Processors kept busy during the window.",
        }), context),
        chart(stacked(context, now, {
          id: "memory", title: "Memory", total: "uss_bytes_median", server: "server_uss_bytes_median",
          about: "Median unique set (USS) during the window.",
        }), context),
      ),
      cells.some((cell) => perCpuSecond(cell) !== null) && chart(thrift(context, now), context),
      cells.some((cell) => cell.figures[WIRE]) && chart(single(context, now, {
        id: "wire", title: "Bytes on the wire for a message", key: WIRE,
        about: "What network interfaces sent during the window for a delivered message: headers, acknowledgements, what was sent again, and what other programs sent over the loopback are in it. Over inproc, ipc and shared memory nothing goes over an interface.",
      }), context),
      cells.some((cell) => cell.figures[DISCOVERY]) && chart(single(context, now, {
        id: "discovery", title: "Until all had heard each other", key: DISCOVERY,
        about: "From the first client's opening until everybody had heard whom they should hear. It is known no better than publishers send probes: every millisecond, or 5 ms.",
      }), context),
      overLoad(context, cells, use),
    );
  },
};

const WIRE = "wire_bytes_per_message";
const DISCOVERY = "discovery_ns";

interface Single {
  id: string;
  title: string;
  key: string;
  about: string;
}

/** A bar a system: one figure. */
function single(context: Context, now: () => Cut, { id, title, key, about }: Single): ChartSpec {
  return {
    id,
    title,
    draw(frame) {
      const { slices, cells } = now();
      const { unit, label } = context.figure(key);
      const has = cells.filter((cell) => cell.figures[key]);
      if (has.length === 0) return nothing(cells, false);
      const rows = has.filter(({ system }) => !frame.hidden.has(system)).map((cell): Bar => {
        const [amount, lo, hi] = cell.figures[key]!;
        const index = context.result.cells.indexOf(cell);
        const valid = quotable(cell, key);
        return {
          system: cell.system, cell: index, valid, parts: [amount], lo, hi,
          text: `${quantity(amount, unit)}${valid ? "" : ` ${UNRELIABLE}`}`,
          tip: cellTip(context, index, [[label, cell.figures[key], unit]]),
        };
      });
      const values = rows.flatMap(({ parts, hi }) => [...parts, hi ?? NaN]);
      return {
        ...bars(frame.theme, frame.width, rows, scale(values, isLog(context, id, spansDecades(values))), label, (amount) => tick(amount, unit)),
        systems: systemsOf(context, has),
        named: true,
        table: tableOver(cells, null, [{ name: label, unit, of: (cell) => cell.figures[key] ?? null }]),
        absent: absentList(cells, null, (cell) => cell.figures[key] !== undefined),
        caption: [`${at(cutWords(slices))}${about} Lines: 95 % interval.${hollowWords(has, key)}`],
      };
    },
  };
}

interface Stack {
  id: string;
  title: string;
  /** Generator, library and server together. */
  total: string;
  server: string;
  about: string;
}

function stacked(context: Context, now: () => Cut, { id, title, total, server, about }: Stack): ChartSpec {
  return {
    id,
    title,
    draw(frame) {
      const { slices, cells } = now();
      const { unit, label } = context.figure(total);
      const has = cells.filter((cell) => cell.figures[total]);
      if (has.length === 0) return nothing(cells, false);
      const served = has.some((cell) => cell.figures[server]);
      const rows = has.filter(({ system }) => !frame.hidden.has(system)).map((cell): Bar => {
        const [all, lo, hi] = cell.figures[total]!;
        const index = context.result.cells.indexOf(cell);
        const valid = quotable(cell, total);
        const own = served ? Math.min(value(cell, server) ?? 0, all) : all;
        return {
          system: cell.system, cell: index, valid, parts: [own, all - own], lo, hi,
          text: `${quantity(all, unit)}${valid ? "" : ` ${UNRELIABLE}`}`,
          tip: cellTip(context, index, [[label, cell.figures[total], unit], ["of it the server", cell.figures[server], unit]]),
        };
      });
      const axis = scale(rows.flatMap(({ parts, hi }) => [parts[0]! + parts[1]!, hi ?? NaN]), false);
      return {
        ...bars(frame.theme, frame.width, rows, axis, label, (amount) => tick(amount, unit)),
        systems: systemsOf(context, has),
        named: true,
        table: tableOver(cells, null, [
          { name: label, unit, of: (cell) => cell.figures[total] ?? null },
          { name: context.figure(server).label, unit, of: (cell) => cell.figures[server] ?? null },
        ]),
        absent: absentList(cells, null, (cell) => cell.figures[total] !== undefined),
        caption: [`${at(cutWords(slices))}${about} ${serverWords(context, has, server)} Lines: 95 % interval of both together.${hollowWords(has, total)}`],
      };
    },
  };
}

/** What is the server's share of a bar. A library has no server: its work is
 *  done within the generator's processes. */
function serverWords(context: Context, cells: Cell[], server: string): string {
  const without = cells.filter((cell) => !cell.figures[server]);
  if (without.length === cells.length) return "No server was measured: the work of a library is done within the generator's processes.";
  const shares = "Full colour: the server; light: generator and client library.";
  if (without.length === 0) return shares;
  const libraries = without.every(({ system }) => context.result.systems.some(({ name, kind }) => name === system && kind !== "broker"));
  return `${shares} ${libraries ? "Libraries have no server." : "Where there is no full colour the server was not measured."}`;
}

/** Messages delivered per second of processor time, of what one of them takes. */
function perCpuSecond(cell: Cell): Estimate | null {
  const each = cell.figures["cpu_ns_per_message"];
  if (!each || each[0] <= 0) return null;
  const [ns, lo, hi] = each;
  return [1e9 / ns, hi === null || hi <= 0 ? null : 1e9 / hi, lo === null || lo <= 0 ? null : 1e9 / lo];
}

const THRIFT = "messages per CPU second";

function thrift(context: Context, now: () => Cut): ChartSpec {
  return {
    id: "thrift",
    title: "Messages per second of processor time",
    draw(frame) {
      const { slices, cells } = now();
      const has = cells.filter((cell) => perCpuSecond(cell) !== null);
      if (has.length === 0) return nothing(cells, false);
      const rows = has.filter(({ system }) => !frame.hidden.has(system)).map((cell): Bar => {
        const [rate, lo, hi] = perCpuSecond(cell)!;
        const index = context.result.cells.indexOf(cell);
        const valid = quotable(cell, "cpu_ns_per_message");
        return {
          system: cell.system, cell: index, valid, parts: [rate], lo, hi,
          text: `${quantity(rate, "count")}${valid ? "" : ` ${UNRELIABLE}`}`,
          tip: cellTip(context, index, [[THRIFT, [rate, lo, hi], "count"], ["CPU time per message", cell.figures["cpu_ns_per_message"], "ns"]]),
        };
      });
      const axis = scale(rows.flatMap(({ parts, hi }) => [...parts, hi ?? NaN]), isLog(context, "thrift", spansDecades(rows.flatMap(({ parts }) => parts))));
      return {
        ...bars(frame.theme, frame.width, rows, axis, THRIFT, (rate) => tick(rate, "count")),
        systems: systemsOf(context, has),
        named: true,
        table: tableOver(cells, null, [
          { name: THRIFT, unit: "count", of: perCpuSecond },
          { name: context.figure("cpu_ns_per_message").label, unit: "ns", of: (cell) => cell.figures["cpu_ns_per_message"] ?? null },
        ]),
        absent: absentList(cells, null, (cell) => perCpuSecond(cell) !== null),
        caption: [`${at(cutWords(slices))}Delivered messages per second of processor time of generator, library and server together: more is better. Lines: 95 % interval.${hollowWords(has, "cpu_ns_per_message")}`],
      };
    },
  };
}

/** Panels against load: the server's where there is one, else all together. */
function overLoad(context: Context, cells: Cell[], use: (cell: Cell) => number): HTMLElement | null {
  const now = () => loadCut(context, cells, use);
  if (now() === null) return null;
  return chart(
    {
      id: "cost-over",
      title: "Cost against load",
      controls: () => [axisSelect(context, now())],
      draw(frame) {
        const found = now();
        if (found === null) return "No axis of numbers varies here.";
        const { axis, cut: { slices, cells } } = found;
        const served = cells.some((cell) => cell.figures["server_cpu_cores"]);
        const keys = served ? ["server_cpu_cores", "cpu_cores", "server_rss_bytes_median"] : ["cpu_cores", "uss_bytes_median"];
        const has = cells.filter((cell) => keys.some((key) => cell.figures[key]));
        if (has.length === 0) return nothing(cells, false);
        const figures = keys.map((key) => {
          const { label: name, unit } = context.figure(key);
          return { key, name, unit, of: (cell: Cell) => cell.figures[key] ?? null };
        });
        const tips = (cell: Cell) => figures.map(({ name, unit, of }): [string, Estimate | null, Unit] => [name, of(cell), unit]);
        const stack = figures.map(({ key, name, unit, of }): Panel => {
          const lines = linesOver(context, cells, axis, of, tips, (cell) => quotable(cell, key)).filter(({ system }) => !frame.hidden.has(system));
          const values = lines.flatMap(({ spots }) => spots.flatMap(({ y, hi }) => [y, hi ?? y]));
          return { name, lines, scale: scale(values, spansDecades(values)), text: (amount) => tick(amount, unit), height: 150 };
        });
        return {
          ...panels(frame, across(axis, cells, isWide(axis, cells)), stack),
          systems: systemsOf(context, has),
          table: tableOver(cells, axis, figures),
          absent: absentList(cells, axis, (cell) => has.includes(cell)),
          caption: [`${at(cutWords(slices))}Lines up and down: 95 % interval.${hollowWords(has, ...keys)}`],
        };
      },
    },
    context,
  );
}
