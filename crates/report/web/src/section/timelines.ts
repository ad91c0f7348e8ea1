// Time lines of the runs: which runs, which layer, which series, and which part of the time.
//
// Charts are made when they come near the screen, so that a page with many series opens at once.

import type { Run, TimelineLine, TimelineSeries } from "../analysis";
import { marker, swatch } from "../chart/marker";
import { timeline, type TimeLine, type Timeline, type TimeMark, type TimeSpan } from "../chart/timeline";
import { checks, select } from "../control";
import { html, svg, uniqueId } from "../dom";
import { capitalised, count, users, words } from "../format";
import { section, type Page } from "../page";
import { unitName } from "../unit";
import { STAGES } from "../vocabulary";

/** Phases that everything else in a run is preparation for. */
const MEASURED = "measure";
/** The phase without the delays of the storage. */
const TWIN = "null-twin";
/** Groups whose series add up to a whole, and the title of their chart. */
const STACKED: Record<string, string> = {
  waits: "Session states",
  "host CPU": "Host CPU time",
  "cluster bandwidth": "Cluster device bandwidth by queue",
};
/** Groups of one disk group each, whose series add up as well. */
const STACKED_PARTS = / by queue$/;
/** So many disk groups have such a chart each in the overview; of more, only all together have. */
const PARTS_IN_OVERVIEW = 4;
/** Series that a first look needs; of other groups the overview shows nothing. */
const OVERVIEW_SERIES = [
  /^(headline|done)$/, /^volume\.(data|whole-device)\.read_(iops|latency)$/,
  /^volume\.(wal|whole-device)\.write_(iops|latency)$/, /^process\.(postgres|mariadb)\.run_queue$/,
  /^background\..*\.(read_|write_)?bytes$/, /^cluster\.resync\.left$/, /^cluster\.group\..*\.(buffer\.free|write\.p99)$/,
];
/** Of several databases no volume is the one to look at first, but all of them together. */
const OVERVIEW_TOTALS = /^volumes\.(read|write)_(iops|latency)$/;
/** So many types of transactions have their latencies in the overview. */
const TYPES_IN_OVERVIEW = 4;
/** Latencies of what the headline counts belong to the first look, unless there are many. */
function isMainLatency(page: Page, series: string): boolean {
  if (page.analysis.workload.types.length > TYPES_IN_OVERVIEW) return false;
  return page.analysis.workload.types.some((type) => /^p(50|99)$/.test(series.replace(`latency.${type}.`, "")));
}

const OVERVIEW = "overview";
const ALL = "all";

/** Custom property of the colour of a series in a stack, by the last part of its name. */
const COLORS: Record<string, string> = {
  user: "--time-cpu",
  nice: "--time-other",
  system: "--time-run-queue",
  iowait: "--time-data-read",
  softirq: "--time-latch",
  steal: "--time-lock",
  idle: "--time-client",
  vm: "--time-data-read",
  resync: "--time-log",
  destage: "--time-data-write",
  metadata: "--time-latch",
  namespace: "--time-lock",
};
/** Custom property of the colour of a mark, by the kind of its event. */
const MARKS: Record<string, string> = { fault: "--bad", resync: "--link", storage: "--warn" };
/** Marks closer than this are one mark: a host takes many parts with it. Seconds. */
const MARKS_APART = 1;
/** Events named at one mark; further ones are only counted. */
const EVENTS_TOLD = 3;
const WHOLE_CLUSTER = "";

interface Filter {
  designs: number[];
  repeats: number[];
  layer: string;
  /** A host of the cluster, to see only its parts. */
  host: string;
  words: string[];
}

/**
 * What one chart shows: a series in several runs, several series of one run on top of each other, or one measure of
 * several parts of the storage in one run.
 */
interface Chart {
  title: string;
  group: string;
  layer: string;
  /** Positions of its series. */
  series: number[];
  stacked: boolean;
  /** Whether its lines are parts of the storage. */
  parts: boolean;
  /** What a search looks at. */
  text: string;
  /** Whether it belongs to the overview. */
  key: boolean;
}

/** The section. */
export function timelines(page: Page): HTMLElement | null {
  if (!page.analysis.timelines.series.some((_, index) => drawable(page, index))) return null;
  return new TimelineSection(page).element;
}

/** Whether any run has a line of this series: two values side by side. What lasted a second has a number, and no course. */
function drawable(page: Page, series: number): boolean {
  return page.analysis.timelines.lines.some((line) => line.series === series && hasCourse(line));
}

