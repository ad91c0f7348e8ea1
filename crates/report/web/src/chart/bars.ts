// Grouped bars from zero: one group per rung of the ladder, one bar per design, with the confidence
// interval as a whisker and each run as a dot.

import type { Estimate } from "../analysis";
import { svg } from "../dom";
import { durations, linear, type Scale } from "../scale";
import { isInMinutes, markTexts, quantity, tickTexts } from "../unit";
import { labelRoom, verticalAxis, type Area } from "./axis";
import { highest, readoutTable, runValues, type ChartDesign } from "./estimate";
import { paper, type Drawing, type Stop } from "./frame";
import { fitText, textWidth } from "./text";

/** The data of a bar chart. `estimates[group][design]`. */
export interface BarsData {
  designs: ChartDesign[];
  groups: string[];
  estimates: (Estimate | null)[][];
  unit: string;
  axisTitle: string;
  /** End of the axis, when values have a natural limit (100 %). */
  limit?: number | undefined;
}

const HEIGHT = 300;
/** Labels that are wider than their group stand at this angle, degrees. */
const TILT = 38;
/** And are cut beyond this width, pixels. */
const TILTED = 96;

/** Draws the bars. */
export function drawBars(data: BarsData, width: number): Drawing {
  const top = Math.max(data.limit ?? 0, highest(data.estimates.flat()));
  const scaleTo = (from: number, to: number) =>
    (isInMinutes(top, data.unit) ? durations(top, from, to) : linear(0, top || 1, from, to));
  const draft = scaleTo(0, 1);
  const left = labelRoom(tickTexts(draft.ticks, data.unit));
  const step = (width - 4 - left) / Math.max(1, data.groups.length);
  const widest = Math.max(...data.groups.map((group) => textWidth(group, 11.5)));
  const tilted = widest > step - 4;
  const below = tilted ? Math.min(widest, TILTED) * Math.sin((TILT * Math.PI) / 180) : 0;
  const height = HEIGHT + below;
  const area: Area = { left, right: width - 4, top: 22, bottom: HEIGHT - 40, width };
  const write = (value: number | null) => quantity(value, data.unit);
  const scale = scaleTo(area.bottom, area.top);
  const node = paper(width, height, verticalAxis(area, scale, tickTexts(scale.ticks, data.unit)));
  const stops: Stop[] = data.groups.map((group, index) => {
    const middle = area.left + step * (index + 0.5);
    drawGroup(node, data, index, middle, step, scale);
    node.append(tilted
      ? svg("text", {
        class: "label", "text-anchor": "end",
        transform: `translate(${middle + 4} ${area.bottom + 14}) rotate(-${TILT})`,
      }, fitText(group, TILTED, 11.5))
      : svg("text", { class: "label", x: middle, y: area.bottom + 16, "text-anchor": "middle" }, group));
    return {
      x: middle,
      describe: () =>
        readoutTable(`${group} ${data.axisTitle}`, data.designs, data.estimates[index] ?? [], write),
    };
  });
  node.append(
    svg("text", { class: "axis-title", x: area.right, y: height - 7, "text-anchor": "end" }, data.axisTitle),
  );
  return { node, stops };
}

function drawGroup(
  node: SVGSVGElement,
  data: BarsData,
  group: number,
  middle: number,
  step: number,
  scale: Scale,
): void {
  const y = scale.at;
  const gap = Math.min(4, step * 0.04);
  const room = Math.min(step * 0.8, data.designs.length * 92);
  const bar = room / data.designs.length - gap;
  data.designs.forEach((design, index) => {
    const estimate = data.estimates[group]?.[index];
    if (!estimate || estimate.value === null) return;
    const x = middle - room / 2 + (bar + gap) * index + gap / 2;
    const height = Math.max(0, y(0) - y(estimate.value));
    node.append(
      svg("rect", { class: `bar ${design.look.className}`, x, y: y(0) - height, width: bar, height }),
    );
    drawRuns(node, estimate, x, bar, y);
    drawWhisker(node, estimate, x + bar / 2, Math.min(7, bar / 3), y);
    drawValue(node, estimate, x + bar / 2, bar + gap, y, markTexts(estimate.value, scale.domain[1], data.unit));
  });
}

/** The dots are next to the whisker, in the order of the repeats, so that drift would show. */
function drawRuns(
  node: SVGSVGElement,
  estimate: Estimate,
  x: number,
  bar: number,
  y: (value: number) => number,
): void {
  if (bar < 12) return;
  const runs = runValues(estimate);
  runs.forEach((run, index) => {
    const part = runs.length === 1 ? 0.28 : 0.14 + (0.72 * index) / (runs.length - 1);
    node.append(
      svg("circle", { class: "run-dot", cx: x + bar * part, cy: y(run), r: bar < 24 ? 1.6 : 2.4 }),
    );
  });
}

function drawWhisker(
  node: SVGSVGElement,
  estimate: Estimate,
  x: number,
  cap: number,
  y: (value: number) => number,
): void {
  if (estimate.low === null || estimate.high === null) return;
  const low = y(Math.max(0, estimate.low)).toFixed(1);
  const high = y(estimate.high).toFixed(1);
  const d = `M${x} ${low}V${high}M${x - cap} ${low}h${2 * cap}M${x - cap} ${high}h${2 * cap}`;
  node.append(svg("path", { class: "whisker-halo", d }), svg("path", { class: "whisker", d }));
}

function drawValue(
  node: SVGSVGElement,
  estimate: Estimate,
  x: number,
  room: number,
  y: (value: number) => number,
  texts: [string, string],
): void {
  const text = texts.find((candidate) => textWidth(candidate, 11.5) <= room);
  if (text === undefined) return;
  const top = y(Math.max(estimate.value ?? 0, estimate.high ?? 0, ...runValues(estimate)));
  node.append(svg("text", { class: "value", x, y: top - 6, "text-anchor": "middle" }, text));
}
