// Copies of the datastore (resync) beside a load: the stages of a run named on its time line, and what copies and volumes
// got of the devices in each of them.

import type { Run, Stage, StageKind, TimelineLine } from "../analysis";
import { timeline, type TimeSpan } from "../chart/timeline";
import { html, type Child } from "../dom";
import { capitalised, clock, count, duration, MISSING } from "../format";
import { section, type Page } from "../page";
import { table } from "../table";
import { quantity } from "../unit";
import { STAGES } from "../vocabulary";
import { origin, timesOf } from "./timelines";

/** What of each queue in front of the devices is drawn: its series, its name, its colour. */
const QUEUES: readonly [string, string, string][] = [
  ["cluster.queue.vm.ios", "Volumes", "--time-data-read"],
  ["cluster.queue.resync.ios", "Resync", "--time-log"],
];

/** The section; nothing where copies and a load did not meet. */
export function resync(page: Page): HTMLElement | null {
  const staged = page.analysis.runs.filter((run) => run.counted && run.stages.length > 0);
  if (staged.length === 0) return null;
  const designs = page.designs.flatMap((_, design) => {
    const runs = staged.filter((run) => run.design === design);
    return runs.length > 0 ? [{ design, runs }] : [];
  });
  return section(
    "resync",
    "Resync and load",
    "The datastore copied data (resync) before, during or after the load. I/Os are those of the devices: for volumes, and for copies.",
    designs.map(({ design, runs }) => chart(page, design, runs[0]!)),
    numbers(page, designs),
  );
}

/** The first run of a design over time. */
function chart(page: Page, design: number, run: Run): Child {
  const { runs, timelines } = page.analysis;
  const found = QUEUES.flatMap(([name, label, property]) => {
    const series = timelines.series.findIndex((one) => one.name === name);
    const line = timelines.lines.find((one) => one.series === series && runs[one.run] === run);
    return line ? [{ line, label, property }] : [];
  });
  if (found.length === 0) return null;
  const spans = run.stages.map((stage, place): TimeSpan => ({
    begin: stage.begin_s - origin(run),
    end: stage.end_s - origin(run),
    label: `${place + 1} ${STAGES[stage.kind]}`,
    short: String(place + 1),
    measured: place % 2 === 0,
  }));
  const whole = rangeOf(run, found.map(({ line }) => line));
  const plot = timeline({
    title: "I/Os of the devices",
    note: `${page.designs[design]!.title}, repeat ${count(run.repeat)}, per second`,
    lines: found.map(({ line, label, property }) => ({
      label,
      swatch: () => html("span", { class: `box ${property.slice(2)}` }),
      property,
      dash: "",
      faint: false,
      times: timesOf(run, line),
      mean: line.mean,
      min: line.min,
      max: line.max,
    })),
    stacked: false,
    legend: true,
    spans,
    marks: [],
    unit: "1/s",
    range: whole,
    onZoom: (range) => plot.zoom(Number.isFinite(range[0]) ? range : whole),
  });
  return plot.element;
}

/** The stages with some room on both sides, as far as there are values. */
function rangeOf(run: Run, lines: TimelineLine[]): [number, number] {
  const begin = Math.min(...lines.map((line) => line.begin_s));
  const end = Math.max(...lines.map((line) => line.begin_s + line.step_s * line.mean.length));
  const first = run.stages[0]!.begin_s;
  const last = run.stages[run.stages.length - 1]!.end_s;
  const room = (last - first) * 0.06;
  return [Math.max(begin, first - room) - origin(run), Math.min(end, last + room) - origin(run)];
}

function numbers(page: Page, designs: { design: number; runs: Run[] }[]): HTMLElement {
  const { rate_unit, unit, is_job } = page.analysis.workload;
  const rows = designs.flatMap(({ design, runs }) => {
    const kinds = [...new Set(runs.flatMap((run) => run.stages.map((stage) => stage.kind)))]
      .sort((a, b) => ORDER.indexOf(a) - ORDER.indexOf(b));
    return kinds.map((kind, place) => {
      const stages = runs.flatMap((run) =>
        run.stages.filter((stage) => stage.kind === kind).map((stage) => ({ stage, from: stage.begin_s - origin(run) })));
      const mean = (of: (stage: Stage) => number | null) => meanOf(stages.map(({ stage }) => of(stage)));
      const write = (value: number | null, of: string) => (value === null ? MISSING : quantity(value, of));
      return {
        className: place === 0 ? "group-start" : "",
        cells: [
          html("span", { class: "nowrap" }, `${place + 1} ${STAGES[kind]}`),
          ...(designs.length > 1 ? [page.designs[design]!.title] : []),
          clock(meanOf(stages.map(({ from }) => from)) ?? 0),
          duration(mean((stage) => stage.end_s - stage.begin_s)),
          write(mean((stage) => stage.resync_per_second), "1/s"),
          write(mean((stage) => stage.resync_bytes_per_second), "bytes/s"),
          write(mean((stage) => stage.volumes_per_second), "1/s"),
          write(mean((stage) => stage.volumes_bytes_per_second), "bytes/s"),
          ...(is_job ? [] : [write(mean((stage) => stage.headline), rate_unit)]),
        ],
      };
    });
  });
  return table(
    [
      { heading: "Stage" }, ...(designs.length > 1 ? [{ heading: "Design", design: true }] : []),
      { heading: "From", numeric: true },
      { heading: "Length", numeric: true },
      { heading: "Resync I/Os", numeric: true }, { heading: "Resync MB/s", numeric: true },
      { heading: "Volume I/Os", numeric: true }, { heading: "Volume MB/s", numeric: true },
      ...(is_job ? [] : [{ heading: capitalised(unit), numeric: true }]),
    ],
    rows,
    "Stages of resync and load, means over the runs; from: since the begin of the first measured window",
  );
}

const ORDER: readonly StageKind[] = ["resync-alone", "load-starts", "load-stable", "load-stopped"];

function meanOf(values: (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
}
