// Axes: hairlines behind the data, with labels.

import { svg } from "../dom";
import { thin, type Scale } from "../scale";
import { textWidth } from "./text";

/** Where the data of a chart is drawn, inside its margins. */
export interface Area {
  left: number;
  right: number;
  top: number;
  bottom: number;
  /** Width of the whole paper. */
  width: number;
}

/** Room that the labels of a vertical axis need. */
export function labelRoom(labels: string[]): number {
  return Math.ceil(Math.max(0, ...labels.map((label) => textWidth(label, 11.5)))) + 10;
}

/** Horizontal hairlines with labels at the left, one per tick. */
export function verticalAxis(area: Area, scale: Scale, labels: string[]): SVGGElement {
  const group = svg("g", { class: "axis" });
  scale.ticks.forEach((tick, index) => {
    const y = Math.round(scale.at(tick)) + 0.5;
    group.append(
      svg("line", { class: tick === 0 ? "zero" : "grid", x1: area.left, x2: area.right, y1: y, y2: y }),
      svg("text", { x: area.left - 7, y, dy: "0.33em", "text-anchor": "end" }, labels[index]),
    );
  });
  return group;
}

/** Labels below, with short ticks; labels that would collide are left out. */
export function horizontalAxis(
  area: Area,
  scale: Scale,
  labels: string[],
  title?: string,
): SVGGElement {
  const group = svg("g", { class: "axis" });
  const widest = Math.max(0, ...labels.map((label) => textWidth(label, 11.5)));
  const labelled = new Set(thin(scale.ticks, (tick) => scale.at(tick), widest + 8));
  scale.ticks.forEach((tick, index) => {
    const x = Math.round(scale.at(tick)) + 0.5;
    group.append(svg("line", { class: "tick", x1: x, x2: x, y1: area.bottom, y2: area.bottom + 4 }));
    if (!labelled.has(tick)) return;
    const label = labels[index] ?? "";
    // A label at an end may not leave the paper.
    const reach = textWidth(label, 11.5) / 2;
    const middle = Math.max(reach, Math.min(x, area.width - reach));
    group.append(svg("text", { x: middle, y: area.bottom + 17, "text-anchor": "middle" }, label));
  });
  if (title) {
    group.append(
      svg("text", { class: "axis-title", x: area.right, y: area.bottom + 33, "text-anchor": "end" }, title),
    );
  }
  return group;
}
