// Latency against a rate: what rising load does to the time of an answer. One line per series, points of which
// what did not hold is hollow, and the limit that was to be met.

import { html, svg } from "../dom";
import { linear, logarithmic, logTicks, niceTicks, type Scale } from "../scale";
import type { DesignLook } from "../theme";
import { quantity, tickTexts } from "../unit";
import { horizontalAxis, labelRoom, verticalAxis, type Area } from "./axis";
import { paper, type Drawing } from "./frame";
import { marker, swatch } from "./marker";

/** One load that was offered. */
export interface RatePoint {
  rate: number;
  value: number;
  /** Whether the limit was met; hollow when not. */
  held: boolean;
  /** Further lines of the read-out. */
  notes: string[];
}

/** The loads of one design, volume or run. */
export interface RateSeries {
  title: string;
  look: DesignLook;
  points: RatePoint[];
}

/** The data of the chart. */
export interface RatesData {
  series: RateSeries[];
  rateUnit: string;
  rateTitle: string;
  unit: string;
  /** Whether rates far apart get the same room, or the axis starts at zero. */
  horizontal: "from zero" | "logarithmic";
  /** What was not to be exceeded. */
  limit?: number | null;
}

const HEIGHT = 280;

function spread(values: number[], from: number, to: number): Scale {
  const low = Math.min(...values) / 1.4;
  const high = Math.max(...values) * 1.4;
  const ticks = logTicks(low, high);
  // Within less than a power of ten there are hardly any 1, 2, 5.
  const even = () => niceTicks(low, high).filter((tick) => tick >= low && tick <= high);
  return logarithmic(low, high, from, to, ticks.length < 3 ? even() : ticks);
}

/** Draws the chart. */
export function drawRates(data: RatesData, width: number): Drawing {
  const points = data.series.flatMap((series) => series.points);
  const values = [...points.map((point) => point.value), ...(data.limit ? [data.limit] : [])].filter((v) => v > 0);
  const rates = points.map((point) => point.rate).filter((rate) => rate > 0);
  const heights = values.length > 0 ? values : [1];
  const draft = spread(heights, 1, 0);
  const area: Area = {
    left: Math.max(30, labelRoom(tickTexts(draft.ticks, data.unit))),
    right: width - 12,
    top: 10,
    bottom: HEIGHT - 38,
    width,
  };
  const y = spread(heights, area.bottom, area.top);
  const x = data.horizontal === "logarithmic" && rates.length > 0
    ? spread(rates, area.left + 4, area.right - 4)
    : linear(0, Math.max(1, ...rates), area.left + 4, area.right - 4, 6);
  const node = paper(
    width,
    HEIGHT,
    verticalAxis(area, y, tickTexts(y.ticks, data.unit)),
    horizontalAxis(area, x, tickTexts(x.ticks, data.rateUnit), data.rateTitle),
  );
  if (data.limit) {
    const at = Math.round(y.at(data.limit)) + 0.5;
    node.append(svg("line", { class: "limit", x1: area.left, x2: area.right, y1: at, y2: at }));
  }
  const stops = data.series.flatMap((series) => drawSeries(node, data, series, x, y));
  return { node, stops: stops.sort((a, b) => a.x - b.x), guide: [area.top, area.bottom] };
}

function drawSeries(node: SVGSVGElement, data: RatesData, series: RateSeries, x: Scale, y: Scale) {
  const points = series.points.filter((point) => point.value > 0).sort((a, b) => a.rate - b.rate);
  const path = points
    .map((point, index) => `${index === 0 ? "M" : "L"}${x.at(point.rate).toFixed(1)} ${y.at(point.value).toFixed(1)}`)
    .join("");
  node.append(
    svg("path", { class: `curve ${series.look.className}`, d: path, "stroke-dasharray": series.look.dash }));
  return points.map((point) => {
    const mark = marker(series.look, x.at(point.rate), y.at(point.value));
    if (!point.held) mark.classList.add("hollow");
    node.append(mark);
    return {
      x: x.at(point.rate),
      describe: () => [
        html("div", { class: "readout-heading" }, swatch(series.look), series.title),
        html("div", {}, `${quantity(point.rate, data.rateUnit)}: ${quantity(point.value, data.unit)}`),
        ...point.notes.map((note) => html("div", { class: "muted" }, note)),
      ],
    };
  });
}
