// Light, dark and paper: which one is on, and telling charts when it changes.
//
// Colours themselves live in style/theme.css as custom properties. SVG charts use them through CSS
// and need no redraw; canvas charts listen here.

const KEY = "underlay-theme";

/** What the reader chose: a fixed theme, or whatever the system says. */
export type Choice = "system" | "light" | "dark";

const CHOICES: readonly Choice[] = ["system", "light", "dark"];

type Listener = () => void;
const listeners = new Set<Listener>();

/** Calls `listener` after each change of colours. */
export function onThemeChange(listener: Listener): void {
  listeners.add(listener);
}

function announce(): void {
  for (const listener of listeners) listener();
}

function stored(): Choice {
  try {
    const value = localStorage.getItem(KEY);
    return CHOICES.find((choice) => choice === value) ?? "system";
  } catch {
    // Some browsers refuse storage to file:// pages; the choice then lasts as long as the page.
    return "system";
  }
}

let current: Choice = "system";
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

function apply(choice: Choice): void {
  current = choice;
  const theme = choice === "system" ? (systemIsDark.matches ? "dark" : "light") : choice;
  document.documentElement.dataset["theme"] = theme;
}

/** Sets up the theme as stored. Call once, before anything is drawn. */
export function startTheme(): void {
  apply(stored());
  systemIsDark.addEventListener("change", () => {
    apply(current);
    announce();
  });
}

/** The theme that the reader chose. */
export function themeChoice(): Choice {
  return current;
}

/** Changes the theme, keeps the choice if the browser allows, and has canvases redrawn. */
export function chooseTheme(choice: Choice): void {
  apply(choice);
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    // As above: not kept.
  }
  announce();
}

/** Forces paper colours while printing; canvases are redrawn at once. */
export function setPaper(printing: "printing" | "screen"): void {
  document.documentElement.classList.toggle("paper", printing === "printing");
  announce();
}

/** The present value of a custom property, such as `--ink`. */
export function color(property: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(property).trim();
}

/** How a design looks everywhere: colour, marker and dash, so that it is recognisable without colour. */
export interface DesignLook {
  /** Custom property of the colour. */
  property: string;
  /** Class of elements that take the colour. */
  className: string;
  /** SVG dash array of its lines; empty for solid. */
  dash: string;
  marker: Marker;
}

/** Shape of the points of a line. */
export type Marker = "circle" | "square" | "triangle" | "diamond" | "down" | "bar";

const MARKERS: readonly Marker[] = ["circle", "square", "triangle", "diamond", "down", "bar"];
const DASHES = ["", "7 4", "2 3", "9 3 2 3", "4 2", "1 4"] as const;

/** The look of the design with this index; looks repeat after six. */
export function designLook(index: number): DesignLook {
  const slot = index % MARKERS.length;
  return {
    property: `--design-${slot}`,
    className: `design-${slot}`,
    dash: DASHES[slot] ?? "",
    marker: MARKERS[slot] ?? "circle",
  };
}