function hasCourse(line: TimelineLine): boolean {
  return line.mean.some((value, index) => value !== null && (line.mean[index + 1] ?? null) !== null);
}

function chartsOf(page: Page, series: TimelineSeries[]): Chart[] {
  const charts: Chart[] = [];
  const stacks = new Map<string, Chart>();
  series.forEach((one, index) => {
    const text = ` ${one.title} ${one.name} ${one.layer} ${one.group}`.toLowerCase();
    const parts = one.entity !== null;
    const key = parts ? `parts ${one.group}` : one.group;
    const stack = stacks.get(key);
    if (stack) {
      stack.series.push(index);
      stack.text += text;
      return;
    }
    const title = STACKED[one.group] ?? (parts ? partTitle(one) : undefined);
    const stacked = STACKED[one.group] !== undefined || (parts && STACKED_PARTS.test(one.group));
    const chart: Chart = {
      // `wal: writes` begins with the name of a volume, which stays as it is.
      title: title ?? (one.title.includes(":") ? one.title : words(one.title)),
      group: one.group,
      layer: one.layer,
      series: [index],
      stacked,
      parts,
      text,
      key: STACKED[one.group] !== undefined || OVERVIEW_SERIES.some((pattern) => pattern.test(one.name))
        || isMainLatency(page, one.name) || (page.analysis.databases.length > 0 && OVERVIEW_TOTALS.test(one.name)),
    };
    if (title !== undefined) stacks.set(key, chart);
    charts.push(chart);
  });
  const stackedParts = charts.filter((chart) => chart.parts && chart.stacked);
  if (stackedParts.length <= PARTS_IN_OVERVIEW) stackedParts.forEach((chart) => (chart.key = true));
  // Data that knows none of the usual names still has an overview.
  if (!charts.some((chart) => chart.key)) charts.slice(0, 6).forEach((chart) => (chart.key = true));
  return charts;
}

class TimelineSection {
  readonly element: HTMLElement;
  private readonly page: Page;
  private readonly catalogue: Chart[];
  private readonly holder = html("div", { class: "timelines" });
  private readonly status = html("span", { class: "muted", role: "status" });
  private readonly filter: Filter;
  private readonly whole: [number, number];
  private range: [number, number];
  private shown: Timeline[] = [];
  private readonly waiting = new Map<Element, () => void>();
  private readonly nearScreen: IntersectionObserver;

