// A number with its uncertainty, as charts draw it.

import type { Estimate } from "../analysis";
import { html, type Child } from "../dom";
import { interval, MISSING } from "../format";
import type { DesignLook } from "../theme";
import { swatch } from "./marker";


/** A design as charts see it. */
export interface ChartDesign {
  title: string;
  look: DesignLook;
}

/** The runs that have a value. */
export function runValues(estimate: Estimate): number[] {
  return estimate.runs.filter((run) => run !== null);
}

/** The largest value that a chart must have room for. */
export function highest(estimates: (Estimate | null)[]): number {
  return Math.max(
    0,
    ...estimates.flatMap((estimate) =>
      estimate ? [estimate.value ?? 0, estimate.high ?? 0, ...runValues(estimate)] : [],
    ).filter(Number.isFinite),
  );
}

/** The read-out of one place in a chart: a heading and a line for each design. */
export function readoutTable(
  heading: string,
  designs: ChartDesign[],
  estimates: (Estimate | null)[],
  write: (value: number | null) => string,
): Child {
  return [
    html("div", { class: "readout-heading" }, heading),
    html(
      "table",
      {},
      designs.map((design, index) => {
        const estimate = estimates[index] ?? null;
        const span = interval(estimate?.low, estimate?.high, write);
        return html(
          "tr",
          {},
          html("td", {}, swatch(design.look)),
          html("td", {}, design.title),
          html("td", { class: "number" }, write(estimate?.value ?? null)),
          html("td", { class: "muted" }, span === MISSING ? "" : span),
        );
      }),
    ),
  ];
}
