// The loads of a record of block I/O: the points of a curve or the rounds until it was steady, and how response times
// grow with the rate that is offered.

import type { BlockLoad, BlockLoads } from "../analysis";
import { drawRates, type RateSeries } from "../chart/rates";
import { figure } from "../chart/frame";
import { swatch } from "../chart/marker";
import { html } from "../dom";
import { count, latency, MISSING, rate } from "../format";
import { section, type Page } from "../page";
import { table, tall } from "../table";
import { designLook } from "../theme";
import { isBlockStudy } from "../vocabulary";

/** The quantiles that are drawn; the table has more. */
const QUANTILES: [string, (load: BlockLoad) => number | null][] = [
  ["p50", (load) => load.p50_ns],
  ["p95", (load) => load.p95_ns],
  ["p99", (load) => load.p99_ns],
];

/** The section; nothing where there was one load only, or the rungs of a study, which the other sections show. */
export function blockLoads(page: Page): HTMLElement | null {
  if (isBlockStudy(page.analysis.workload)) return null;
  const runs = (page.analysis.block_loads ?? []).filter((run) => run.loads.length > 1);
  const first = runs[0];
  if (!first) return null;
  const curve = first.loads.some((load) => load.offered_per_second !== null && !load.counts);
  return section(
    "loads",
    curve ? "Response time by offered rate" : "Rounds",
    curve
      ? interruption(first) +
        "The maximum rate was measured first, in a closed loop; then fractions of it were offered in an open loop. Response times " +
        "count from the intended start, so they include waiting for busy storage."
      : rounds(first),
    curve ? chart(first) : null,
    results(runs),
  );
}

/** What an interrupted curve lacks. */
function interruption(run: BlockLoads): string {
  if (!run.interrupted) return "";
  const done = run.loads.filter((load) => !load.ended_early).length;
  const planned = run.planned === null ? "" : ` of ${count(run.planned)}`;
  return `The curve was interrupted: ${count(done)}${planned} loads completed. `;
}

function rounds(run: BlockLoads): string {
  const counted = run.loads.filter((load) => load.counts).length;
  if (run.steady === null) {
    return `Steady state was not judged: only ${count(run.loads.length)} of at least 5 rounds ran.`;
  }
  return run.steady === false
    ? `The load did not reach a steady state; the last ${count(counted)} rounds are reported as not steady.`
    : `The load was repeated until it was steady; the last ${count(counted)} rounds are reported.`;
}

function chart(run: BlockLoads): HTMLElement {
  const series: RateSeries[] = QUANTILES.map(([title, pick], index) => ({
    title,
    look: designLook(index),
    points: run.loads.flatMap((load) => {
      const value = pick(load);
      // What was cut off says nothing of its rate.
      if (load.offered_per_second === null || value === null || load.ended_early) return [];
      const notes = [`${rate(load.done_per_second)} /s completed`, load.label];
      return [{ rate: load.offered_per_second, value, held: !load.saturated, notes }];
    }),
  }));
  return html("div", {},
    html("ul", { class: "legend" }, series.map((one) => html("li", {}, swatch(one.look), one.title))),
    figure({
      title: "Response time by offered rate",
      note: "hollow: less than 98 % of the offered rate completed",
      description: "Quantiles of the response time at each offered rate; the table has the numbers.",
      draw: (width) =>
        drawRates(
          { series, rateUnit: "1/s", rateTitle: "I/Os offered per second", unit: "ns", horizontal: "from zero" },
          width,
        ),
    }));
}

function remark(load: BlockLoad): string {
  if (load.ended_early) return load.counts ? "reported, ended early" : "ended early";
  return load.saturated ? "saturated" : load.counts ? "reported" : "";
}

function results(runs: BlockLoads[]): HTMLElement {
  const row = (load: BlockLoad) => ({
    cells: [
      load.label, load.offered_per_second === null ? MISSING : rate(load.offered_per_second), rate(load.done_per_second),
      (load.bytes_per_second / 1e6).toFixed(1), latency(load.mean_ns), latency(load.p50_ns), latency(load.p95_ns),
      latency(load.p99_ns), latency(load.p999_ns), remark(load),
    ],
  });
  return tall(table(
    [
      { heading: "Load" }, { heading: "Offered, /s", numeric: true }, { heading: "Completed, /s", numeric: true },
      { heading: "MB/s", numeric: true }, { heading: "Mean", numeric: true }, { heading: "p50", numeric: true },
      { heading: "p95", numeric: true }, { heading: "p99", numeric: true }, { heading: "p99.9", numeric: true },
      { heading: "" },
    ],
    runs.flatMap((run) => run.loads.map(row)),
    "Loads in the order of execution",
  ));
}
