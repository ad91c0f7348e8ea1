// Time lines on canvas: several runs over one another, phases shaded, events marked, and a cursor
// that moves in all of them together.
//
// Each bucket has a mean and, when the data was thinned, the least and greatest value; the band
// between them is drawn so that no spike is lost.

import uPlot from "uplot";
import { html } from "../dom";
import { clock } from "../format";
import { color, onThemeChange } from "../theme";
import { quantity, tickTexts } from "../unit";
import { forget, whenResized } from "./frame";

/** One line: the values of a series in one run. */
export interface TimeLine {
  label: string;
  /** Makes its sample for the read-out. */
  swatch: () => Element;
  /** Custom property of its colour. */
  property: string;
  /** SVG dash array; empty for solid. */
  dash: string;
  /** Lines of the same design differ in strength. */
  faint: boolean;
  /** Seconds since the begin of the run, ascending. */
  times: number[];
  mean: (number | null)[];
  min: (number | null)[] | null;
  max: (number | null)[] | null;
}

/** A stretch of time with a name, such as a measured window. */
export interface TimeSpan {
  begin: number;
  end: number;
  label: string;
  /** What stands there where the label does not fit. */
  short?: string;
  measured: boolean;
}

/** Something that happened, at an instant or for a while. */
export interface TimeMark {
  at: number;
  until: number | null;
  /** Custom property of its colour. */
  property: string;
  text: string;
}

/** A chart of time lines. */
export interface TimelineData {
  title: string;
  note: string;
  lines: TimeLine[];
  /** Whether the lines are areas on top of each other; they must then have the same times. */
  stacked: boolean;
  /** Whether the lines are named below the title; those of designs are named once for the page. */
  legend?: boolean;
  spans: TimeSpan[];
  marks: TimeMark[];
  unit: string;
  /** First and last second shown. */
  range: [number, number];
  /** Called when the reader has zoomed by dragging. */
  onZoom: (range: [number, number]) => void;
}

/** A chart on the page. */
export interface Timeline {
  element: HTMLElement;
  zoom(range: [number, number]): void;
  destroy(): void;
}

const HEIGHT = 168;
const SYNC = "time-lines";
const drawn = new Set<uPlot>();

onThemeChange(() => {
  for (const plot of drawn) plot.redraw(false, true);
});

/** The table that the plot wants: for areas the running sums, for lines all times joined. */
function table(data: TimelineData): uPlot.AlignedData {
  return data.stacked ? sums(data.lines) : joined(data.lines);
}

function sums(lines: TimeLine[]): uPlot.AlignedData {
  let below: (number | null)[] = [];
  const columns = lines.map((line) => {
    below = line.mean.map((value, index) => (value === null ? null : value + (below[index] ?? 0)));
    return below;
  });
  return [lines[0]?.times ?? [], ...columns] as uPlot.AlignedData;
}

function joined(lines: TimeLine[]): uPlot.AlignedData {
  const tables = lines.map((line) => {
    const columns: (number | null)[][] = [line.mean];
    if (line.min && line.max) columns.push(line.max, line.min);
    return [line.times, ...columns] as uPlot.AlignedData;
  });
  if (tables.length === 1) return tables[0]!;
  // Mode 1 keeps a true gap as a gap; places that only the other runs have are bridged.
  return uPlot.join(tables, tables.map((t) => t.map(() => 1)));
}

interface Layout {
  series: uPlot.Series[];
  bands: uPlot.Band[];
  /** Position of the mean of each line among the series. */
  means: number[];
}

/** Each area reaches down to the sum below it; the first to zero. */
function areas(lines: TimeLine[]): Layout {
  const paint = (line: TimeLine) => () => color(line.property);
  return {
    series: [
      {},
      ...lines.map((line) => ({ stroke: paint(line), fill: paint(line), width: 0.5, points: { show: false } })),
    ],
    bands: lines.slice(1).map((_, index) => ({ series: [index + 2, index + 1] as [number, number] })),
    means: lines.map((_, index) => index + 1),
  };
}

