// Curves against users, or against an axis of the study: one line per design with its own colour, dash and marker, and the
// confidence interval as a whisker at each rung.

import type { Estimate } from "../analysis";
import { svg } from "../dom";
import { count, users as usersText } from "../format";
import { durations, ladder, linear, logarithmic, logTicks, type Scale } from "../scale";
import { isInMinutes, quantity, tickTexts } from "../unit";
import { vocabulary } from "../vocabulary";
import { horizontalAxis, labelRoom, verticalAxis, type Area } from "./axis";
import { highest, readoutTable, type ChartDesign } from "./estimate";
import { paper, type Drawing } from "./frame";
import { marker } from "./marker";

/** Whether a vertical axis starts at zero, or gives each factor the same room. */
export type Vertical = "from zero" | "logarithmic";

/** The data of a chart of curves. `estimates[rung][design]`. */
export interface CurvesData {
  designs: ChartDesign[];
  rungs: number[];
  estimates: (Estimate | null)[][];
  unit: string;
  vertical: Vertical;
  /** End of the axis, when values have a natural limit (100 %). */
  limit?: number | undefined;
  /** What `rungs` are, when they are not numbers of users. */
  horizontal?: { title: string; write: (rung: number) => string };
}

const HEIGHT = 216;

function verticalScale(data: CurvesData, from: number, to: number): Scale {
  const estimates = data.estimates.flat();
  const top = Math.max(data.limit ?? 0, highest(estimates));
  const values = estimates.flatMap((e) => (e?.value ? [e.value] : [])).filter((value) => value > 0);
  if (data.vertical === "from zero" || values.length === 0) {
    return isInMinutes(top, data.unit) ? durations(top, from, to, 4) : linear(0, top || 1, from, to, 4);
  }
  const low = Math.min(...values) / 1.3;
  const high = Math.max(top, low * 3) * 1.1;
  return logarithmic(low, high, from, to, logTicks(low, high));
}

/** Draws the curves. */
export function drawCurves(data: CurvesData, width: number): Drawing {
  const draft = verticalScale(data, 1, 0);
  const area: Area = {
    left: Math.max(30, labelRoom(tickTexts(draft.ticks, data.unit))),
    right: width - 12,
    top: 10,
    bottom: HEIGHT - 38,
    width,
  };
  const y = verticalScale(data, area.bottom, area.top);
  const x = ladder(data.rungs, area.left + 8, area.right - 4);
  const node = paper(
    width,
    HEIGHT,
    verticalAxis(area, y, tickTexts(y.ticks, data.unit)),
    horizontalAxis(area, x, x.ticks.map(data.horizontal?.write ?? count), data.horizontal?.title ?? vocabulary().axis),
  );
  data.designs.forEach((design, index) => drawCurve(node, data, index, design, x, y));
  const stops = data.rungs.map((users, rung) => ({
    x: x.at(users),
    describe: () =>
      readoutTable((data.horizontal?.write ?? usersText)(users), data.designs, data.estimates[rung] ?? [], (value) => quantity(value, data.unit)),
  }));
  return { node, stops, guide: [area.top, area.bottom] };
}

function drawCurve(
  node: SVGSVGElement,
  data: CurvesData,
  index: number,
  design: ChartDesign,
  x: Scale,
  y: Scale,
): void {
  const floor = y.domain[0];
  const at = (value: number) => y.at(Math.max(floor, value));
  let path = "";
  let pen = "M";
  const points: SVGElement[] = [];
  data.rungs.forEach((users, rung) => {
    const estimate = data.estimates[rung]?.[index];
    const left = x.at(users);
    if (!estimate || estimate.value === null || !Number.isFinite(estimate.value)) {
      // A rung without a value breaks the line: nothing is known there.
      pen = "M";
      return;
    }
    path += `${pen}${left.toFixed(1)} ${at(estimate.value).toFixed(1)}`;
    pen = "L";
    if (estimate.low !== null && estimate.high !== null) {
      const low = at(estimate.low).toFixed(1);
      const high = at(estimate.high).toFixed(1);
      const d = `M${left} ${low}V${high}M${left - 4} ${low}h8M${left - 4} ${high}h8`;
      points.push(svg("path", { class: `curve-whisker ${design.look.className}`, d }));
    }
    points.push(marker(design.look, left, at(estimate.value)));
  });
  node.append(
    svg("path", {
      class: `curve ${design.look.className}`,
      d: path,
      "stroke-dasharray": design.look.dash,
    }),
    ...points,
  );
}
