// Time lines on canvas: several runs over one another, phases shaded, events marked, and a cursor
// that moves in all of them together.
//
// Each bucket has a mean and, when the data was thinned, the least and greatest value; the band
// between them is drawn so that no spike is lost.

import uPlot from "uplot";
import { html } from "../dom";
import { clock, short } from "../format";
import { color, onThemeChange, type DesignLook } from "../theme";
import { forget, whenResized } from "./frame";
import { swatch } from "./marker";

/** One line: the values of a series in one run. */
export interface TimeLine {
  label: string;
  look: DesignLook;
  /** Lines of the same design are told apart by strength. */
  faint: boolean;
  /** Seconds since the start of the run, ascending. */
  times: number[];
  mean: (number | null)[];
  min?: (number | null)[] | undefined;
  max?: (number | null)[] | undefined;
}

/** A stretch of time with a name, such as a measured window. */
export interface TimeSpan {
  begin: number;
  end: number;
  label: string;
  measured: boolean;
}

/** Something that happened at an instant. */
export interface TimeMark {
  at: number;
  kind: string;
  text: string;
}

/** A chart of time lines. */
export interface TimelineData {
  title: string;
  note: string;
  lines: TimeLine[];
  spans: TimeSpan[];
  marks: TimeMark[];
  /** Text of a value in the read-out. */
  write: (value: number | null) => string;
  /** Texts of the ticks of the value axis. */
  writeTick?: (value: number) => string;
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

/** Joins lines of different times into the table that the plot wants. */
function table(lines: TimeLine[]): uPlot.AlignedData {
  const tables = lines.map((line) => {
    const columns: (number | null)[][] = [line.mean];
    if (line.min && line.max) columns.push(line.max, line.min);
    return [line.times, ...columns] as uPlot.AlignedData;
  });
  if (tables.length === 1) return tables[0]!;
  // Mode 1 keeps a true gap as a gap; places that only the other runs have are bridged.
  return uPlot.join(tables, tables.map((t) => t.map(() => 1)));
}

function seriesOf(lines: TimeLine[]): { series: uPlot.Series[]; bands: uPlot.Band[]; means: number[] } {
  const series: uPlot.Series[] = [{}];
  const bands: uPlot.Band[] = [];
  const means: number[] = [];
  for (const line of lines) {
    means.push(series.length);
    const stroke = () => color(line.look.property) + (line.faint ? "88" : "");
    const dash = line.look.dash ? line.look.dash.split(" ").map(Number) : undefined;
    series.push({ label: line.label, stroke, width: 1.4, dash, points: { show: false } });
    if (!line.min || !line.max) continue;
    const hidden: uPlot.Series = { width: 0, points: { show: false } };
    bands.push({
      series: [series.length, series.length + 1],
      // The plot reads the fill of a band at each drawing, so a function follows the theme.
      fill: () => `${color(line.look.property)}2e`,
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
  if (ctx.measureText(span.label).width < right - left - 6 * pixel) {
    ctx.fillText(span.label, (left + right) / 2, bbox.top + 3 * pixel);
  }
}

function markEvents(data: TimelineData): (plot: uPlot) => void {
  return (plot) => {
    const { ctx, bbox } = plot;
    const pixel = uPlot.pxRatio;
    ctx.save();
    ctx.strokeStyle = color("--event");
    ctx.fillStyle = color("--event");
    ctx.lineWidth = pixel;
    ctx.setLineDash([2 * pixel, 3 * pixel]);
    for (const mark of data.marks) {
      const x = Math.round(plot.valToPos(mark.at, "x", true)) + 0.5;
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.beginPath();
      ctx.moveTo(x - 4 * pixel, bbox.top + bbox.height);
      ctx.lineTo(x + 4 * pixel, bbox.top + bbox.height);
      ctx.lineTo(x, bbox.top + bbox.height - 6 * pixel);
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
      readout,
    ),
    body,
  );
  const values = table(data.lines);
  const { series, bands, means } = seriesOf(data.lines);
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
        html("span", { class: "timeline-value" }, swatch(line.look),
          html("span", { class: "number" },
            data.write(valueNear(u.data[means[index]!] as (number | null)[], idx))))),
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
        values: (_u, splits) => splits.map((v) => (v === null ? "" : (data.writeTick ?? short)(v))),
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
  return [bottom, top > bottom ? bottom + (top - bottom) * 1.12 : bottom + 1];
}