  constructor(page: Page) {
    this.page = page;
    this.catalogue = chartsOf(page, page.analysis.timelines.series).filter((chart) =>
      chart.series.some((index) => drawable(page, index)));
    const counted = page.analysis.runs.filter((run) => run.counted);
    const repeats = [...new Set(counted.map((run) => run.repeat))].sort((a, b) => a - b);
    this.filter = {
      designs: page.designs.map((_, index) => index),
      repeats: repeats.slice(0, 1),
      layer: OVERVIEW,
      host: WHOLE_CLUSTER,
      words: [],
    };
    this.whole = wholeSpan(page);
    this.range = this.whole;
    this.nearScreen = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) this.make(entry.target);
    }, { rootMargin: "600px 0px" });
    addEventListener("beforeprint", () => this.makeAll());
    this.element = section(
      "timelines",
      "Timelines",
      "Time since the start of the first measured window. Measured windows are shaded; events are marked at " +
        "the bottom. Drag across a chart to zoom all charts; double-click to reset.",
      this.controls(repeats),
      this.holder,
    );
    this.draw();
  }

  private controls(repeats: number[]): HTMLElement {
    const layers = [...new Set(this.catalogue.map((chart) => chart.layer))];
    const id = uniqueId("series");
    const search = html("input", {
      id, type: "search", placeholder: "e.g. wal latency", autocomplete: "off",
      oninput: () => {
        this.change({ words: search.value.toLowerCase().split(/\s+/).filter(Boolean) });
      },
    });
    return html("div", { class: "controls" },
      checks(
        "Designs",
        this.page.designs.map((design, value) => ({
          value, label: design.title,
          ornament: svg("svg", { width: 12, height: 12, viewBox: "0 0 12 12", "aria-hidden": "true" },
            marker(design.look, 6, 6)),
        })),
        this.filter.designs,
        (designs) => this.change({ designs }),
      ),
      checks(
        "Repeats",
        repeats.map((value) => ({ value, label: count(value) })),
        this.filter.repeats,
        (values) => this.change({ repeats: values }),
      ),
      select(
        "Layer",
        [
          { value: OVERVIEW, label: "Overview" },
          { value: ALL, label: "All layers" },
          ...layers.map((value) => ({ value, label: words(value) })),
        ],
        this.filter.layer,
        (layer) => this.change({ layer }),
      ),
      this.hostChoice(),
      this.spanChoice(),
      html("span", { class: "control" }, html("label", { for: id }, "Series"), search),
      this.status);
  }

  /** Of a cluster: all of it, or the parts of one host. */
  private hostChoice(): HTMLElement | null {
    const entities = this.page.analysis.timelines.series.flatMap((one) => one.entity?.includes("/") ? [hostOf(one)] : []);
    const hosts = [...new Set(entities)];
    if (hosts.length < 2) return null;
    return select(
      "Part",
      [{ value: WHOLE_CLUSTER, label: "Whole cluster" }, ...hosts.map((value) => ({ value, label: value }))],
      this.filter.host,
      (host) => this.change({ host }),
    );
  }

  /** The whole run, or one measured window of the first run. */
  private spanChoice(): HTMLElement {
    const run = this.page.analysis.runs.find((candidate) => candidate.counted);
    const windows = run ? spansOf(run).filter((span) => span.measured) : [];
    return select<[number, number]>(
      "Span",
      [
        { value: this.whole, label: "Whole run" },
        ...windows.map((span) => {
          const room = (span.end - span.begin) * 0.1;
          return { value: [span.begin - room, span.end + room] as [number, number], label: span.label };
        }),
      ],
      this.whole,
      (range) => this.zoom(range),
    );
  }

  private change(part: Partial<Filter>): void {
    Object.assign(this.filter, part);
    this.draw();
  }

  private zoom(range: [number, number]): void {
    this.range = Number.isFinite(range[0]) ? range : this.whole;
    for (const chart of this.shown) chart.zoom(this.range);
  }

  private makeAll(): void {
    for (const element of [...this.waiting.keys()]) this.make(element);
  }

  private make(element: Element): void {
    this.waiting.get(element)?.();
    this.waiting.delete(element);
    this.nearScreen.unobserve(element);
  }

  /** A search goes through all series, whatever the layer chosen. */
  private matches(chart: Chart): boolean {
    const { layer, host, words: wanted } = this.filter;
    if (host !== WHOLE_CLUSTER) {
      const { series } = this.page.analysis.timelines;
      return chart.parts && chart.series.some((index) => hostOf(series[index]!) === host) &&
        wanted.every((word) => chart.text.includes(word));
    }
    if (wanted.length > 0) return wanted.every((word) => chart.text.includes(word));
    return layer === ALL || (layer === OVERVIEW ? chart.key : chart.layer === layer);
  }

  private draw(): void {
    for (const chart of this.shown) chart.destroy();
    this.shown = [];
    this.waiting.clear();
    this.nearScreen.disconnect();
    this.holder.replaceChildren();
    const { timelines: data, runs } = this.page.analysis;
    const wanted = runs.flatMap((run, index) =>
      run.counted && this.filter.designs.includes(run.design) && this.filter.repeats.includes(run.repeat) ? [index] : []);
    let charts = 0;
    for (const chart of this.catalogue) {
      if (!this.matches(chart)) continue;
      const lines = data.lines.filter((line) => wanted.includes(line.run) && chart.series.includes(line.series));
      if (!lines.some(hasCourse)) continue;
      charts += 1;
      if (!chart.stacked && !chart.parts) {
        this.promise(() => this.overlaid(chart, lines, wanted));
        continue;
      }
      for (const run of wanted) {
        const mine = lines.filter((line) => line.run === run);
        if (!mine.some(hasCourse)) continue;
        this.promise(() => chart.stacked ? this.stack(chart, mine, run) : this.parts(chart, mine, run));
      }
    }
    this.status.textContent = wanted.length === 0
      ? "no run selected"
      : `${charts} of ${this.catalogue.length} charts`;
  }

  /** Leaves room for a chart and makes it when it comes near the screen. */
  private promise(make: () => Timeline): void {
    const place = html("div", { class: "timeline-place" });
    this.holder.append(place);
    this.waiting.set(place, () => {
      const chart = make();
      this.shown.push(chart);
      place.replaceChildren(chart.element);
    });
    this.nearScreen.observe(place);
  }

  private overlaid(chart: Chart, lines: TimelineLine[], wanted: number[]): Timeline {
    const unit = this.page.analysis.timelines.series[chart.series[0]!]!.unit;
    return timeline({
      title: chart.title,
      note: [chart.group, unitName(unit), chart.layer].filter(Boolean).join(", "),
      lines: lines.map((line) => this.line(line)),
      stacked: false,
      spans: spansOf(this.page.analysis.runs[wanted[0]!]!),
      marks: this.marks(wanted),
      unit,
      range: this.range,
      onZoom: (range) => this.zoom(range),
    });
  }

  private line(line: TimelineLine): TimeLine {
    const run = this.page.analysis.runs[line.run]!;
    const { look, title } = this.page.designs[run.design]!;
    return {
      label: `${title}, repeat ${run.repeat}`,
      swatch: () => swatch(look),
      property: look.property,
      dash: look.dash,
      faint: run.repeat !== this.filter.repeats[0],
      times: timesOf(run, line),
      mean: line.mean,
      min: line.min,
      max: line.max,
    };
  }

  private stack(chart: Chart, lines: TimelineLine[], run: number): Timeline {
    const { series, runs } = { series: this.page.analysis.timelines.series, runs: this.page.analysis.runs };
    const unit = series[chart.series[0]!]!.unit;
    return timeline({
      title: chart.title,
      note: this.note(run, unit),
      lines: [...lines].sort((a, b) => rest(series[a.series]!) - rest(series[b.series]!)).map((line) => {
        const one = series[line.series]!;
        // `wait.data-read` is the class `data-read`.
        const key = one.name.slice(one.name.lastIndexOf(".") + 1);
        const property = COLORS[key] ?? `--time-${key}`;
        return {
          label: one.title,
          swatch: () => html("span", { class: `box ${property.slice(2)}` }),
          property,
          dash: "",
          faint: false,
          times: timesOf(runs[run]!, line),
          mean: line.mean,
          min: null,
          max: null,
        };
      }),
      stacked: true,
      spans: spansOf(runs[run]!),
      marks: this.marks([run]),
      unit,
      range: this.range,
      onZoom: (range) => this.zoom(range),
    });
  }

  /** Whose lines these are, and in what unit. */
  private note(run: number, unit: string): string {
    const { design, repeat } = this.page.analysis.runs[run]!;
    const title = this.page.designs[design]!.title;
    return [title, this.filter.repeats.length > 1 ? `repeat ${repeat}` : "", unitName(unit)].filter(Boolean).join(", ");
  }

  /** One measure of several parts of the storage. */
  private parts(chart: Chart, lines: TimelineLine[], run: number): Timeline {
    const { timelines: { series }, runs } = this.page.analysis;
    const unit = series[chart.series[0]!]!.unit;
    const { host } = this.filter;
    const wanted = lines.filter((line) => host === WHOLE_CLUSTER || hostOf(series[line.series]!) === host);
    return timeline({
      title: chart.title,
      note: this.note(run, unit),
      lines: wanted.map((line) => {
        // A part keeps its colour whatever else is shown.
        const look = partLook(chart.series.indexOf(line.series));
        return {
          label: series[line.series]!.title,
          swatch: () => partSwatch(look),
          property: look.property,
          dash: look.dash,
          faint: false,
          times: timesOf(runs[run]!, line),
          mean: line.mean,
          min: line.min,
          max: line.max,
        };
      }),
      stacked: false,
      legend: true,
      spans: spansOf(runs[run]!),
      marks: this.marks([run]),
      unit,
      range: this.range,
      onZoom: (range) => this.zoom(range),
    });
  }

  private marks(wanted: number[]): TimeMark[] {
    return wanted.flatMap((index) => {
      const run = this.page.analysis.runs[index]!;
      const design = this.page.designs[run.design]!;
      const several = wanted.length > 1;
      const stages = run.stages.map((stage, place): TimeMark => ({
        at: stage.begin_s - origin(run),
        until: null,
        property: several ? design.look.property : MARKS["resync"]!,
        text: `${several ? `${design.title}: ` : ""}stage ${place + 1}, ${STAGES[stage.kind]}`,
      }));
      const events = together(run.events).map((events) => {
        const told = events.slice(0, EVENTS_TOLD).map((event) => event.text).join("; ");
        const more = events.length > EVENTS_TOLD ? `; and ${events.length - EVENTS_TOLD} more` : "";
        const { at_s, until_s } = events[0]!;
        // What was done on purpose explains the rest.
        const kind = events.some((event) => event.kind === "fault") ? "fault" : events[0]!.kind;
        return {
          at: at_s - origin(run),
          until: until_s === null ? null : until_s - origin(run),
          property: several ? design.look.property : MARKS[kind] ?? "--event",
          text: `${several ? `${design.title}: ` : ""}${told}${more}`,
        };
      });
      return [...stages, ...events];
    });
  }
}