function curves(lines: TimeLine[]): Layout {
  const series: uPlot.Series[] = [{}];
  const bands: uPlot.Band[] = [];
  const means: number[] = [];
  for (const line of lines) {
    means.push(series.length);
    const stroke = () => color(line.property) + (line.faint ? "88" : "");
    const dash = line.dash ? line.dash.split(" ").map(Number) : undefined;
    series.push({ label: line.label, stroke, width: 1.4, dash, points: { show: false } });
    if (!line.min || !line.max) continue;
    const hidden: uPlot.Series = { width: 0, points: { show: false } };
    bands.push({
      series: [series.length, series.length + 1],
      // The plot reads the fill of a band at each drawing, so a function follows the theme.
      fill: () => `${color(line.property)}2e`,
    });
    series.push({ ...hidden }, { ...hidden });
  }
  return { series, bands, means };
}

function shade(data: TimelineData): (plot: uPlot) => void {
  return (plot) => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const span of data.spans) {
      const left = plot.valToPos(span.begin, "x", true);
      const right = plot.valToPos(span.end, "x", true);
      if (right < bbox.left || left > bbox.left + bbox.width) continue;
      ctx.fillStyle = color(span.measured ? "--phase-measured" : "--phase-other");
      ctx.fillRect(left, bbox.top, right - left, bbox.height);
      labelSpan(plot, span, Math.max(left, bbox.left), Math.min(right, bbox.left + bbox.width));
    }
    ctx.restore();
  };
}

function labelSpan(plot: uPlot, span: TimeSpan, left: number, right: number): void {
  const { ctx, bbox } = plot;
  const pixel = uPlot.pxRatio;
  ctx.font = `${10.5 * pixel}px ${getComputedStyle(document.body).fontFamily}`;
  ctx.textAlign = "center";
  ctx.textBaseline = "top";
  ctx.fillStyle = color("--muted");
  const fits = (text: string) => ctx.measureText(text).width < right - left - 6 * pixel;
  const text = [span.label, span.short ?? ""].find(fits);
  if (text) ctx.fillText(text, (left + right) / 2, bbox.top + 3 * pixel);
}

function markEvents(data: TimelineData): (plot: uPlot) => void {
  return (plot) => {
    const { ctx, bbox } = plot;
    const pixel = uPlot.pxRatio;
    ctx.save();
    ctx.lineWidth = pixel;
    ctx.setLineDash([2 * pixel, 3 * pixel]);
    const bottom = bbox.top + bbox.height;
    for (const mark of data.marks) {
      const x = Math.round(plot.valToPos(mark.at, "x", true)) + 0.5;
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.strokeStyle = color(mark.property);
      ctx.fillStyle = ctx.strokeStyle;
      if (mark.until !== null) {
        const end = Math.min(plot.valToPos(mark.until, "x", true), bbox.left + bbox.width);
        ctx.fillRect(x, bottom - 2.5 * pixel, end - x, 2.5 * pixel);
      }
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bottom);
      ctx.stroke();
      ctx.beginPath();
      ctx.moveTo(x - 4 * pixel, bottom);
      ctx.lineTo(x + 4 * pixel, bottom);
      ctx.lineTo(x, bottom - 6 * pixel);
      ctx.fill();
    }
    ctx.restore();
  };
}

/** The event next to the cursor, if it is close. */
function markAt(data: TimelineData, plot: uPlot, left: number): TimeMark | undefined {
  let best: TimeMark | undefined;
  let least = 7;
  for (const mark of data.marks) {
    const distance = Math.abs(plot.valToPos(mark.at, "x") - left);
    if (distance < least) {
      least = distance;
      best = mark;
    }
  }
  return best;
}

function valueNear(column: (number | null | undefined)[] | undefined, index: number): number | null {
  if (!column) return null;
  // Runs have their own seconds; the nearest sample of this line is at most a few places away.
  for (let away = 0; away <= 6; away += 1) {
    for (const place of [index - away, index + away]) {
      const value = column[place];
      if (value !== undefined && value !== null) return value;
    }
  }
  return null;
}

function lineLegend(data: TimelineData): HTMLElement {
  return html("ul", { class: "legend small" }, data.lines.map((line) => html("li", {}, line.swatch(), line.label)));
}

/** Steps between ticks of sizes: powers of two, so that they are whole KiB, MiB, GiB. */
const BYTE_STEPS = Array.from({ length: 50 }, (_, power) => 2 ** power);

