// The shapes of points, so that designs are distinguishable without colour.

import { svg } from "../dom";
import type { DesignLook, Marker } from "../theme";

const OUTLINES: Record<Exclude<Marker, "circle">, string> = {
  square: "M-3.4-3.4h6.8v6.8h-6.8z",
  triangle: "M0-4.4 4.2 3.2h-8.4z",
  diamond: "M0-4.8 4.8 0 0 4.8-4.8 0z",
  down: "M0 4.4 4.2-3.2h-8.4z",
  bar: "M-1.5-4.6h3v9.2h-3z",
};

/** The marker of a design at a position. */
export function marker(look: DesignLook, x: number, y: number, scale = 1): SVGElement {
  const className = `marker ${look.className}`;
  if (look.marker === "circle") return svg("circle", { class: className, cx: x, cy: y, r: 3.7 * scale });
  return svg("path", {
    class: className,
    d: OUTLINES[look.marker],
    transform: `translate(${x.toFixed(2)} ${y.toFixed(2)})${scale === 1 ? "" : ` scale(${scale})`}`,
  });
}

/** A short sample of a design's line with its marker, for legends. */
export function swatch(look: DesignLook): SVGSVGElement {
  return svg(
    "svg",
    { class: "swatch", width: 30, height: 12, viewBox: "0 0 30 12", "aria-hidden": "true" },
    svg("line", {
      class: `curve ${look.className}`,
      x1: 1, y1: 6, x2: 29, y2: 6,
      "stroke-dasharray": look.dash,
    }),
    marker(look, 15, 6),
  );
}
