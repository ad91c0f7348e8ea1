// Rate curves of a study: how the mean response time rises with the rate that each design delivers, and where it passes
// the limit of the published curves.

import type { CurvePoint, RateCurve } from "../analysis";
import { drawRates, type RateSeries } from "../chart/rates";
import { figure } from "../chart/frame";
import { html } from "../dom";
import { interval, latency, MISSING, rate } from "../format";
import { legend, section, type Page } from "../page";
import { table, tall } from "../table";
import { comparisons } from "./comparisons";

/** The section; nothing where no curve was measured. */
export function rateCurves(page: Page): HTMLElement | null {
  const curves = page.analysis.curves ?? [];
  const first = curves[0];
  if (!first) return null;
  const limit = latency(first.limit_ns);
  return section(
    "rate-curves",
    "Latency by delivered rate",
    "The maximum of each design was measured first, in a closed loop; then fractions of it were offered in an open loop. Response " +
      `times count from the intended start. The rate at ${limit} is read between the two points around it.`,
    legend(page),
    chart(page, curves, first),
    results(page, curves, limit),
    comparisons(page, "rate_at_1ms"),
    html("details", { class: "disclosure" },
      html("summary", {}, `All ${curves.reduce((sum, curve) => sum + curve.points.length, 0)} points`),
      points(page, curves)),
  );
}

function chart(page: Page, curves: RateCurve[], first: RateCurve): HTMLElement {
  const series: RateSeries[] = curves.map((curve) => ({
    title: page.designs[curve.design]?.title ?? MISSING,
    look: page.designs[curve.design]!.look,
    points: curve.points.flatMap((point) => {
      const [done, mean] = [point.done_per_second.value, point.mean_ns.value];
      if (done === null || mean === null) return [];
      const notes = [`${rate(point.offered_per_second.value)} /s offered`, `${point.label} of the maximum`];
      return [{ rate: done, value: mean, held: !point.saturated, notes }];
    }),
  }));
  const limit = latency(first.limit_ns);
  return figure({
    title: "Mean response time by delivered rate",
    note: `horizontal line: ${limit}; hollow: less than 98 % of the offered rate completed`,
    description: `Mean response time against the I/Os per second that completed, one line per design; the limit is ${limit}.`,
    draw: (width) =>
      drawRates(
        {
          series, rateUnit: "1/s", rateTitle: "I/Os delivered per second", unit: "ns", horizontal: "from zero",
          limit: first.limit_ns,
        },
        width,
      ),
  });
}

/** How a rate at the limit is to be read. */
function reading(curve: RateCurve, limit: string): string {
  switch (curve.found) {
    case "at-least": return `no point reached ${limit}: at least this`;
    case "never": return `above ${limit} at every rate`;
    default: return "";
  }
}

function results(page: Page, curves: RateCurve[], limit: string): HTMLElement {
  const kept = (curve: RateCurve) =>
    curve.points.reduce<CurvePoint | null>((best, point) => {
      if (point.saturated || point.done_per_second.value === null) return best;
      return best === null || point.done_per_second.value > (best.done_per_second.value ?? 0) ? point : best;
    }, null);
  return table(
    [
      { heading: "Design", design: true }, { heading: `Rate at ${limit}, /s`, numeric: true },
      { heading: "95 % interval", numeric: true }, { heading: "Highest kept, /s", numeric: true },
      { heading: "Its mean", numeric: true }, { heading: "" },
    ],
    curves.map((curve) => {
      const best = kept(curve);
      const { value, low, high } = curve.rate_at_limit;
      return {
        cells: [
          page.designs[curve.design]?.title ?? MISSING, rate(value), interval(low, high, rate),
          rate(best?.done_per_second.value ?? null), latency(best?.mean_ns.value ?? null), reading(curve, limit),
        ],
      };
    }),
    `Rates at which the mean response time reaches ${limit}, and highest rates that were kept`,
  );
}

function points(page: Page, curves: RateCurve[]): HTMLElement {
  const row = (curve: RateCurve, point: CurvePoint) => ({
    cells: [
      page.designs[curve.design]?.title ?? MISSING, point.label, rate(point.offered_per_second.value),
      rate(point.done_per_second.value),
      point.bytes_per_second.value === null ? MISSING : (point.bytes_per_second.value / 1e6).toFixed(1),
      latency(point.mean_ns.value), latency(point.p99_ns.value), point.saturated ? "saturated" : "",
    ],
  });
  return tall(table(
    [
      { heading: "Design", design: true }, { heading: "Of the maximum" }, { heading: "Offered, /s", numeric: true },
      { heading: "Completed, /s", numeric: true }, { heading: "MB/s", numeric: true }, { heading: "Mean", numeric: true },
      { heading: "p99", numeric: true }, { heading: "" },
    ],
    curves.flatMap((curve) => curve.points.map((point) => row(curve, point))),
    "Points of the curves, means over the repeats",
  ));
}
