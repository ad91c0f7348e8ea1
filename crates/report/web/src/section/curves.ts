// The published view of a study: every measure against the number of virtual users, all designs over
// one another.

import type { Estimate, Metric, Rung } from "../analysis";
import { drawCurves, type Vertical } from "../chart/curves";
import { clear, figure } from "../chart/frame";
import { segments, select } from "../control";
import { append, html, type Child } from "../dom";
import { capitalised, interval, MISSING, words } from "../format";
import { grid, hasValues, legend, mainType, metricOf, section, type Page } from "../page";
import { close, table } from "../table";
import { quantity, unitName } from "../unit";
import { isBlockLoad, isBlockStudy, vocabulary } from "../vocabulary";
import { comparisons } from "./comparisons";

interface Curve {
  title: string;
  note: string;
  pick: (rung: Rung) => Estimate | null | undefined;
  unit: string;
  limit?: number | undefined;
}

/** The measures of the published studies, which come first and large. */
const MAIN = ["headline", "tpm", "tpm_per_user", "server_cpu_idle", "cpu_idle"];

/** The measures of a volume that are always shown: a row of rates, of loads, of latencies. */
const VOLUME = [
  "read_iops", "write_iops", "flush_iops",
  "read_bytes_per_second", "write_bytes_per_second", "queue_length",
  "read_latency_ns", "write_latency_ns", "flush_latency_ns",
];

/** The volumes that every design has and every load uses. */
const USUAL_VOLUMES = ["data", "wal"];

/** The section. */
export function curves(page: Page): HTMLElement | null {
  const { workload } = page.analysis;
  // A block load by command has one number of requests in flight: a curve of one point says nothing.
  if (isBlockLoad(workload) && !isBlockStudy(workload) && page.ladder.length < 2) return null;
  // Without a ladder, as of a job, there is no line to draw; these numbers are nowhere else.
  if (page.ladder.length < 2) return measures(page);
  return section(
    "curves",
    isBlockLoad(workload) ? "By requests in flight" : "By number of users",
    "Each point is one rung of the ladder; whiskers are 95 % confidence intervals over the repeats.",
    workingSet(page),
    legend(page),
    html("div", { class: "chart-pair" }, chartsOf(page, MAIN.map((name) => metricCurve(metricOf(page, name))), "from zero")),
    latencyCurves(page),
    volumeCurves(page),
    otherCurves(page),
  );
}

/** What the rungs touch of the database: one that grows with users bends a curve as the load does. */
function workingSet(page: Page): Child {
  const grows = page.analysis.findings.find((finding) => finding.code === "working-set-grows");
  if (grows) return html("p", {}, `${capitalised(grows.text)}.`);
  const touched = unique(page.analysis.rungs.flatMap((rung) => rung.working_set?.text ?? []));
  return touched.length === 1 ? html("p", { class: "muted" }, `Every rung ${touched[0]}.`) : null;
}

/** Every measure of the only rung, of the system and of each volume. */
function measures(page: Page): HTMLElement | null {
  const rungs = page.designs.map((_, design) => page.rung(design, page.ladder[0] ?? 0));
  const present = rungs.filter((rung) => rung !== undefined);
  if (present.length === 0) return null;
  const system = inOrder(page, unique(present.flatMap((rung) => Object.keys(rung.metrics))));
  const volumes = volumesInOrder(unique(present.flatMap((rung) => rung.volumes.map((row) => row.volume))));
  const ofVolume = (rung: Rung, volume: string) => rung.volumes.find((row) => row.volume === volume);
  return section(
    "curves",
    "Measures",
    "Means over the repeats, with their 95 % confidence interval where there is one.",
    measureTable(page, rungs, system, (rung, name) => rung.metrics[name], "System"),
    comparisons(page, "headline_p95_ns"),
    volumes.map((volume) => {
      const rows = present.flatMap((rung) => ofVolume(rung, volume) ?? []);
      const shared = unique(rows.flatMap((row) => row.shared_by));
      const names = inOrder(page, unique(rows.flatMap((row) => Object.keys(row.metrics))));
      return [
        measureTable(
          page, rungs, names, (rung, name) => ofVolume(rung, volume)?.metrics[name],
          shared.length > 0 ? volume : `Volume ${volume}`,
        ),
        shared.length > 0 ? html("p", { class: "muted" }, sharedDevice(shared)) : null,
      ];
    }),
  );
}

function measureTable(
  page: Page,
  rungs: (Rung | undefined)[],
  names: string[],
  pick: (rung: Rung, name: string) => Estimate | null | undefined,
  caption: string,
): HTMLElement {
  return close(table(
    [{ heading: "Measure" }, ...page.designs.map((design) => ({ heading: design.title, numeric: true }))],
    names.map((name) => {
      const metric = metricOf(page, name);
      const write = (value: number | null) => quantity(value, metric.unit);
      return {
        cells: [
          metric.title,
          ...rungs.map((rung): Child => {
            const estimate = rung && pick(rung, name);
            if (!estimate || estimate.value === null) return MISSING;
            const span = interval(estimate.low, estimate.high, write);
            return [write(estimate.value), span === MISSING ? null : html("div", { class: "muted" }, span)];
          }),
        ],
      };
    }),
    caption,
  ));
}

function metricCurve(metric: Metric): Curve {
  return {
    title: metric.title,
    note: unitNote(metric),
    pick: (rung) => rung.metrics[metric.name],
    unit: metric.unit,
    limit: metric.unit === "share" ? 1 : undefined,
  };
}

