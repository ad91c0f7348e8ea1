// Published results for these designs: shown next to this record's, each as multiples of one of its
// values, because size, host and engine differ.

import type { Comparison, Estimate, Metric, Published } from "../analysis";
import { drawBars } from "../chart/bars";
import { drawCurves } from "../chart/curves";
import type { ChartDesign } from "../chart/estimate";
import { figure } from "../chart/frame";
import { swatch } from "../chart/marker";
import { html, type Child } from "../dom";
import { capitalised, change, count, interval, MISSING, ratio } from "../format";
import { metricOf, section, type Page } from "../page";
import { table } from "../table";
import { designLook } from "../theme";
import { publishedQuantity, quantity, unitName } from "../unit";
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
    ratios(page),
    lineLegend(page, all),
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

/** Published ratios and this record's, each written so that the published one is 1 or more. */
function ratios(page: Page): Child {
  const list = page.analysis.comparisons.filter((it) => it.published !== null && it.ratio !== null);
  if (list.length === 0) return null;
  const cells = (it: Comparison): Child[] => {
    const turned = it.published! < 1;
    const turn = (value: number | null) => (value === null ? null : turned ? 1 / value : value);
    const [low, high] = turned ? [turn(it.high), turn(it.low)] : [it.low, it.high];
    const [top, base] = [it.b, it.a].map((design) => page.designs[design]!.title);
    const [theirs, ours] = [turn(it.published)!, turn(it.ratio)!];
    return [
      turned ? `${base} over ${top}` : `${top} over ${base}`, metricOf(page, it.metric).title, count(it.users ?? 0),
      `${ratio(theirs)}${it.published_given ? " (given)" : ""}`, ratio(ours),
      low === null ? MISSING : interval(low, high, ratio), change(ours / theirs),
    ];
  };
  return table(
    [
      { heading: "Ratio", design: true }, { heading: "Metric" }, { heading: capitalised(vocabulary().many), numeric: true },
      { heading: "Published", numeric: true }, { heading: "This record", numeric: true },
      { heading: "95\u00a0%", numeric: true }, { heading: "Error", numeric: true },
    ],
    list.map((it) => ({ cells: cells(it) })),
    "Ratios of designs, published and of this record",
  );
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
  const times: Record<string, string> = {
    p50: "p50 response time", p95: "p95 response time", p99: "p99 response time", mean: "Mean response time",
    read_mean: "Mean response time of reads", write_mean: "Mean response time of writes",
  };
  const title = times[name];
  if (title !== undefined) return { name, title, unit: "ns", better: "lower", definition: "" };
  const [, volume, inner] = /^volumes\.([^.]+)\.(.+)$/.exec(name) ?? [];
  if (volume === undefined || inner === undefined) return metricOf(page, name);
  const metric = metricOf(page, inner);
  return { ...metric, name, title: `${metric.title}, ${volume} volume` };
}

/** The lines of a publication and this record's: the colour is the design's. */
export const PUBLISHED_LINE = { dash: "7 4", marker: "square" } as const;
export const OWN_LINE = { dash: "", marker: "circle" } as const;

/** Where both have a value: what their curves are multiples of. */
interface Reference {
  title: string;
  users: number;
  theirs: number;
  ours: number;
}

/** The last rung that a design has in both. */
function referenceOf(page: Page, list: Published[]): Reference | undefined {
  for (const users of rungsOf(list).reverse()) {
    for (const [design, { title }] of page.designs.entries()) {
      const [theirs, ours] = valuesOf(list, design, users);
      if (theirs && ours) return { title, users, theirs, ours };
    }
  }
  return undefined;
}

