// The units of series and metrics: how a value is written, and how the ticks of its axis are.

import { bytes, clock, duration, fixed, latency, MISSING, percent, rate, short, significant, timeUnit } from "./format";

const NARROW_SPACE = "\u202f";

/** A published value in its own unit, where it has one. */
export function publishedQuantity(value: number | null | undefined, own: string, unit: string): string {
  if (own === "" || value === null || value === undefined) return quantity(value, unit);
  return `${rate(value)}${NARROW_SPACE}${own}`;
}

/** A value with its unit, for tables and read-outs. */
export function quantity(value: number | null | undefined, unit: string): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return MISSING;
  switch (unit) {
    case "ns":
      return latency(value);
    case "bytes":
      return bytes(value);
    case "bytes/s":
      return `${rate(value / 1e6)}${NARROW_SPACE}MB/s`;
    case "share":
      return percent(value);
    case "s":
      return duration(value);
    case "1/min":
    case "1/h":
      return rate(value);
    case "1/s":
      return `${rate(value)}${NARROW_SPACE}/s`;
    case "cores":
    case "sessions":
    case "requests":
    case "to 1":
      return `${significant(value)}${NARROW_SPACE}${unit}`;
    case "":
    case "1":
    case "count":
      return rate(value);
    default:
      return `${rate(value)}${NARROW_SPACE}${unit}`;
  }
}

/** From this many seconds on an axis of durations is labelled in minutes and seconds. */
const MINUTES_FROM = 120;

/** Whether an axis that ends at `top` is labelled in minutes and seconds. */
export function isInMinutes(top: number, unit: string): boolean {
  return unit === "s" && top >= MINUTES_FROM;
}

/** A value as it stands at a mark of a chart whose axis ends at `top`: with its unit, and without it, which the axis has. */
export function markTexts(value: number | null, top: number, unit: string): [string, string] {
  if (value === null) return [MISSING, MISSING];
  if (isInMinutes(top, unit)) {
    const text = value < 10 ? duration(value) : clock(value);
    return [text, clock(value)];
  }
  const [divisor] = axisUnit(top, unit);
  const number = value / divisor;
  return [quantity(value, unit), divisor === 1 || Math.abs(number) >= 10_000 ? short(number) : significant(number)];
}

/** The unit in words, for captions of charts whose ticks do not show it. */
export function unitName(unit: string): string {
  const names: Record<string, string> = {
    "1/h": "per hour", "1/min": "per minute", "1/s": "per second", cores: "cores", sessions: "sessions", requests: "requests", "to 1": "",
    "bytes/s": "", bytes: "", share: "", ns: "", s: "", "": "", "1": "", count: "",
  };
  return names[unit] ?? unit;
}

function trimmed(value: number): string {
  const text = significant(value, 3);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

const BYTE_STEPS: readonly [number, string][] = [
  [2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"],
];

const RATE_STEPS: readonly [number, string][] = [[1e6, "MB/s"], [1e3, "kB/s"], [1, "B/s"]];

/** The divisor and the name that suit an axis whose greatest tick is `top`. */
function axisUnit(top: number, unit: string): [number, string] {
  switch (unit) {
    case "ns": {
      const { nanos, name } = timeUnit(top);
      return [nanos, name];
    }
    case "share":
      return [0.01, "%"];
    case "bytes/s":
      return RATE_STEPS.find(([size]) => top >= size) ?? [1, "B/s"];
    case "bytes":
      return BYTE_STEPS.find(([size]) => top >= size) ?? [1, "B"];
    case "s":
      return [1, "s"];
    default:
      return [1, ""];
  }
}

/**
 * The labels of ascending ticks. Only the last carries the unit, so that the axis stays quiet; ticks
 * that span many powers of ten carry each their own.
 */
export function tickTexts(ticks: readonly number[], unit: string): string[] {
  const top = Math.max(...ticks.map(Math.abs), 0);
  const least = Math.min(...ticks.filter((tick) => tick > 0));
  if (unit === "ns" && top / least > 500) {
    return ticks.map((tick) => {
      const own = timeUnit(tick);
      return tick === 0 ? "0" : `${trimmed(tick / own.nanos)}${NARROW_SPACE}${own.name}`;
    });
  }
  if (isInMinutes(top, unit)) return ticks.map(clock);
  const [divisor, name] = axisUnit(top, unit);
  return ticks.map((tick, index) => {
    const number = divisor === 1 && name === "" ? short(tick) : writeTick(tick / divisor);
    return index === ticks.length - 1 && name ? `${number}${NARROW_SPACE}${name}` : number;
  });
}

function writeTick(value: number): string {
  return Math.abs(value) >= 10_000 ? short(value) : Number.isInteger(value) ? fixed(value) : trimmed(value);
}