function chartsOf(page: Page, list: Curve[], vertical: Vertical): HTMLElement[] {
  return list.flatMap((curve) => {
    const estimates = grid(page, curve.pick);
    if (!hasValues(estimates)) return [];
    return [
      figure({
        title: curve.title,
        note: curve.note,
        description: `${curve.title} against ${vocabulary().axis}, one line per design.`,
        draw: (width) =>
          drawCurves(
            {
              designs: page.designs,
              rungs: page.ladder,
              estimates,
              unit: curve.unit,
              vertical,
              limit: curve.limit,
            },
            width,
          ),
      }),
    ];
  });
}

function latencyCurves(page: Page): Child {
  // A job counts what it does, and not each time how long it took.
  const timed = page.analysis.rungs.flatMap((rung) => rung.latencies.filter((row) => row.p50.value !== null));
  const names = unique(timed.map((row) => row.transaction));
  const first = mainType(page, names);
  if (first === undefined) return null;
  let transaction = first;
  let vertical: Vertical = "from zero";
  const charts = html("div", { class: "chart-grid" });
  const draw = () => {
    clear(charts);
    charts.append(...chartsOf(page, (["p50", "p95", "p99"] as const).map((quantile) => ({
      title: `${words(transaction)} ${quantile}`,
      note: "",
      pick: (rung) => rung.latencies.find((row) => row.transaction === transaction)?.[quantile],
      unit: "ns",
    })), vertical));
  };
  draw();
  return [
    html("h3", {}, "Response time"),
    html("div", { class: "controls" },
      select(capitalised(vocabulary().request), names.map((value) => ({ value, label: words(value) })), transaction, (value) => {
        transaction = value;
        draw();
      }),
      segments<Vertical>(
        "Vertical axis",
        [{ value: "from zero", label: "From zero" }, { value: "logarithmic", label: "Logarithmic" }],
        vertical,
        (value) => {
          vertical = value;
          draw();
        },
      )),
    charts,
    comparisons(page, "headline_p95_ns"),
  ];
}

function volumeCurves(page: Page): Child {
  const rows = page.analysis.rungs.flatMap((rung) => rung.volumes);
  const names = volumesInOrder(unique(rows.map((row) => row.volume)));
  const first = names[0];
  if (first === undefined) return null;
  const others = inOrder(page, unique(rows.flatMap((row) => Object.keys(row.metrics))))
    .filter((name) => !VOLUME.includes(name));
  const charts = html("div", {});
  const draw = (volume: string) => {
    clear(charts);
    const shared = unique(rows.filter((row) => row.volume === volume).flatMap((row) => row.shared_by));
    const curve = (name: string): Curve => {
      const metric = metricOf(page, name);
      return {
        ...metricCurve(metric),
        note: [shared.length > 0 ? volume : `${volume} volume`, unitNote(metric)].filter(Boolean).join(", "),
        pick: (rung) => rung.volumes.find((row) => row.volume === volume)?.metrics[name],
      };
    };
    append(charts, [
      shared.length > 0 ? html("p", { class: "muted" }, sharedDevice(shared)) : null,
      html("div", { class: "chart-grid" }, chartsOf(page, VOLUME.map(curve), "from zero")),
      folded(chartsOf(page, others.map(curve), "from zero"), "of this volume"),
    ]);
  };
  draw(first);
  return [
    html("h3", {}, "Volumes"),
    html("div", { class: "controls" },
      select("Volume", names.map((value) => ({ value, label: value })), first, draw)),
    charts,
  ];
}

/** What is asked for most comes first: data, the log, then the others. */
function volumesInOrder(names: string[]): string[] {
  const place = (name: string) => (USUAL_VOLUMES.includes(name) ? USUAL_VOLUMES.indexOf(name) : USUAL_VOLUMES.length);
  return [...names].sort((a, b) => place(a) - place(b));
}

/** Whose the numbers of a device are that volumes have not to themselves. */
function sharedDevice(volumes: string[]): string {
  return `The kernel counts I/O per device: these numbers include all I/O on the device of ${volumes.join(", ")}, `
    + "by any program.";
}

/** Everything else that was computed per rung, folded away. */
function otherCurves(page: Page): Child {
  const names = inOrder(page, unique(page.analysis.rungs.flatMap((rung) => Object.keys(rung.metrics))))
    .filter((name) => !MAIN.includes(name));
  const charts = chartsOf(page, names.map((name) => metricCurve(metricOf(page, name))), "from zero");
  return folded(charts, "of the system");
}

/** The unit, unless the title says it. */
function unitNote(metric: Metric): string {
  const unit = unitName(metric.unit);
  const said = metric.title.toLowerCase().includes(unit) || /\b(NOPM|TPM|IOPS)\b/.test(metric.title);
  return said ? "" : unit;
}

function folded(charts: HTMLElement[], of: string): Child {
  if (charts.length === 0) return null;
  return html("details", { class: "disclosure" },
    html("summary", {}, `${charts.length === 1 ? "1 more measure" : `${charts.length} more measures`} ${of}`),
    html("div", { class: "chart-grid" }, charts));
}

/** Names of metrics in the order in which the method lists them. */
function inOrder(page: Page, names: string[]): string[] {
  const order = page.analysis.method.metrics.map((metric) => metric.name);
  const place = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length);
  return [...names].sort((a, b) => place(a) - place(b));
}

function unique<T>(values: T[]): T[] {
  return [...new Set(values)];
}
