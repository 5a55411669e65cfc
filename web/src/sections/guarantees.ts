import type { Section } from "../context";
import { h, type Child } from "../dom";
import { NONE, quantity } from "../format";
import { plainTable } from "../table";
import { clean } from "../text";
import { badge } from "../words";

const number = (label: string) => ({ label, numeric: true as const });
const count = (value: number | null): string => (value === null ? NONE : value.toLocaleString("en"));

/** What a system's acknowledgements are worth: a row for each event and quality of service. */
export const guarantees: Section = {
  id: "guarantees",
  title: "Guarantee card",
  shown: "whole",
  has: ({ result }) => (result.card?.rows.length ?? 0) > 0,
  render({ result }) {
    const rows = (result.card?.rows ?? []).map((row): Child[] => [
      row.what,
      count(row.qos),
      count(row.runs),
      count(row.acked),
      row.acked_lost ? badge(count(row.acked_lost), "bad") : count(row.acked_lost),
      count(row.refused),
      count(row.lost),
      count(row.duplicated),
      count(row.reordered),
      row.outage_ns === null ? NONE : quantity(row.outage_ns, "ns"),
      h("div", { class: "prose" }, row.remarks.map((remark) => h("div", null, clean(remark, 400)))),
    ]);
    const heads = ["QoS", "runs", "acknowledged", "of these lost", "refused", "lost", "twice", "out of order", "outage"].map(number);
    const delivery = (result.card?.delivery ?? []).map((row): Child[] => [
      clean(row.what, 200), count(row.qos), count(row.runs), count(row.delivered), row.count ? badge(count(row.count), "bad") : count(row.count),
      row.why === null ? "" : `not measured: ${clean(row.why, 200)}`,
    ]);
    const columns = ["QoS", "runs", "delivered", "count"].map(number);
    return h(
      "div",
      null,
      h("p", { class: "muted" }, "Outage: the longest silence of a subscriber with the fault in it."),
      plainTable("What happened, and what became of the messages", ["what happened", ...heads, "remark"], rows),
      delivery.length > 0 && plainTable("Order, duplicates and redelivery in all runs", ["of all messages", ...columns, "remark"], delivery, true),
    );
  },
};
