// Published results for these designs: shown next to this record's, never mixed with them, because
// size, host and engine differ.

import type { Metric, Published } from "../analysis";
import { drawCurves } from "../chart/curves";
import { figure } from "../chart/frame";
import { html } from "../dom";
import { capitalised, count, MISSING, ratio } from "../format";
import { legend, metricOf, section, type Page } from "../page";
import { table } from "../table";
import { quantity, unitName } from "../unit";
import { vocabulary } from "../vocabulary";

/** The section. */
export function published(page: Page): HTMLElement | null {
  const published = page.analysis.published;
  if (published.length === 0) return null;
  const all = published.filter((series) => series.database === "");
  const databases = [...new Set(published.map((series) => series.database))].filter((name) => name !== "");
  const metrics = [...new Set(all.map((series) => series.metric))];
  const remarks = [...new Set(published.map((series) =>
    [[series.experiment, series.source].filter(Boolean).join(", "), series.note].filter(Boolean).join(": ")))];
  return section(
    "published", "Published results",
    "Results published by others for these designs. Sizes, hosts and engines differ: compare shapes and ratios, not absolute values.",
    legend(page),
    html("div", { class: "chart-grid" }, metrics.map((metric) => chart(page, metric, all.filter((s) => s.metric === metric)))),
    html("ul", {}, remarks.map((remark) => html("li", {}, remark))),
    deviations(page.analysis.study.deviations),
    html("details", { class: "disclosure" },
      html("summary", {}, "Published values"),
      metrics.map((metric) => numbers(page, metric, all.filter((s) => s.metric === metric))),
      databases.flatMap((name) => {
        const own = published.filter((series) => series.database === name);
        const list = [...new Set(own.map((series) => series.metric))];
        return [
          html("h3", {}, name),
          ...list.map((metric) => numbers(page, metric, own.filter((s) => s.metric === metric))),
        ];
      })));
}

/** What differs from the publication; nothing of a study that says nothing. */
export function deviations(texts: string[]): HTMLElement | null {
  if (texts.length === 0) return null;
  return html("div", {},
    html("h3", {}, "What differs from the publication"),
    html("ul", {}, texts.map((text) => html("li", {}, text))));
}

function rungsOf(list: Published[]): number[] {
  return [...new Set(list.flatMap((series) => series.users))].sort((a, b) => a - b);
}

/** A published value and this record's. */
function valuesOf(list: Published[], design: number, users: number): [number | null, number | null] {
  const series = list.find((candidate) => candidate.design === design && candidate.users.includes(users));
  const place = series?.users.indexOf(users) ?? 0;
  return [series?.values[place] ?? null, series?.ours[place] ?? null];
}

/** What a metric is: of a volume, the metric of that name. */
function publishedMetric(page: Page, name: string): Metric {
  const times: Record<string, string> = { p50: "p50 response time", p95: "p95 response time", p99: "p99 response time", mean: "Mean response time" };
  const title = times[name];
  if (title !== undefined) return { name, title, unit: "ns", better: "lower", definition: "" };
  const [, volume, inner] = /^volumes\.([^.]+)\.(.+)$/.exec(name) ?? [];
  if (volume === undefined || inner === undefined) return metricOf(page, name);
  const metric = metricOf(page, inner);
  return { ...metric, name, title: `${metric.title}, ${volume} volume` };
}

function chart(page: Page, name: string, list: Published[]): HTMLElement {
  const metric = publishedMetric(page, name);
  const rungs = rungsOf(list);
  const estimates = rungs.map((users) =>
    page.designs.map((_, design) => {
      const [value] = valuesOf(list, design, users);
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
  const metric = publishedMetric(page, name);
  const designs = page.designs.filter((_, design) => list.some((series) => series.design === design));
  const write = (value: number | null) => (value === null ? MISSING : quantity(value, metric.unit));
  return table(
    [
      { heading: capitalised(vocabulary().many), numeric: true },
      ...designs.flatMap((design) => [
        { heading: design.title, numeric: true },
        { heading: "This record", numeric: true },
        { heading: "Ratio", numeric: true },
      ]),
    ],
    rungsOf(list).map((users) => ({
      cells: [
        count(users),
        ...designs.flatMap((design) => {
          const [theirs, ours] = valuesOf(list, page.designs.indexOf(design), users);
          return [write(theirs), write(ours), ratio(theirs && ours ? ours / theirs : null)];
        }),
      ],
    })),
    `${metric.title}, as published and of this record`,
  );
}