/** Events of the storage that happened together, faults first; all others alone. */
function together(events: Run["events"]): Run["events"][] {
  const groups: Run["events"][] = [];
  let last: Run["events"] | undefined;
  for (const event of [...events].sort((a, b) => a.at_s - b.at_s)) {
    const joins = event.kind in MARKS && event.until_s === null;
    if (joins && last && event.at_s - last[0]!.at_s < MARKS_APART) {
      last.push(event);
      continue;
    }
    const group = [event];
    groups.push(group);
    if (joins) last = group;
  }
  for (const group of groups) group.sort((a, b) => Number(b.kind === "fault") - Number(a.kind === "fault"));
  return groups;
}

/** What a chart of parts shows; names of hosts stay as they are. */
function partTitle(series: TimelineSeries): string {
  return series.group.startsWith(hostOf(series)) ? series.group : capitalised(series.group);
}

/** The host that a part belongs to. */
function hostOf(series: TimelineSeries): string {
  return (series.entity ?? "").split("/")[0]!;
}

const PART_COLORS = 6;
const PART_DASHES = ["", "5 3", "1.5 2.5"];

interface PartLook {
  property: string;
  dash: string;
  className: string;
}

function partLook(index: number): PartLook {
  const color = index % PART_COLORS;
  return {
    property: `--design-${color}`,
    dash: PART_DASHES[Math.floor(index / PART_COLORS) % PART_DASHES.length]!,
    className: `design-${color}`,
  };
}

