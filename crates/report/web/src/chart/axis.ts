// Axes: hairlines behind the data and labels beside it.

import { svg } from "../dom";
import { thin, type Scale } from "../scale";
import { textWidth } from "./text";

/** Where the data of a chart is drawn, inside its margins. */
export interface Area {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** Room that the labels of a vertical axis need. */
export function labelRoom(labels: string[]): number {
  return Math.ceil(Math.max(0, ...labels.map((label) => textWidth(label, 11.5)))) + 10;
}

/** Horizontal hairlines with labels at the left. */
export function verticalAxis(
  area: Area,
  scale: Scale,
  write: (value: number) => string,
): SVGGElement {
  const group = svg("g", { class: "axis" });
  for (const tick of scale.ticks) {
    const y = Math.round(scale.at(tick)) + 0.5;
    group.append(
      svg("line", { class: tick === 0 ? "zero" : "grid", x1: area.left, x2: area.right, y1: y, y2: y }),
      svg("text", { x: area.left - 7, y, dy: "0.33em", "text-anchor": "end" }, write(tick)),
    );
  }
  return group;
}

/** Labels below, with short ticks; labels that would collide are left out. */
export function horizontalAxis(
  area: Area,
  scale: Scale,
  write: (value: number) => string,
  title?: string,
): SVGGElement {
  const group = svg("g", { class: "axis" });
  const widest = Math.max(0, ...scale.ticks.map((tick) => textWidth(write(tick), 11.5)));
  const labelled = new Set(thin(scale.ticks, (tick) => scale.at(tick), widest + 8));
  for (const tick of scale.ticks) {
    const x = Math.round(scale.at(tick)) + 0.5;
    group.append(svg("line", { class: "tick", x1: x, x2: x, y1: area.bottom, y2: area.bottom + 4 }));
    if (!labelled.has(tick)) continue;
    group.append(svg("text", { x, y: area.bottom + 17, "text-anchor": "middle" }, write(tick)));
  }
  if (title) {
    group.append(
      svg("text", { class: "axis-title", x: area.right, y: area.bottom + 33, "text-anchor": "end" }, title),
    );
  }
  return group;
}
