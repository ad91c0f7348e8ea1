// Published results for these designs: shown next to ours, never mixed with them, because
// size, host and engine differ.

import type { Published } from "../analysis";
import { drawCurves } from "../chart/curves";
import { figure } from "../chart/frame";
import { html } from "../dom";
import { count, MISSING } from "../format";
import { legend, metricOf, section, type Page } from "../page";
import { table } from "../table";
import { quantity, unitName } from "../unit";

/** The section. */
export function published(page: Page): HTMLElement | null {
  const all = page.analysis.published;
  if (all.length === 0) return null;
  const metrics = [...new Set(all.map((series) => series.metric))];
  const remarks = [...new Set(all.map((series) => [series.source, series.note].filter(Boolean).join(": ")))];
  return section(
    "published", "Published results",
    "Results published by others for these designs. Sizes, hosts and engines differ: compare shapes and ratios, not absolute values.",
    legend(page),
    html("div", { class: "chart-grid" }, metrics.map((metric) => chart(page, metric, all.filter((s) => s.metric === metric)))),
    html("ul", {}, remarks.map((remark) => html("li", {}, remark))),
    html("details", { class: "disclosure" },
      html("summary", {}, "Published values"),
      metrics.map((metric) => numbers(page, metric, all.filter((s) => s.metric === metric)))));
}

function rungsOf(list: Published[]): number[] {
  return [...new Set(list.flatMap((series) => series.users))].sort((a, b) => a - b);
}

/** Papers print shares in percent; ours lie in 0..1. */
function inUnit(value: number, series: Published, unit: string): number {
  return unit === "share" && series.values.some((other) => other > 1) ? value / 100 : value;
}

function valueOf(list: Published[], design: number, users: number, unit: string): number | null {
  const series = list.find((candidate) => candidate.design === design && candidate.users.includes(users));
  const value = series?.values[series.users.indexOf(users)];
  return series && value !== undefined ? inUnit(value, series, unit) : null;
}

function chart(page: Page, name: string, list: Published[]): HTMLElement {
  const metric = metricOf(page, name);
  const rungs = rungsOf(list);
  const estimates = rungs.map((users) =>
    page.designs.map((_, design) => {
      const value = valueOf(list, design, users, metric.unit);
      return value === null ? null : { value, low: null, high: null, basis: "none" as const, runs: [] };
    }));
  return figure({
    title: metric.title,
    note: ["as published", unitName(metric.unit)].filter(Boolean).join(", "),
    description: `Published ${metric.title} against virtual users; the numbers are below.`,
    draw: (width) =>
      drawCurves(
        {
          designs: page.designs, rungs, estimates, unit: metric.unit, vertical: "from zero",
          limit: metric.unit === "share" ? 1 : undefined,
        },
        width,
      ),
  });
}

function numbers(page: Page, name: string, list: Published[]): HTMLElement {
  const metric = metricOf(page, name);
  const designs = page.designs.filter((_, design) => list.some((series) => series.design === design));
  return table(
    [{ heading: "Users", numeric: true }, ...designs.map((design) => ({ heading: design.title, numeric: true }))],
    rungsOf(list).map((users) => ({
      cells: [
        count(users),
        ...designs.map((design) => {
          const value = valueOf(list, page.designs.indexOf(design), users, metric.unit);
          return value === null ? MISSING : quantity(value, metric.unit);
        }),
      ],
    })),
    `${metric.title}, as published`,
  );
}
