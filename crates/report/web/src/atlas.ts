// The page of an atlas: published experiments with their printed numbers and ours, on the same axes.
//
// What it deliberately does not do: compute. Ratios, errors and shapes come from the atlas.

import type {
  Atlas, AtlasAgreement, AtlasCurve, AtlasCurves, AtlasExperiment, AtlasFigure, AtlasLine, AtlasRatio, Estimate, LineOrigin,
} from "./analysis";
import { drawBars } from "./chart/bars";
import { drawCurves } from "./chart/curves";
import type { ChartDesign } from "./chart/estimate";
import { drawForest } from "./chart/forest";
import { figure } from "./chart/frame";
import { swatch } from "./chart/marker";
import { drawRates, type RateSeries } from "./chart/rates";
import { contents } from "./contents";
import { html, type Child } from "./dom";
import { change, count, latency, MISSING, percent, rate, ratio } from "./format";
import { bar } from "./masthead";
import { section } from "./page";
import { EQUIVALENCE } from "./section/comparisons";
import { deviations, OWN_LINE, PUBLISHED_LINE } from "./section/published";
import { evidenceBadge } from "./section/verdict";
import { table } from "./table";
import { designLook, type DesignLook } from "./theme";
import { publishedQuantity, unitName } from "./unit";
import { isBlockLoad } from "./vocabulary";

const TITLE = "Published experiments and ours";

/** How the lines of an origin look: the colour is the design's. */
const LOOKS: Record<LineOrigin, Pick<DesignLook, "dash" | "marker">> = {
  published: PUBLISHED_LINE,
  ours: OWN_LINE,
  simulated: { dash: "2 3", marker: "triangle" },
};

/** Bars have no dashes: there the colour is the origin's. */
const ORIGIN_LOOKS: Record<LineOrigin, DesignLook> = {
  published: designLook(5), ours: designLook(0), simulated: designLook(4),
};

const AGREEMENT: Record<AtlasAgreement, [string, string]> = {
  within: ["within the interval", "good"],
  close: ["within 25 %", "good"],
  "same-direction": ["same direction", "warn"],
  "no-difference": ["one shows no difference", "warn"],
  opposite: ["opposite", "bad"],
  unknown: ["not measured", ""],
};

/** Replaces the plain text by the page. */
export function atlasPage(atlas: Atlas): void {
  const main = html("main", { id: "report" }, overview(atlas), atlas.experiments.map(experiment));
  document.getElementById("fallback")?.remove();
  document.body.append(
    html("a", { class: "skip", href: "#overview" }, "Skip to the ratios"),
    bar(TITLE),
    html("div", { class: "columns" }, contents(main), main),
  );
}

/** A headline ratio, with its study and what the page calls it. */
interface Headline {
  one: AtlasExperiment;
  it: AtlasRatio;
  label: string;
}

/** The headline ratios of a study: numbered, where there are several, so that chart and table name the same one. */
function headlinesOf(one: AtlasExperiment): Headline[] {
  const list = one.ratios.filter((it) => it.is_headline);
  return list.map((it, index) => ({ one, it, label: list.length < 2 ? one.name : `${one.name} (${index + 1})` }));
}

function overview(atlas: Atlas): HTMLElement {
  const rows = atlas.experiments.flatMap(headlinesOf);
  const isAnyLimited = rows.some(({ it }) => it.is_host_limited);
  // Without such ratios it is the same number; an older atlas lacks it.
  const without = isAnyLimited ? atlas.median_error_not_host_limited ?? null : null;
  const median = (error: number | null, whose: string, more = "") =>
    error === null ? null : html("p", {}, `Median error of the ratios of ${whose}: ${percent(error, 0)}${more}.`);
  return section(
    "overview", TITLE,
    "Sizes, hosts and engines differ from those of the publications: ratios are compared, not values. Each is written so that the published one is 1 or more.",
    median(atlas.median_error, "runs", without === null ? "" : `; without host-limited ones ${percent(without, 0)}`),
    median(atlas.simulated_median_error, "simulations"),
    rows.some(({ it }) => it.is_given)
      ? html("p", { class: "muted" }, "Given: a side was fitted to the publication or set by the study; not part of the medians.")
      : null,
    isAnyLimited
      ? html("p", { class: "muted" }, "Host-limited: this host was measured instead of one of the designs.")
      : null,
    headlines(rows.filter(({ it }) => it.ours !== null)),
    rows.length === 0 ? null : ratios(rows.map(({ it }) => it), "Headline ratios", {
      heading: "Study", cells: rows.map(({ one, label }) => html("a", { href: `#${idOf(one)}` }, label)),
    }),
    withoutRatio(atlas.experiments.filter((one) => headlinesOf(one).length === 0)),
  );
}