function partSwatch({ dash, className }: PartLook): SVGSVGElement {
  return svg("svg", { class: "swatch", width: 22, height: 12, viewBox: "0 0 22 12", "aria-hidden": "true" },
    svg("line", { class: `curve ${className}`, x1: 1, y1: 6, x2: 21, y2: 6, "stroke-dasharray": dash }));
}

/** What is idle lies on top of what works. */
function rest(series: TimelineSeries): number {
  return ["iowait", "idle", "client"].findIndex((state) => series.name.endsWith(`.${state}`));
}

/**
 * Where the time axis of a run begins: at its first measured window. Restores take as long as they
 * take; from there on the procedure gives every run the same phases, so that runs can be compared.
 */
export function origin(run: Run): number {
  return run.phases.find((phase) => phase.kind === MEASURED)?.begin_s ?? 0;
}

/** From the first value of any run to the last. */
function wholeSpan(page: Page): [number, number] {
  let first = Infinity;
  let last = -Infinity;
  for (const line of page.analysis.timelines.lines) {
    const run = page.analysis.runs[line.run];
    const begin = line.mean.findIndex((value) => value !== null);
    if (!run?.counted || begin < 0) continue;
    first = Math.min(first, line.begin_s + begin * line.step_s - origin(run));
    let end = line.mean.length;
    while (line.mean[end - 1] === null) end -= 1;
    last = Math.max(last, line.begin_s + end * line.step_s - origin(run));
  }
  return last > first ? [first, last] : [0, 1];
}

/** Seconds of the values of a line, on the axis of its run. */
export function timesOf(run: Run, line: TimelineLine): number[] {
  return line.mean.map((_, index) => line.begin_s + (index + 0.5) * line.step_s - origin(run));
}

/** The phases to shade. The procedure gives every run the same ones, so one run represents all. */
function spansOf(run: Run): TimeSpan[] {
  return run.phases.flatMap((phase) => {
    const measured = phase.kind === MEASURED;
    if (phase.end_s === null || !(measured || phase.kind === "warm-up" || phase.kind === TWIN)) return [];
    const label = measured && phase.users !== null ? users(phase.users) : phase.kind === TWIN ? "null twin" : phase.label;
    return [{ begin: phase.begin_s - origin(run), end: phase.end_s - origin(run), label, measured }];
  });
}
