// Ratios with their intervals, one row per comparison, around the line that means "equal". The shaded
// band is the difference that is too small to matter.

import { svg, type Child } from "../dom";
import { ratio } from "../format";
import { logarithmic, thin } from "../scale";
import { paper, type Drawing } from "./frame";
import { textWidth } from "./text";

/** One comparison. */
export interface ForestRow {
  label: string;
  value: number;
  low: number | null;
  high: number | null;
  /** What others published for the same ratio. */
  published?: number | null;
  /** Class of the row: the design that is ahead, if any. */
  className: string;
  describe: () => Child;
}

/** The data of the chart. */
export interface ForestData {
  rows: ForestRow[];
  /** Half width of the band of equivalence, as a share: 0.03. */
  equivalence: number;
  /** Text under the left and the right half. */
  sides: [string, string];
}

const ROW = 30;

function ticksFor(low: number, high: number): number[] {
  const candidates = high / low > 6
    ? [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
    : high / low > 1.8
      ? [0.25, 0.33, 0.5, 0.67, 0.8, 1, 1.25, 1.5, 2, 3, 4]
      : [0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4];
  return candidates.filter((tick) => tick >= low && tick <= high);
}

/** Draws the chart. */
export function drawForest(data: ForestData, width: number): Drawing {
  const labels = Math.max(...data.rows.map((row) => textWidth(row.label, 12.5))) + 14;
  const numbers = width >= 520 ? 190 : 62;
  const left = labels;
  const right = width - numbers;
  const bounds = data.rows.flatMap((row) =>
    [row.value, row.low ?? row.value, row.high ?? row.value, row.published ?? row.value]);
  const low = Math.min(0.9, ...bounds) / 1.06;
  const high = Math.max(1.1, ...bounds) * 1.06;
  const scale = logarithmic(low, high, left, right, ticksFor(low, high));
  const bottom = 8 + data.rows.length * ROW;
  const node = paper(width, bottom + 42);
  const band = 1 + data.equivalence;
  node.append(
    svg("rect", {
      class: "equivalence",
      x: scale.at(1 / band), y: 4,
      width: scale.at(band) - scale.at(1 / band), height: bottom - 4,
    }),
    svg("line", { class: "unity", x1: scale.at(1), x2: scale.at(1), y1: 4, y2: bottom }),
  );
  for (const tick of thin(scale.ticks, scale.at, 44, 1)) {
    const x = scale.at(tick);
    node.append(
      svg("line", { class: "tick", x1: x, x2: x, y1: bottom, y2: bottom + 4 }),
      svg("text", { x, y: bottom + 16, "text-anchor": "middle" }, tick === 1 ? "equal" : `${tick}\u00d7`),
    );
  }
  const room = (right - left - 12) / 2;
  const fits = data.sides.every((side) => textWidth(side, 11.5) <= room);
  const [behind, ahead] = fits ? data.sides : ["\u2190 behind", "ahead \u2192"];
  node.append(
    svg("text", { class: "axis-title", x: left, y: bottom + 34 }, behind),
    svg("text", { class: "axis-title", x: right, y: bottom + 34, "text-anchor": "end" }, ahead),
  );
  const stops = data.rows.map((row, index) => {
    const y = 8 + (index + 0.5) * ROW;
    drawRow(node, row, y, scale.at, right, numbers);
    return { x: scale.at(row.value), y, describe: row.describe };
  });
  return { node, stops };
}

function drawRow(
  node: SVGSVGElement,
  row: ForestRow,
  y: number,
  at: (value: number) => number,
  right: number,
  numbers: number,
): void {
  node.append(svg("text", { class: "row-label", x: 0, y, dy: "0.33em" }, row.label));
  if (row.low !== null && row.high !== null) {
    const d = `M${at(row.low)} ${y}H${at(row.high)}M${at(row.low)} ${y - 5}v10M${at(row.high)} ${y - 5}v10`;
    node.append(svg("path", { class: `forest-interval ${row.className}`, d }));
  }
  node.append(svg("circle", { class: `forest-point ${row.className}`, cx: at(row.value), cy: y, r: 5 }));
  if (row.published) {
    node.append(svg("path", { class: "forest-published", d: "M0-6 6 0 0 6-6 0z", transform: `translate(${at(row.published)} ${y})` }));
  }
  // The same form as in the headline: a ratio with its interval.
  const text = numbers < 100 || row.low === null || row.high === null
    ? ratio(row.value)
    : `${ratio(row.value)}  (${ratio(row.low)} to ${ratio(row.high)})`;
  node.append(svg("text", { class: "row-value", x: right + 12, y, dy: "0.33em" }, text));
}
