// Where a session's time goes: one stacked bar per design on a common axis.

import { html, svg } from "../dom";
import { percent } from "../format";
import { linear } from "../scale";
import { tickTexts } from "../unit";
import { horizontalAxis, type Area } from "./axis";
import { paper, type Drawing, type Stop } from "./frame";
import { fitText, textWidth } from "./text";

/** One class of time in a bar. */
export interface BudgetPart {
  /** Key of the class, also the CSS class `time-KEY`. */
  key: string;
  title: string;
  /** Length of the part in the unit of the axis. */
  value: number;
  /** Share of the bar, for labels. */
  share: number;
  /** What the read-out says of it. */
  detail: string;
}

/** One bar. */
export interface BudgetBar {
  title: string;
  /** Remark behind the title, such as the total. */
  note: string;
  parts: BudgetPart[];
}

/** The data of the chart. */
export interface BudgetData {
  bars: BudgetBar[];
  unit: string;
  /** End of the axis; the longest bar if missing. */
  limit?: number;
}

const BAR = 40;
const ROW = 78;

/** Draws the bars, one below the other, so that equal classes can be compared. */
export function drawBudget(data: BudgetData, width: number): Drawing {
  const longest = Math.max(...data.bars.map((bar) => bar.parts.reduce((sum, part) => sum + part.value, 0)));
  const height = data.bars.length * ROW + 24;
  const area: Area = { left: 1, right: width - 8, top: 0, bottom: data.bars.length * ROW, width };
  const scale = linear(0, data.limit ?? longest, area.left, area.right, width > 560 ? 8 : 4);
  const node = paper(width, height, horizontalAxis(area, scale, tickTexts(scale.ticks, data.unit)));
  const stops: Stop[] = [];
  data.bars.forEach((bar, index) => {
    const y = index * ROW + 24;
    node.append(
      svg("text", { class: "row-label strong", x: area.left, y: y - 8 }, bar.title,
        svg("tspan", { class: "row-note", dx: 8 },
          fitText(bar.note, width - textWidth(bar.title, 13.5) * 1.08 - 12, 12))),
    );
    drawBar(node, bar, y, scale.at, stops);
  });
  return { node, stops };
}

function drawBar(
  node: SVGSVGElement,
  bar: BudgetBar,
  y: number,
  at: (value: number) => number,
  stops: Stop[],
): void {
  let start = 0;
  for (const part of bar.parts) {
    const left = at(start);
    const width = at(start + part.value) - left;
    start += part.value;
    if (width < 0.3) continue;
    node.append(
      svg("rect", {
        class: `budget time-${part.key}`,
        x: left, y, width: Math.max(0.5, width - (width > 3 ? 1 : 0)), height: BAR,
      }),
    );
    const share = percent(part.share, 0);
    const label = fitText(part.title, width - 10, 11.5);
    const inside = `budget-label on-${part.key}`;
    if (label && width > 40) {
      node.append(
        svg("text", { class: inside, x: left + 6, y: y + 16 }, label),
        svg("text", { class: `${inside} number`, x: left + 6, y: y + 31 }, share),
      );
    } else if (textWidth(share, 11.5) + 6 < width) {
      node.append(svg("text", { class: `${inside} number`, x: left + 3, y: y + 24 }, share));
    }
    stops.push({
      x: left + width / 2,
      y: y + BAR / 2,
      describe: () => [
        html("div", { class: "readout-heading" }, bar.title),
        html("div", {}, `${part.title}: ${part.detail}`),
      ],
    });
  }
}
