// What was compared: each design, and everything in which they differ.

import { html } from "../dom";
import { MISSING } from "../format";
import { swatch } from "../chart/marker";
import { section, type Page } from "../page";
import { facts, table } from "../table";
import { evidenceBadge } from "./verdict";

/** The section. */
export function designs(page: Page): HTMLElement {
  return section("designs", "Designs", null,
    html("div", { class: "design-cards" }, page.analysis.designs.map((design, index) =>
      html("article", {},
        html("h3", {}, swatch(page.designs[index]!.look), " ", design.title, " ", evidenceBadge(design.evidence)),
        design.description ? html("p", {}, design.description) : null,
        facts(design.facts, "list")))),
    confounds(page));
}

function confounds(page: Page): HTMLElement {
  const list = page.analysis.confounds;
  if (list.length === 0) {
    return html("p", { class: "muted" }, "Nothing else differs between the designs.");
  }
  return table(
    [
      { heading: "What differs" },
      ...page.designs.map((design) => ({ heading: design.title, wrap: true })),
      { heading: "Asked for" },
    ],
    list.map((entry) => ({
      cells: [
        html("code", {}, entry.path),
        ...entry.values.map((value) => value ?? MISSING),
        entry.asked
          ? html("span", { class: "status good" }, "yes")
          : html("span", { class: "status warn" }, "no: a confound"),
      ],
    })),
    "Everything that differs between the designs",
  );
}