/** The studies that the table leaves out: their publications print nothing that a ratio could be made of. */
function withoutRatio(list: AtlasExperiment[]): Child {
  if (list.length === 0) return null;
  const links = list.flatMap((one, index) => [index === 0 ? "" : ", ", html("a", { href: `#${idOf(one)}` }, one.name)]);
  return html("p", {}, "Without a published ratio: ", links, ".");
}

/** The headline ratios of all experiments at a glance. */
function headlines(rows: Headline[]): Child {
  if (rows.length === 0) return null;
  return figure({
    title: "Headline ratios",
    note: "dot: ours, with 95 % confidence interval; diamond: published; grey band: the same within 5 %",
    description: "The headline ratio of each experiment, published and ours; the table below has the numbers.",
    draw: (width) => drawForest(
      {
        rows: rows.map(({ it, label }) => ({
          label, value: it.ours ?? 1, low: it.low, high: it.high, published: it.published,
          className: designLook(0).className,
          describe: () => [
            html("div", { class: "readout-heading" }, `${label}: ${it.text}`),
            html("div", {}, `${it.metric}: published ${ratio(it.published)}, ours ${ratio(it.ours)}`),
          ],
        })),
        equivalence: EQUIVALENCE,
        sides: ["\u2190 the other design ahead", "as published \u2192"],
      },
      width,
    ),
  });
}

/** Ratios as a table, with a column before them where they are of several studies; without simulations, none of their columns. */
function ratios(list: AtlasRatio[], caption: string, first?: { heading: string; cells: Child[] }): HTMLElement {
  const simulated = list.some((it) => it.simulated !== null);
  const isShown = (_: unknown, column: number) => simulated || !SIMULATED_COLUMNS.includes(column);
  return table(
    [...(first ? [{ heading: first.heading }] : []), ...RATIO_COLUMNS.filter(isShown)],
    list.map((it, row) => ({ cells: [...(first ? [first.cells[row] ?? null] : []), ...ratioCells(it).filter(isShown)] })),
    caption,
  );
}

/** Places of what simulations say in a row. */
const SIMULATED_COLUMNS = [6, 7];

const RATIO_COLUMNS = [
  { heading: "Ratio", design: true },
  { heading: "Metric" },
  { heading: "Published", numeric: true },
  { heading: "Ours", numeric: true },
  { heading: "95\u00a0%", numeric: true },
  { heading: "Error", numeric: true },
  { heading: "Simulated", numeric: true },
  { heading: "Error", numeric: true },
  { heading: "Agreement" },
];

function ratioCells(it: AtlasRatio): Child[] {
  const [text, className] = AGREEMENT[it.agreement];
  const error = (value: number | null) => (value === null ? MISSING : change(1 + value));
  const interval = it.low === null || it.high === null ? MISSING : `${ratio(it.low)} to ${ratio(it.high)}`;
  return [
    `${it.text}${it.is_given ? " (given)" : ""}${it.is_host_limited ? " (host-limited)" : ""}`, it.metric, ratio(it.published), ratio(it.ours), interval, error(it.error),
    ratio(it.simulated), error(it.simulated_error),
    html("span", { class: `badge ${className}` }, text),
  ];
}

