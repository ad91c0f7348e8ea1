// The distribution of latency in two views: by percentile, where each further nine gets the same
// room, and as a cumulative share.

import { html, svg } from "../dom";
import { latency, percent } from "../format";
import { linear, logarithmic, logTicks, nines, type Scale } from "../scale";
import type { DesignLook } from "../theme";
import { tickTexts } from "../unit";
import { horizontalAxis, labelRoom, verticalAxis, type Area } from "./axis";
import { paper, type Drawing } from "./frame";
import { swatch } from "./marker";

/** The distribution of one design: at most `share` of the requests took `nanos` or less. */
export interface Distribution {
  title: string;
  look: DesignLook;
  /** Ascending in both. */
  points: { share: number; nanos: number }[];
  count: number;
}

/** Which way the distribution is drawn. */
export type View = "percentiles" | "cumulative";

const HEIGHT = 320;
const QUANTILES = [0, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999];

function percentileName(quantile: number): string {
  return quantile === 0 ? "min" : `p${Number((quantile * 100).toPrecision(8))}`;
}

/** The latency below which a share `q` of the requests lies. */
export function latencyAt(distribution: Distribution, q: number): number | null {
  return distribution.points.find((point) => point.share >= q - 1e-12)?.nanos ?? null;
}

/** The share of requests that took `nanos` or less. */
export function shareAt(distribution: Distribution, nanos: number): number {
  let share = 0;
  for (const point of distribution.points) {
    if (point.nanos > nanos) break;
    share = point.share;
  }
  return share;
}

function latencyScale(distributions: Distribution[], from: number, to: number): Scale {
  const values = distributions.flatMap((d) => d.points.map((point) => point.nanos)).filter((n) => n > 0);
  const low = Math.min(...values) / 1.15;
  const high = Math.max(...values) * 1.15;
  return logarithmic(low, high, from, to, logTicks(low, high));
}

/** Draws one of the two views. */
export function drawDistribution(distributions: Distribution[], view: View, width: number): Drawing {
  const drawn = distributions.filter((distribution) => distribution.points.length > 1);
  if (drawn.length === 0) {
    return { node: paper(width, 60, svg("text", { x: 0, y: 30 }, "No latency was recorded here.")) };
  }
  return view === "percentiles" ? drawPercentiles(drawn, width) : drawCumulative(drawn, width);
}

function drawPercentiles(distributions: Distribution[], width: number): Drawing {
  const draft = latencyScale(distributions, 1, 0);
  const area: Area = { left: labelRoom(tickTexts(draft.ticks, "ns")), right: width - 14, top: 10, bottom: HEIGHT - 40, width };
  const y = latencyScale(distributions, area.bottom, area.top);
  // Beyond 1 - 1/n there is a single request: the axis ends where the evidence does.
  const most = Math.max(...distributions.map((distribution) => distribution.count));
  const end = Math.min(5, Math.max(2, Math.log10(Math.max(1, most))));
  const at = (share: number) => area.left + (Math.min(nines(share), end) / end) * (area.right - area.left);
  const ticks = QUANTILES.filter((q) => nines(q) <= end + 1e-9);
  const x: Scale = { at, ticks, domain: [0, 1 - 10 ** -end] };
  const node = paper(
    width, HEIGHT,
    verticalAxis(area, y, tickTexts(y.ticks, "ns")),
    horizontalAxis(area, x, ticks.map(percentileName), "share of requests that were faster"),
  );
  for (const distribution of distributions) {
    let path = "";
    for (const point of distribution.points) {
      path += `${path ? "L" : "M"}${at(point.share).toFixed(1)} ${y.at(point.nanos).toFixed(1)}`;
      // The last point is the largest value; it is drawn at the end of the axis.
      if (nines(point.share) > end) break;
    }
    node.append(line(distribution.look, path));
  }
  const stops = ticks.filter((q) => q > 0).map((q) => ({
    x: at(q),
    describe: () => readout(percentileName(q), distributions, (d) => latency(latencyAt(d, q))),
  }));
  return { node, stops, guide: [area.top, area.bottom] };
}

function drawCumulative(distributions: Distribution[], width: number): Drawing {
  const area: Area = { left: labelRoom(["100 %"]), right: width - 14, top: 10, bottom: HEIGHT - 40, width };
  const x = latencyScale(distributions, area.left, area.right);
  const y = linear(0, 1, area.bottom, area.top, 5);
  const node = paper(
    width, HEIGHT,
    verticalAxis(area, y, tickTexts(y.ticks, "share")),
    horizontalAxis(area, x, tickTexts(x.ticks, "ns"), "latency"),
  );
  for (const distribution of distributions) {
    const path = distribution.points
      .map((point, index) => `${index ? "L" : "M"}${x.at(point.nanos).toFixed(1)} ${y.at(point.share).toFixed(1)}`)
      .join("");
    node.append(line(distribution.look, path));
  }
  const [low, high] = x.domain;
  const stops = Array.from({ length: 41 }, (_, index) => {
    const nanos = low * (high / low) ** (index / 40);
    return {
      x: x.at(nanos),
      describe: () => readout(`within ${latency(nanos)}`, distributions, (d) => percent(shareAt(d, nanos), 2)),
    };
  });
  return { node, stops, guide: [area.top, area.bottom] };
}

function line(look: DesignLook, d: string): SVGPathElement {
  return svg("path", { class: `curve ${look.className}`, d, "stroke-dasharray": look.dash });
}

function readout(heading: string, distributions: Distribution[], write: (d: Distribution) => string) {
  return [
    html("div", { class: "readout-heading" }, heading),
    html("table", {}, distributions.map((distribution) =>
      html("tr", {},
        html("td", {}, swatch(distribution.look)),
        html("td", {}, distribution.title),
        html("td", { class: "number" }, write(distribution))))),
  ];
}
