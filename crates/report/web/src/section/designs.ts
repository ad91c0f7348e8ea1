// What was compared: each design, and everything in which they differ.

import { html } from "../dom";
import { MISSING } from "../format";
import { swatch } from "../chart/marker";
import { readable } from "../readable";
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
        designFacts(design.facts)))),
    confounds(page));
}

/** More facts than this are folded away. */
const FACTS_SHOWN = 8;

function designFacts(list: [string, string][]): HTMLElement {
  const shown = facts(list.map(([name, value]) => [name, readable(name, value)]), "list");
  if (list.length <= FACTS_SHOWN) return shown;
  return html("details", { class: "disclosure" }, html("summary", {}, `${list.length} facts`), shown);
}

function confounds(page: Page): HTMLElement {
  const list = page.analysis.confounds;
  if (list.length === 0) {
    return html("p", { class: "muted" }, "No differences between the designs were found.");
  }
  return table(
    [
      { heading: "Setting", wrap: true },
      ...page.designs.map((design) => ({ heading: design.title, wrap: true })),
      { heading: "Under test" },
    ],
    list.map((entry) => ({
      cells: [
        html("code", {}, entry.path),
        ...entry.values.map((value) => (value === null ? MISSING : readable(entry.path, value))),
        entry.asked
          ? html("span", { class: "status good" }, "yes")
          : html("span", { class: "status warn" }, "no: confound"),
      ],
    })),
    "Everything that differs between the designs",
  );
}
