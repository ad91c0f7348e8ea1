// Runs in the order of execution, to see drift of the host and outliers.

import type { Estimate } from "../analysis";
import { html, svg } from "../dom";
import { count, interval } from "../format";
import { linear, type Scale } from "../scale";
import { quantity, tickTexts } from "../unit";
import { horizontalAxis, labelRoom, verticalAxis, type Area } from "./axis";
import { highest, type ChartDesign } from "./estimate";
import { paper, type Drawing } from "./frame";
import { marker } from "./marker";

/** One run. */
export interface OrderPoint {
  /** Position in the schedule, from 1. */
  order: number;
  design: number;
  repeat: number;
  estimate: Estimate;
}

/** The data of the chart. */
export interface OrderData {
  points: OrderPoint[];
  designs: ChartDesign[];
  unit: string;
}

const HEIGHT = 200;

/** Draws the chart. */
export function drawOrder(data: OrderData, width: number): Drawing {
  const top = highest(data.points.map((point) => point.estimate)) || 1;
  const draft = linear(0, top, 1, 0, 4);
  const area: Area = {
    left: labelRoom(tickTexts(draft.ticks, data.unit)), right: width - 12, top: 10, bottom: HEIGHT - 38, width,
  };
  const y = linear(0, top, area.bottom, area.top, 4);
  const orders = [...new Set(data.points.map((point) => point.order))].sort((a, b) => a - b);
  const first = orders[0]!;
  const span = Math.max(1, orders[orders.length - 1]! - first);
  const x: Scale = {
    at: (order) => area.left + 14 + ((order - first) / span) * (area.right - area.left - 28),
    ticks: orders,
    domain: [first, first + span],
  };
  const node = paper(
    width, HEIGHT,
    verticalAxis(area, y, tickTexts(y.ticks, data.unit)),
    horizontalAxis(area, x, orders.map(count), "run"),
  );
  const stops = [...data.points].sort((a, b) => a.order - b.order).map((point) => {
    const { value, low, high } = point.estimate;
    const design = data.designs[point.design]!;
    const left = x.at(point.order);
    if (low !== null && high !== null) {
      const d = `M${left} ${y.at(Math.max(0, low))}V${y.at(high)}`;
      node.append(svg("path", { class: `curve-whisker ${design.look.className}`, d }));
    }
    node.append(marker(design.look, left, y.at(value ?? 0), 1.15));
    const write = (number: number | null) => quantity(number, data.unit);
    return {
      x: left,
      describe: () => [
        html("div", { class: "readout-heading" }, `Run ${count(point.order)}: ${design.title}, repeat ${count(point.repeat)}`),
        html("div", {}, write(value), " ", html("span", { class: "muted" }, interval(low, high, write))),
      ],
    };
  });
  return { node, stops, guide: [area.top, area.bottom] };
}
