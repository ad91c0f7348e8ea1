// Designs against each other: the ratio of a metric at each rung, with its interval.

import type { Comparison } from "../analysis";
import { drawForest, type ForestRow } from "../chart/forest";
import { figure } from "../chart/frame";
import { html, type Child } from "../dom";
import { change, count, interval, ratio, users, words } from "../format";
import type { Page } from "../page";

/** The margin within which designs count as equal (TOST), as statistics of the report use it. */
export const EQUIVALENCE = 0.05;

/** What a ratio is of, and what smaller and greater mean. */
function meaning(page: Page, metric: string): [string, string, string] | undefined {
  const { counted, rate } = page.analysis.workload;
  switch (metric) {
    case "headline": return [rate, `fewer ${counted}`, `more ${counted}`];
    case "rate_at_1ms": return [`${rate} below 1 ms`, `fewer ${counted}`, `more ${counted}`];
    case "headline_p95_ns": return [`response times of ${counted} (p95)`, "faster", "slower"];
    case "restore_bytes_per_second": return ["MB restored per second", "slower", "faster"];
    default: return undefined;
  }
}

/** More pairs than this are folded away, the winner's first. */
const PAIRS_SHOWN = 3;

/** A chart for each pair of designs that is compared in this metric. */
export function comparisons(page: Page, metric: string): Child {
  const pairs = new Map<string, Comparison[]>();
  for (const comparison of page.analysis.comparisons) {
    if (comparison.metric !== metric || comparison.ratio === null) continue;
    const key = `${comparison.a} ${comparison.b}`;
    pairs.set(key, [...(pairs.get(key) ?? []), comparison]);
  }
  const { winner, against } = page.analysis.verdict;
  const weight = ({ a, b }: Comparison) =>
    [a, b].filter((design) => design === winner).length * 2 + [a, b].filter((design) => design === against).length;
  const lists = [...pairs.values()].sort((x, y) => weight(y[0]!) - weight(x[0]!));
  const charts = lists.map((list) => forest(page, list));
  if (charts.length <= PAIRS_SHOWN) return charts;
  return [
    charts.slice(0, PAIRS_SHOWN),
    html("details", { class: "disclosure" },
      html("summary", {}, `${charts.length - PAIRS_SHOWN} more pairs of designs`),
      charts.slice(PAIRS_SHOWN)),
  ];
}

/** The comparisons of one pair, turned so that the winner, or the one that is ahead, is over the other. */
function forest(page: Page, list: Comparison[]): HTMLElement {
  const { a, b, metric } = list[0]!;
  const turned = aheadOf(page, a, b) === a;
  const top = page.designs[turned ? a : b]!;
  const base = page.designs[turned ? b : a]!;
  const [of, less, more] = meaning(page, metric) ?? [words(metric).toLowerCase(), "lower", "higher"];
  return figure({
    title: `${top.title} against ${base.title}`,
    note: `ratio of ${of} with 95 % confidence interval; grey band: the same within 5 %` +
      (list.some((comparison) => comparison.published !== null) ? "; diamond: published" : ""),
    description: list.map((comparison) => comparison.text).join(" "),
    draw: (width) =>
      drawForest(
        {
          rows: list.map((comparison) => forestRow(page, comparison, turned)),
          equivalence: EQUIVALENCE,
          sides: [`\u2190 ${less}`, `${more} \u2192`],
        },
        width,
      ),
  });
}

function forestRow(page: Page, comparison: Comparison, turned: boolean): ForestRow {
  const turn = (value: number | null) => (value === null ? null : turned ? 1 / value : value);
  const value = turn(comparison.ratio) ?? 1;
  const [low, high] = turned
    ? [turn(comparison.high), turn(comparison.low)]
    : [comparison.low, comparison.high];
  const [hostLow, hostHigh] = turned
    ? [turn(comparison.host_high), turn(comparison.host_low)]
    : [comparison.host_low, comparison.host_high];
  const published = turn(comparison.published);
  const ahead = comparison.outcome === "better" ? comparison.b : comparison.outcome === "worse" ? comparison.a : null;
  const label = comparison.users === null ? "peaks" : users(comparison.users);
  return {
    label,
    value,
    low,
    high,
    published,
    className: ahead === null ? "" : page.designs[ahead]!.look.className,
    describe: () => [
      html("div", { class: "readout-heading" }, `${label}: ${ratio(value)} (${change(value)})`),
      html("div", {}, comparison.text),
      html("div", { class: "muted" },
        low === null ? "one pair of runs: no interval" : `${interval(low, high, ratio)}, ${count(comparison.pairs)} pairs of runs`),
      published === null ? "" : html("div", { class: "muted" }, `published: ${ratio(published)}${comparison.published_given ? " (given)" : ""}`),
      hostLow === null ? "" : html("div", { class: "muted" }, `${interval(hostLow, hostHigh, ratio)} with the host's share`),
    ],
  };
}

/** Which of two designs makes more new orders: the winner, else the one with the greater ratios. */
function aheadOf(page: Page, a: number, b: number): number {
  const { winner } = page.analysis.verdict;
  if (winner === a || winner === b) return winner;
  const pair = page.analysis.comparisons.filter((c) => c.a === a && c.b === b && c.metric === "headline");
  return pair.reduce((sum, c) => sum + Math.log(c.ratio ?? 1), 0) < 0 ? a : b;
}
