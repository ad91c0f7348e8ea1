// How wide text will be, so that labels can be placed without overlapping.

let context: CanvasRenderingContext2D | null | undefined;
let family = "";

/** Width in pixels of a label of the given size in the page's font. */
export function textWidth(text: string, size = 12): number {
  if (context === undefined) {
    context = document.createElement("canvas").getContext("2d");
    family = getComputedStyle(document.body).fontFamily;
  }
  if (!context) return text.length * size * 0.6;
  context.font = `${size}px ${family}`;
  return context.measureText(text).width;
}

/** The text, cut with an ellipsis to fit `room` pixels; empty if not even two letters fit. */
export function fitText(text: string, room: number, size = 12): string {
  if (textWidth(text, size) <= room) return text;
  for (let length = text.length - 1; length >= 2; length -= 1) {
    const cut = `${text.slice(0, length).trimEnd()}\u2026`;
    if (textWidth(cut, size) <= room) return cut;
  }
  return "";
}