/** The value of a line at a place; of an area, what it adds to the one below. */
function valueOf(data: TimelineData, plot: uPlot, line: number, means: number[], index: number): number | null {
  if (data.stacked) return data.lines[line]?.mean[index] ?? null;
  return valueNear(plot.data[means[line]!] as (number | null)[], index);
}

/** Makes a chart; it draws itself when it has room. */
export function timeline(data: TimelineData): Timeline {
  const readout = html("div", { class: "timeline-readout", "aria-live": "off" });
  const body = html("div", { class: "timeline-body" });
  const element = html(
    "figure",
    { class: "chart timeline" },
    html(
      "figcaption",
      {},
      html("span", { class: "chart-title" }, data.title),
      html("span", { class: "chart-note" }, data.note),
      data.stacked || data.legend ? lineLegend(data) : null,
      readout,
    ),
    body,
  );
  const values = table(data);
  const { series, bands, means } = data.stacked ? areas(data.lines) : curves(data.lines);
  let range = data.range;
  let plot: uPlot | undefined;

  const tell = (u: uPlot) => {
    const { idx, left } = u.cursor;
    readout.replaceChildren();
    if (idx === null || idx === undefined || left === undefined || left < 0) return;
    const mark = markAt(data, u, left);
    readout.append(
      html("span", { class: "muted" }, clock(u.posToVal(left, "x"))),
      ...data.lines.map((line, index) =>
        html("span", { class: "timeline-value" }, line.swatch(),
          html("span", { class: "number" },
            quantity(valueOf(data, u, index, means, idx), data.unit)))),
      mark ? html("span", { class: "timeline-mark" }, `${mark.text} at ${clock(mark.at)}`) : "",
    );
  };

  const options = (width: number): uPlot.Options => ({
    width,
    height: HEIGHT,
    series,
    bands,
    legend: { show: false },
    padding: [6, 10, 0, 0],
    cursor: { sync: { key: SYNC, setSeries: false }, points: { show: false }, y: false, drag: { x: true, y: false } },
    scales: {
      x: { time: false, range: () => range },
      y: { range: (_u, low, high) => rangeFromZero(low, high) },
    },
    axes: [
      {
        stroke: () => color("--muted"),
        grid: { show: false },
        ticks: { stroke: () => color("--line"), size: 4, width: 1 },
        values: (_u, splits) => splits.map(clock),
        incrs: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400],
        space: 70, size: 26, gap: 3, font: "11.5px system-ui, sans-serif",
      },
      {
        stroke: () => color("--muted"),
        grid: { stroke: () => color("--line"), width: 1 },
        ticks: { show: false },
        values: (_u, splits) => tickTexts(splits, data.unit),
        ...(data.unit === "bytes" ? { incrs: BYTE_STEPS } : {}),
        space: 34, size: 62, gap: 5, font: "11.5px system-ui, sans-serif",
      },
    ],
    hooks: {
      drawClear: [shade(data)],
      draw: [markEvents(data)],
      setCursor: [tell],
      setSelect: [
        (u) => {
          if (u.select.width < 4) return;
          data.onZoom([u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")]);
        },
      ],
    },
  });

  whenResized(body, (width) => {
    if (plot) {
      plot.setSize({ width, height: HEIGHT });
      return;
    }
    plot = new uPlot(options(width), values, body);
    plot.root.querySelector("canvas")?.setAttribute("role", "img");
    plot.root.querySelector("canvas")?.setAttribute("aria-label", `${data.title} over time`);
    plot.over.addEventListener("dblclick", () => data.onZoom([Number.NaN, Number.NaN]));
    drawn.add(plot);
  });
  return {
    element,
    zoom: (next) => {
      range = next;
      plot?.redraw(false, true);
      plot?.setScale("x", { min: next[0], max: next[1] });
    },
    destroy: () => {
      forget(body);
      if (!plot) return;
      drawn.delete(plot);
      plot.destroy();
    },
  };
}

function rangeFromZero(low: number | null, high: number | null): [number, number] {
  const bottom = Math.min(0, low ?? 0);
  const top = Math.max(bottom, high ?? 0);
  return [bottom, top > bottom ? bottom + (top - bottom) * 1.2 : bottom + 1];
}
