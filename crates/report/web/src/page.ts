// What every section needs: the analysis, the looks of the designs, and the frame of a section.

import type { Analysis, Estimate, Metric, Rung } from "./analysis";
import type { ChartDesign } from "./chart/estimate";
import { swatch } from "./chart/marker";
import { append, html, type Child } from "./dom";
import { words } from "./format";
import { designLook } from "./theme";

/** The analysis with the indices that the sections look things up by. */
export interface Page {
  analysis: Analysis;
  designs: ChartDesign[];
  /** Users of each rung, ascending. */
  ladder: number[];
  rung(design: number, users: number): Rung | undefined;
}

/** Prepares what the sections need. */
export function openPage(analysis: Analysis): Page {
  const rungs = new Map(analysis.rungs.map((rung) => [`${rung.design} ${rung.users}`, rung]));
  return {
    analysis,
    designs: analysis.designs.map((design, index) => ({ title: design.title, look: designLook(index) })),
    ladder: [...new Set(analysis.rungs.map((rung) => rung.users))].sort((a, b) => a - b),
    rung: (design, users) => rungs.get(`${design} ${users}`),
  };
}

/** `[rung][design]` of whatever `pick` takes from a rung. */
export function grid(
  page: Page,
  pick: (rung: Rung) => Estimate | null | undefined,
): (Estimate | null)[][] {
  return page.ladder.map((users) =>
    page.designs.map((_, design) => {
      const rung = page.rung(design, users);
      return (rung && pick(rung)) ?? null;
    }));
}

/** Whether any number was found. */
export function hasValues(estimates: (Estimate | null)[][]): boolean {
  return estimates.some((row) => row.some((estimate) => estimate !== null && estimate.value !== null));
}

/** A section of the page; it appears in the contents under its title. */
export function section(id: string, title: string, lead: Child, ...children: Child[]): HTMLElement {
  const heading = html("h2", { id: `${id}-title` }, title);
  const element = html("section", { id, "aria-labelledby": heading.id }, heading);
  if (lead) element.append(html("p", { class: "lead" }, lead));
  append(element, children);
  return element;
}

/** The designs with their colours, dashes and markers. */
export function legend(page: Page): HTMLElement {
  return html(
    "ul",
    { class: "legend" },
    page.designs.map((design) => html("li", {}, swatch(design.look), design.title)),
  );
}

/** Of these types of transactions the one to look at first: what the headline counts, or the first. */
export function mainType(page: Page, names: string[]): string | undefined {
  return names.find((name) => page.analysis.workload.types.includes(name)) ?? names[0];
}

/** The metric of this name; one without a definition is shown under its name. */
export function metricOf(page: Page, name: string): Metric {
  const found = page.analysis.method.metrics.find((metric) => metric.name === name);
  return found ?? { name, title: words(name), unit: "", better: "neither", definition: "" };
}