/** Published values and this record's on one axis. As sizes differ, as multiples of one value of each; shares as they are. */
function chart(page: Page, name: string, list: Published[]): HTMLElement {
  const metric = publishedMetric(page, name);
  const rungs = rungsOf(list);
  const isShare = metric.unit === "share";
  const own = list[0]?.unit ?? "";
  const reference = referenceOf(page, list);
  const shown = page.designs.flatMap((design, place) => (list.some((series) => series.design === place) ? [{ design, place }] : []));
  const point = (value: number | null, one: number): Estimate | null =>
    value === null ? null : { value: value / one, low: null, high: null, basis: "none", runs: [] };
  const lines: ChartDesign[] = shown.flatMap(({ design }) => {
    const theirs = { title: `${design.title}, published`, look: { ...design.look, ...PUBLISHED_LINE } };
    return reference === undefined ? [theirs] : [theirs, { title: `${design.title}, this record`, look: { ...design.look, ...OWN_LINE } }];
  });
  const scale = isShare || reference === undefined ? { theirs: 1, ours: 1 } : reference;
  const estimates = rungs.map((users) =>
    shown.flatMap(({ place }) => {
      const [theirs, ours] = valuesOf(list, place, users);
      return reference === undefined ? [point(theirs, 1)] : [point(theirs, scale.theirs), point(ours, scale.ours)];
    }));
  const absolute = isShare || reference === undefined;
  const whose = reference === undefined ? "as published" : "published and of this record";
  const note = absolute
    ? [whose, own === "" ? unitName(metric.unit) : own].filter(Boolean).join(", ")
    : `1 = ${reference.title} at ${count(reference.users)} ${vocabulary().many}, of each`;
  if (rungs.length < 2) return bars({ title: metric.title, note, unit: absolute ? metric.unit : "1" }, shown.map(({ design }) => design.title), estimates[0] ?? []);
  return figure({
    title: metric.title,
    note,
    description: `Published ${metric.title} and this record's against ${vocabulary().many}; the numbers are below.`,
    draw: (width) =>
      drawCurves(
        {
          designs: lines, rungs, estimates, unit: absolute ? metric.unit : "1", vertical: "from zero",
          limit: isShare ? 1 : undefined,
        },
        width,
      ),
  });
}

/** One value of each design, published and of this record where it has one: a bar for each. */
function bars({ title, note, unit }: { title: string; note: string; unit: string }, groups: string[], values: (Estimate | null)[]): HTMLElement {
  const kinds = [["published", designLook(5)], ["this record", designLook(0)]] as const;
  const each = values.length / groups.length;
  const designs: ChartDesign[] = kinds.slice(0, each).map(([whose, look]) => ({ title: whose, look }));
  const estimates = groups.map((_, group) => values.slice(group * each, (group + 1) * each));
  return html("div", {},
    figure({
      title, note,
      description: `${title} of each design, published and of this record; the numbers are below.`,
      draw: (width) => drawBars({ designs, groups, estimates, unit, axisTitle: "" }, width),
    }),
    html("ul", { class: "legend" }, designs.map((one) => html("li", {}, swatch(one.look), one.title))));
}

/** What the lines of all charts are; nothing where there are only bars. */
function lineLegend(page: Page, list: Published[]): Child {
  const hasLines = [...new Set(list.map((series) => series.metric))]
    .some((metric) => rungsOf(list.filter((series) => series.metric === metric)).length >= 2);
  if (!hasLines) return null;
  const kinds = [["published", PUBLISHED_LINE], ["this record", OWN_LINE]] as const;
  const shown = page.designs.filter((_, place) => list.some((series) => series.design === place));
  return html("ul", { class: "legend" }, shown.flatMap(({ title, look }) =>
    kinds.map(([whose, line]) => html("li", {}, swatch({ ...look, ...line }), `${title}, ${whose}`))));
}

function numbers(page: Page, name: string, list: Published[]): HTMLElement {
  const metric = publishedMetric(page, name);
  const designs = page.designs.filter((_, design) => list.some((series) => series.design === design));
  const own = list[0]?.unit ?? "";
  return table(
    [
      { heading: capitalised(vocabulary().many), numeric: true },
      ...designs.flatMap((design) => [
        { heading: design.title, numeric: true },
        { heading: "This record", numeric: true },
      ]),
    ],
    rungsOf(list).map((users) => ({
      cells: [
        count(users),
        ...designs.flatMap((design) => {
          const [theirs, ours] = valuesOf(list, page.designs.indexOf(design), users);
          return [publishedQuantity(theirs, own, metric.unit), quantity(ours, metric.unit)];
        }),
      ],
    })),
    `${metric.title}, as published and of this record`,
  );
}