function idOf(one: AtlasExperiment): string {
  return `study-${one.name.replace(/[^a-z0-9-]/g, "-")}`;
}

function experiment(one: AtlasExperiment): HTMLElement {
  const list = (title: string, texts: string[]) =>
    texts.length === 0 ? null : html("div", {}, html("h3", {}, title), html("ul", {}, texts.map((text) => html("li", {}, text))));
  const scale = one.scale === "" || one.scale === "1/1" ? null : html("span", { class: "badge" }, `scale ${one.scale}`);
  const element = section(
    idOf(one), `${one.name}: ${one.title}`, one.question,
    html("p", { class: "badges" }, one.evidence === null ? null : evidenceBadge(one.evidence), scale, reportLink(one)),
    one.problem === null ? null : html("p", { class: "status bad" }, one.problem),
    one.answer === "" ? null : html("p", {}, html("b", {}, "Ours: "), one.answer),
    list("What disagrees", one.disagreements),
    one.evidence !== null && one.figures.length === 0
      ? html("p", { class: "muted" }, "The study has no published number of what is measured here, so there is no figure.")
      : html("div", { class: "chart-pair" }, rateCurves(one.curves), one.figures.map((it) => chart(one, it))),
    one.ratios.length === 0 ? null : ratios(one.ratios, "Ratios"),
    deviations(one.deviations),
    list("What our run says about itself", one.reasons),
    valuesOf(one),
    list("Sources", one.sources),
  );
  // With their titles, the contents of forty studies would be longer than the screen.
  element.dataset.contents = one.name;
  return element;
}

/** All values of an experiment, folded where figures show them. */
function valuesOf(one: AtlasExperiment): Child {
  if (one.figures.length === 0) return null;
  const fold = html("details", { class: "disclosure" },
    html("summary", {}, "Values"), curvePoints(one.curves), one.figures.map((it) => values(one, it)));
  fold.open = one.figures.every((it) => it.reference === "") && !isDrawn(one.curves);
  return fold;
}

/** The report of the run, which lies beside the page. */
function reportLink(one: AtlasExperiment): Child {
  if (one.record === "") return null;
  return html("a", { href: encodeURIComponent(one.record.replace(/\.sqlite$/, ".html")) }, "report");
}

function titleOf(line: AtlasLine | AtlasCurve): string {
  return `${line.title}, ${line.origin}`;
}

function lookOf(line: AtlasLine | AtlasCurve): DesignLook {
  return { ...designLook(line.design), ...LOOKS[line.origin] };
}

function usersTitle(one: AtlasExperiment): string {
  if (isBlockLoad(one.workload ?? undefined)) return "threads per volume";
  return one.workload?.is_job ? "sessions" : "virtual users";
}

/** Whether rate curves have a figure: there must be a maximum that their rates are multiples of. */
function isDrawn(it: AtlasCurves | null): it is AtlasCurves {
  return it !== null && it.reference !== "";
}

/** Mean latency against the delivered rate: published points and ours. Rates are multiples of a maximum, latencies as they are. */
function rateCurves(it: AtlasCurves | null): Child {
  if (!isDrawn(it)) return null;
  const limit = latency(it.limit_ns);
  const series: RateSeries[] = it.lines.map((line) => ({
    title: titleOf(line),
    look: lookOf(line),
    points: line.points.flatMap((point) => {
      if (point.multiple === null) return [];
      return [{ rate: point.multiple, value: point.latency_ns, held: true, notes: [point.label, `${rate(point.rate)} I/Os per second`] }];
    }),
  }));
  return html("div", {},
    figure({
      title: "Mean latency by delivered rate",
      note: `1 = maximum of ${it.reference}, of the publication and of ours; horizontal line: ${limit}`,
      description: `Mean latency against I/Os per second of each design, published and ours; rates are multiples of the maximum of ${it.reference}.`,
      draw: (width) =>
        drawRates(
          { series, rateUnit: "1", rateTitle: "delivered rate", unit: "ns", horizontal: "from zero", limit: it.limit_ns },
          width,
        ),
    }),
    html("ul", { class: "legend" }, series.map((line) => html("li", {}, swatch(line.look), line.title))));
}

