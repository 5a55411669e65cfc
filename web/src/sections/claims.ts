import type { Section } from "../context";
import { h } from "../dom";
import type { Claim } from "../model";
import { plainTable } from "../table";
import { clean } from "../text";
import { claimBadge } from "../words";

const OUTCOMES: Claim["outcome"][] = ["holds", "fails", "open", "not tested here"];

/** What was claimed, and what the records say to it. */
export const claims: Section = {
  id: "claims",
  title: "Claims",
  has: ({ result }) => result.claims.length > 0,
  render({ result }) {
    const counts = OUTCOMES.map((outcome) => ({ outcome, count: result.claims.filter((claim) => claim.outcome === outcome).length }));
    const rows = result.claims.map((claim) => [
      h("div", { class: "prose" }, clean(claim.says, 600), h("div", { class: "small" }, clean(claim.id, 60))),
      claimBadge(claim.outcome),
      h("div", { class: "prose" }, clean(claim.evidence, 1_000)),
    ]);
    return h(
      "div",
      null,
      h("p", { class: "muted" }, counts.filter(({ count }) => count > 0).map(({ outcome, count }) => [h("span", { class: "count" }, `${count} `), claimBadge(outcome), " "])),
      plainTable("Claims with their outcome", ["claim", "outcome", "evidence"], rows),
    );
  },
};
