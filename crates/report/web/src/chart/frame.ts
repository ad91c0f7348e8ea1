// The frame of every chart: a figure with a caption, redrawn when its room changes, when printing
// starts and ends, and read with mouse, touch or arrow keys.
//
// Charts are functions from a width to a drawing; they keep no state of their own.

import { append, html, svg, type Child } from "../dom";
import { setPaper } from "../theme";

/** One place of a chart that can be read: its position and what is there. */
export interface Stop {
  /** Horizontal position in the drawing. */
  x: number;
  /** Vertical position for charts that are read from top to bottom. */
  y?: number;
  /** Content of the read-out. */
  describe: () => Child;
}

/** A finished drawing and the places in it that can be read. */
export interface Drawing {
  node: SVGSVGElement;
  stops?: Stop[];
  /** Top and bottom of the vertical guide line, if the chart has one. */
  guide?: [number, number];
}

/** A chart in words and as a function that draws it. */
export interface ChartSpec {
  title: string;
  /** Unit or remark, in smaller type behind the title. */
  note?: string;
  /** What the chart shows, for readers who cannot see it. */
  description: string;
  draw: (width: number) => Drawing;
  className?: string;
}

interface Frame {
  body: HTMLElement;
  redraw: (width: number) => void;
  width: number;
  /** Share of the page width that the chart has on paper. */
  columns: number;
}

const frames = new Map<Element, Frame>();
/** Width of the text column on A4 and Letter paper at 96 dots per inch, less the margins. */
const PAPER_WIDTH = 690;

const observer = new ResizeObserver((entries) => {
  if (document.documentElement.classList.contains("paper")) return;
  for (const entry of entries) {
    const frame = frames.get(entry.target);
    const width = Math.floor(entry.contentRect.width);
    if (!frame || width < 40 || width === frame.width) continue;
    frame.width = width;
    frame.redraw(width);
  }
});

function paperWidth(frame: Frame): number {
  return Math.floor(PAPER_WIDTH / frame.columns) - (frame.columns > 1 ? 10 : 0);
}

const unfolded: HTMLDetailsElement[] = [];

/** Unfolds everything and redraws all charts for paper, also those that were never on screen. */
function startPrinting(): void {
  if (document.documentElement.classList.contains("paper")) return;
  setPaper("printing");
  for (const fold of document.querySelectorAll<HTMLDetailsElement>("main details:not([open])")) {
    fold.open = true;
    unfolded.push(fold);
  }
  for (const [element, frame] of frames) {
    if (!element.isConnected) continue;
    frame.columns = Number(getComputedStyle(element).getPropertyValue("--paper-columns")) || 1;
    frame.redraw(paperWidth(frame));
  }
}

function endPrinting(): void {
  setPaper("screen");
  for (const fold of unfolded.splice(0)) fold.open = false;
  for (const [element, frame] of frames) {
    const width = Math.floor(element.clientWidth);
    if (!element.isConnected || width < 40) continue;
    frame.width = width;
    frame.redraw(width);
  }
}

/** Registers the redrawing of charts for paper. Call once. */
export function startFrames(): void {
  addEventListener("beforeprint", startPrinting);
  addEventListener("afterprint", endPrinting);
}

/** Has `redraw` called with the width of `body` now and whenever it changes. */
export function whenResized(body: HTMLElement, redraw: (width: number) => void): void {
  frames.set(body, { body, redraw, width: 0, columns: 1 });
  observer.observe(body);
}

/** Stops what {@link whenResized} started. */
export function forget(body: HTMLElement): void {
  frames.delete(body);
  observer.unobserve(body);
}

/** Forgets every chart inside `container` and empties it. */
export function clear(container: Element): void {
  for (const element of [...frames.keys()]) {
    if (container.contains(element)) forget(element as HTMLElement);
  }
  container.replaceChildren();
}

/** A figure that draws itself into whatever room it gets. */
export function figure(spec: ChartSpec): HTMLElement {
  const body = html("div", { class: "chart-body" });
  const readout = html("div", { class: "readout", hidden: true, role: "status" });
  const holder = html("div", { class: "chart-holder" }, body, readout);
  whenResized(body, (width) => {
    const drawing = spec.draw(width);
    drawing.node.setAttribute("role", "img");
    drawing.node.setAttribute("aria-label", spec.description);
    body.replaceChildren(drawing.node);
    readout.hidden = true;
    makeReadable(body, readout, drawing);
  });
  return html(
    "figure",
    { class: `chart ${spec.className ?? ""}` },
    html(
      "figcaption",
      {},
      html("span", { class: "chart-title" }, spec.title),
      spec.note ? html("span", { class: "chart-note" }, spec.note) : null,
    ),
    holder,
  );
}

function nearest(stops: Stop[], x: number, y: number): number {
  let best = 0;
  let least = Infinity;
  stops.forEach((stop, index) => {
    const distance = Math.abs(stop.x - x) + (stop.y === undefined ? 0 : 8 * Math.abs(stop.y - y));
    if (distance < least) {
      least = distance;
      best = index;
    }
  });
  return best;
}

function makeReadable(body: HTMLElement, readout: HTMLElement, drawing: Drawing): void {
  const stops = drawing.stops ?? [];
  if (stops.length === 0) return;
  const guide = drawing.guide
    ? svg("line", { class: "guide", y1: drawing.guide[0], y2: drawing.guide[1], visibility: "hidden" })
    : null;
  if (guide) drawing.node.prepend(guide);
  let shown = -1;
  const hide = () => {
    shown = -1;
    readout.hidden = true;
    guide?.setAttribute("visibility", "hidden");
  };
  const show = (index: number) => {
    const stop = stops[index];
    if (!stop || index === shown) return;
    shown = index;
    readout.replaceChildren();
    append(readout, [stop.describe()]);
    readout.hidden = false;
    place(readout, body, stop);
    if (!guide) return;
    guide.setAttribute("x1", String(stop.x));
    guide.setAttribute("x2", String(stop.x));
    guide.setAttribute("visibility", "visible");
  };
  const node = drawing.node;
  const follow = (event: PointerEvent) => {
    const box = node.getBoundingClientRect();
    const scale = box.width / (node.viewBox.baseVal.width || box.width);
    show(nearest(stops, (event.clientX - box.left) / scale, (event.clientY - box.top) / scale));
  };
  node.addEventListener("pointermove", follow);
  node.addEventListener("pointerdown", follow);
  node.addEventListener("pointerleave", (event) => {
    // A finger that lifts leaves the read-out standing; a mouse that leaves takes it along.
    if (event.pointerType === "mouse") hide();
  });
  node.setAttribute("tabindex", "0");
  node.addEventListener("blur", hide);
  node.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") hide();
    if (!step) return;
    event.preventDefault();
    const next = shown < 0 ? (step > 0 ? 0 : stops.length - 1) : shown + step;
    show(Math.min(stops.length - 1, Math.max(0, next)));
  });
}

function place(readout: HTMLElement, body: HTMLElement, stop: Stop): void {
  const room = body.clientWidth;
  const width = readout.offsetWidth;
  const right = stop.x + 14 + width <= room;
  const left = right ? stop.x + 14 : Math.max(0, Math.min(stop.x - 14 - width, room - width));
  readout.style.left = `${left}px`;
  readout.style.top = `${stop.y === undefined ? 4 : stop.y + 14}px`;
}

/** The canvas of a chart: an SVG of the given size whose units are pixels. */
export function paper(width: number, height: number, ...children: Child[]): SVGSVGElement {
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` }, ...children);
}
