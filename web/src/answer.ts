/** The answer of a point by a figure, in about eight words. Pure functions. */
import { label } from "./charts/clean";
import type { Rank } from "./model";
import { twoDigits } from "./words";

/** The verbs of a question: what the best system does, and what several may do. */
export interface Verbs {
  /** `is fastest`. */
  is: string;
  /** `may be fastest`. */
  may: string;
  /** `tie for fastest`. */
  tie: string;
  /** `takes`, before the value of a system that has no rival. */
  has: string;
  /** `latency`, where no system has one that is reliable. */
  noun: string;
}

/** What is known of a point. */
export interface Known {
  rank: Rank | undefined;
  /** At least how many times as good the winner is as the next; null where that is not known. */
  lead: number | null;
  /** ` over ipc`, or nothing. */
  where: string;
  /** The competing systems that have a figure, each with its value as text. */
  values: { system: string; text: string; isReliable: boolean }[];
}

/** Systems that a sentence names. */
const NAMED_MAX = 3;
const NAME_CHARS = 24;

const name = (system: string): string => label(system, NAME_CHARS);

/** `zeromq`, `zeromq or nng`, `zeromq, nanomsg or nng`, `any of 5 systems`. */
export function list(systems: readonly string[], joint: "or" | "and"): string {
  if (systems.length > NAMED_MAX) return joint === "or" ? `any of ${systems.length} systems` : `${systems.length} systems`;
  const names = systems.map(name);
  return names.length < 2 ? (names[0] ?? "") : `${names.slice(0, -1).join(", ")} ${joint} ${names.at(-1)}`;
}

/** `, by at least 45 %`; of what is at least twice as good `, by at least 2.3×`. */
export function ahead(lead: number | null): string {
  const share = ((lead ?? 1) - 1) * 100;
  if (share < 0.1) return "";
  return `, by at least ${lead! >= 2 ? `${twoDigits(lead!, Math.floor)}×` : `${twoDigits(share, Math.floor)} %`}`;
}

/** `nanomsg is fastest over ipc, by at least 45 %`. */
export function answerWords(verbs: Verbs, { rank, lead, where, values }: Known): string {
  const reliable = values.filter(({ isReliable }) => isReliable);
  if (rank !== undefined) {
    switch (rank.kind) {
      case "winner": return `${name(rank.systems[0] ?? "")} ${verbs.is}${where}${ahead(lead)}`;
      case "tie": return `${list(rank.systems, "and")} ${verbs.tie}${where}`;
      case "unranked": return `not comparable${where}: each dropped a different share`;
      case "open": if (rank.systems.length > 0) return `${list(rank.systems, "or")} ${verbs.may}${where}`;
    }
  }
  if (reliable.length === 0) return `no reliable ${verbs.noun}${where}`;
  if (reliable.length > 1) return `open${where}: ${list(reliable.map(({ system }) => system), "or")} ${verbs.may}`;
  const [{ system, text }] = reliable as [Known["values"][number]];
  return values.length > 1 ? `only ${name(system)} has a reliable ${verbs.noun}${where}` : `${name(system)} ${verbs.has} ${text}${where}`;
}

/** `18 points: zeromq 7, nanomsg 4, tie 2, open 5`, of points of which each has a rank; nothing for one. */
export function countWords(ranks: readonly (Rank | undefined)[]): string {
  const counts = new Map<string, number>();
  const count = (word: string) => counts.set(word, (counts.get(word) ?? 0) + 1);
  const wins = new Map<string, number>();
  for (const rank of ranks) {
    if (rank === undefined || rank.kind === "alone") continue;
    const winner = rank.kind === "winner" ? rank.systems[0] : undefined;
    if (winner !== undefined) wins.set(winner, (wins.get(winner) ?? 0) + 1);
    else count(rank.kind === "unranked" ? "not comparable" : rank.kind);
  }
  const winners = [...wins].sort((a, b) => b[1] - a[1]);
  const rest = winners.slice(NAMED_MAX).reduce((sum, [, points]) => sum + points, 0);
  const parts = [
    ...winners.slice(0, NAMED_MAX).map(([system, points]) => `${name(system)} ${points}`),
    ...(rest > 0 ? [`others ${rest}`] : []),
    ...["tie", "open", "not comparable"].flatMap((word) => (counts.has(word) ? [`${word} ${counts.get(word)}`] : [])),
  ];
  const all = ranks.filter((rank) => rank !== undefined && rank.kind !== "alone").length;
  return all < 2 ? "" : `Best at ${all} points: ${parts.join(", ")}`;
}

/** What was lost at a point: `only nng lost messages over tcp`. Systems, the worst first. */
export function lossWords(lossy: readonly string[], all: number, where: string): string {
  if (lossy.length === 0) return `no message was lost${where}`;
  if (lossy.length === all && all > 1) return `every system lost messages${where}, ${name(lossy[0]!)} most`;
  const most = lossy.length > 1 ? `, ${name(lossy[0]!)} most` : "";
  return `${all > 1 && lossy.length === 1 ? "only " : ""}${list(lossy, "and")} lost messages${where}${most}`;
}
