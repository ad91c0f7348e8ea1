// The search for the highest rate that meets a latency target: what was offered, what came of it.

import type { RateSearch, RateStep } from "../analysis";
import { drawRates } from "../chart/rates";
import { figure } from "../chart/frame";
import { html } from "../dom";
import { count, interval, latency, MISSING, percent, rate } from "../format";
import { legend, section, type Page } from "../page";
import { table, tall } from "../table";

const FOUND: Record<string, string> = {
  rate: "",
  "at-least": "lower bound: the load generator was saturated first",
  nothing: "no rate meets the target",
};

/** The section; nothing where nothing was searched. */
export function searches(page: Page): HTMLElement | null {
  const list = page.analysis.searches ?? [];
  const first = list[0];
  if (!first) return null;
  return section(
    "searches",
    "Highest rate that meets the target",
    `The highest transaction rate with ${first.slo}, found by doubling or halving, then by bisection, and confirmed once. ` +
      "That rate is the result of the run; the measured window after it shows the load at that rate.",
    legend(page),
    chart(page, list, first),
    results(page, list),
    html("details", { class: "disclosure" },
      html("summary", {}, `All ${list.reduce((sum, search) => sum + search.steps.length, 0)} rates tested`),
      steps(page, list)),
  );
}

function chart(page: Page, list: RateSearch[], first: RateSearch): HTMLElement {
  const name = first.quantile === null ? "quantile" : `p${Number((first.quantile * 100).toFixed(6))}`;
  return figure({
    title: `${name} by offered rate`,
    note: "hollow: target missed; horizontal line: target",
    description: `${name} of the response time at each rate tested, one line per design and repeat.`,
    draw: (width) =>
      drawRates(
        {
          series: list.map((search) => ({
            title: `${page.designs[search.design]?.title ?? MISSING}, repeat ${search.repeat}`,
            look: page.designs[search.design]!.look,
            points: search.steps.flatMap((step) => (step.observed_ns === null ? [] : [{
              rate: step.rate_per_second,
              value: step.observed_ns,
              held: step.holds === true,
              notes: [`${rate(step.delivered_per_second)} /s delivered`, step.verdict],
            }])),
          })),
          rateUnit: "1/s",
          rateTitle: "transactions offered per second",
          unit: "ns",
          horizontal: "logarithmic",
          limit: first.limit_ns,
        },
        width,
      ),
  });
}

function results(page: Page, list: RateSearch[]): HTMLElement {
  return table(
    [
      { heading: "Design", design: true }, { heading: "Repeat", numeric: true }, { heading: "Met, /s", numeric: true },
      { heading: "Missed, /s", numeric: true }, { heading: "Rates tested", numeric: true }, { heading: "" },
    ],
    list.map((search) => ({
      cells: [
        page.designs[search.design]?.title ?? MISSING, count(search.repeat), rate(search.holds_per_second),
        rate(search.fails_per_second), count(search.steps.length), FOUND[search.found] ?? search.found,
      ],
    })),
    "Highest rate that met the target and lowest that missed it, per run",
  );
}

function steps(page: Page, list: RateSearch[]): HTMLElement {
  const row = (search: RateSearch, step: RateStep) => ({
    cells: [
      page.designs[search.design]?.title ?? MISSING, count(search.repeat), step.purpose, rate(step.rate_per_second),
      rate(step.delivered_per_second), latency(step.observed_ns), percent(step.late_share, 2),
      interval(step.late_share_low, step.late_share_high, (share) => percent(share, 2)),
      step.by_point_estimate ? `${step.verdict}, decided by the point estimate` : step.verdict,
    ],
  });
  return tall(table(
    [
      { heading: "Design", design: true }, { heading: "Repeat", numeric: true }, { heading: "Purpose" },
      { heading: "Offered, /s", numeric: true }, { heading: "Delivered, /s", numeric: true },
      { heading: "Quantile", numeric: true }, { heading: "Late", numeric: true }, { heading: "90 % interval", numeric: true },
      { heading: "Result" },
    ],
    list.flatMap((search) => search.steps.map((step) => row(search, step))),
    "Rates tested, in order",
  ));
}