/** The points of rate curves as a table. */
function curvePoints(it: AtlasCurves | null): Child {
  if (it === null) return null;
  return table(
    [
      { heading: "Design", design: true }, { heading: "Whose" }, { heading: "Point" }, { heading: "I/Os per second", numeric: true },
      { heading: "Multiple", numeric: true }, { heading: "Mean latency", numeric: true },
    ],
    it.lines.flatMap((line) => line.points.map((point) => ({
      cells: [line.title, line.origin, point.label, rate(point.rate), ratio(point.multiple), latency(point.latency_ns)],
    }))),
    "Mean latency by delivered rate",
  );
}

/** Published values and ours as multiples of one of them; nothing where there is no shape to see. */
function chart(one: AtlasExperiment, it: AtlasFigure): Child {
  if (it.reference === "") return null;
  if (it.users.length < 2) return singleChart(it);
  const lines: ChartDesign[] = it.lines.map((line) => ({ title: titleOf(line), look: lookOf(line) }));
  const estimates = it.users.map((_, rung) =>
    it.lines.map((line): Estimate | null => {
      const value = line.shape[rung] ?? null;
      return value === null ? null : { value, low: null, high: null, basis: "none", runs: [] };
    }));
  return html("div", {},
    figure({
      title: it.title,
      note: `1 = ${it.reference}, of the publication and of ours`,
      description: `${it.title} against ${usersTitle(one)}, published and ours, as multiples of the value of ${it.reference}.`,
      draw: (width) => drawCurves(
        {
          designs: lines, rungs: it.users, estimates, unit: "1", vertical: "from zero",
          horizontal: { title: `${usersTitle(one)} of the publication`, write: count },
        },
        width,
      ),
    }),
    html("ul", { class: "legend" }, lines.map((line) => html("li", {}, swatch(line.look), line.title))));
}

/** Of what has one value per design, such as the result of a job: a bar for each of them, published and ours. */
function singleChart(it: AtlasFigure): Child {
  const origins = (Object.keys(LOOKS) as LineOrigin[]).filter((origin) => it.lines.some((line) => line.origin === origin));
  const bars: ChartDesign[] = origins.map((origin) => ({ title: origin, look: ORIGIN_LOOKS[origin] }));
  const groups = [...new Map(it.lines.map((line) => [line.design, line.title])).entries()];
  const estimates = groups.map(([design]) => origins.map((origin): Estimate | null => {
    const value = it.lines.find((line) => line.design === design && line.origin === origin)?.shape[0] ?? null;
    return value === null ? null : { value, low: null, high: null, basis: "none", runs: [] };
  }));
  return html("div", {},
    figure({
      title: it.title,
      note: `1 = ${it.reference}, of the publication and of ours`,
      description: `${it.title} of each design, published and ours, as multiples of the value of ${it.reference}.`,
      draw: (width) =>
        drawBars({ designs: bars, groups: groups.map(([, title]) => title), estimates, unit: "1", axisTitle: "" }, width),
    }),
    html("ul", { class: "legend" }, bars.map((one) => html("li", {}, swatch(one.look), one.title))));
}

function values(one: AtlasExperiment, it: AtlasFigure): HTMLElement {
  const isJob = one.workload?.is_job ?? false;
  const unit = unitName(it.unit);
  return table(
    [...(isJob ? [] : [{ heading: usersTitle(one), numeric: true }]),
      ...it.lines.map((line) => ({ heading: titleOf(line), numeric: true }))],
    it.users.map((users, rung) => ({
      cells: [...(isJob ? [] : [count(users)]), ...it.lines.map((line) =>
        publishedQuantity(line.values[rung], line.origin === "published" ? it.published_unit : "", it.unit))],
    })),
    `${it.title}${unit === "" ? "" : `, ${unit}`}`,
  );
}
