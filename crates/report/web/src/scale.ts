// Scales: from values to positions on paper, and the ticks a reader expects.
//
// Pure arithmetic; knows nothing of SVG or canvas.

/** A mapping of values to positions, with the ticks of its axis. */
export interface Scale {
  /** Position of a value. */
  at(value: number): number;
  /** Values at which the axis is labelled, ascending. */
  ticks: number[];
  /** First and last value of the axis. */
  domain: [number, number];
}

/** Round numbers (1, 2, 2.5 or 5 times a power of ten) that cover `low..high` in about `wanted` steps. */
export function niceTicks(low: number, high: number, wanted = 5): number[] {
  if (!(high > low)) return [low];
  const rough = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough * 0.999) ?? power;
  const first = Math.floor(low / step + 1e-9);
  const last = Math.ceil(high / step - 1e-9);
  const ticks: number[] = [];
  for (let index = first; index <= last; index += 1) {
    // Rounding to the step removes 0.30000000000000004.
    ticks.push(Number((index * step).toPrecision(12)));
  }
  return ticks;
}

/** A linear scale whose ends are ticks. `from` and `to` are positions; `to` may be smaller. */
export function linear(low: number, high: number, from: number, to: number, wanted = 5): Scale {
  const ticks = niceTicks(low, high > low ? high : low + 1, wanted);
  const first = ticks[0]!;
  const last = ticks[ticks.length - 1]!;
  const at = (value: number) => from + ((value - first) / (last - first)) * (to - from);
  return { at, ticks, domain: [first, last] };
}

/** Steps between the ticks of a duration, seconds. */
const DURATION_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400];

/** A linear scale of seconds from zero, whose ticks are whole minutes or common parts of one. */
export function durations(high: number, from: number, to: number, wanted = 5): Scale {
  const step = DURATION_STEPS.find((seconds) => high / seconds <= wanted) ?? 86_400 * Math.ceil(high / 86_400 / wanted);
  const ticks = Array.from({ length: Math.ceil(high / step) + 1 }, (_, index) => index * step);
  const last = ticks[ticks.length - 1]!;
  return { at: (value) => from + (value / last) * (to - from), ticks, domain: [0, last] };
}

/** A logarithmic scale of exactly `low..high`, labelled at `ticks` (all values must be positive). */
export function logarithmic(
  low: number,
  high: number,
  from: number,
  to: number,
  ticks: number[],
): Scale {
  const bottom = Math.log(low);
  const span = Math.log(high) - bottom || 1;
  const at = (value: number) => from + ((Math.log(value) - bottom) / span) * (to - from);
  return { at, ticks, domain: [low, high] };
}

/** 1, 2, 5 times powers of ten inside `low..high`, thinned to whole powers when there are many. */
export function logTicks(low: number, high: number): number[] {
  const all: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const n of [1, 2, 5]) {
      const tick = Number((n * 10 ** power).toPrecision(6));
      if (tick >= low * 0.999 && tick <= high * 1.001) all.push(tick);
    }
  }
  if (all.length <= 7) return all;
  const powers = all.filter((tick) => Math.abs(Math.log10(tick) % 1) < 1e-6);
  return powers.length >= 2 ? powers : all;
}

/**
 * The axis of a user ladder: logarithmic, because ladders are, with a tick at every rung; evenly
 * spaced if that would put rungs on top of each other.
 */
export function ladder(rungs: number[], from: number, to: number): Scale {
  const sorted = [...new Set(rungs)].filter((n) => n > 0).sort((a, b) => a - b);
  if (sorted.length < 2) {
    const middle = (from + to) / 2;
    const only = sorted[0] ?? 1;
    return { at: () => middle, ticks: sorted, domain: [only, only] };
  }
  const scale = logarithmic(sorted[0]!, sorted[sorted.length - 1]!, from, to, sorted);
  const gaps = sorted.slice(1).map((n, i) => Math.abs(scale.at(n) - scale.at(sorted[i]!)));
  const even = Math.abs(to - from) / (sorted.length - 1);
  if (Math.min(...gaps) >= even / 3) return scale;
  const at = (value: number) => {
    const above = sorted.findIndex((n) => n >= value);
    if (above <= 0) return above === 0 ? from : to;
    const low = sorted[above - 1]!;
    const part = (value - low) / (sorted[above]! - low);
    return from + ((above - 1 + part) / (sorted.length - 1)) * (to - from);
  };
  return { at, ticks: sorted, domain: scale.domain };
}

/** Position of a quantile on the axis that gives each further nine the same room. */
export function nines(quantile: number): number {
  return 0 - Math.log10(Math.max(1e-9, 1 - quantile));
}

/** Leaves out labels that would come closer than `room` to the one before; the last is kept, and before it `always`. */
export function thin(
  all: number[],
  at: (value: number) => number,
  room: number,
  always?: number,
): number[] {
  const kept: number[] = [];
  const ticks = always === undefined || !all.includes(always)
    ? all
    : all.filter((tick) => tick === always || Math.abs(at(tick) - at(always)) >= room);
  const last = ticks[ticks.length - 1];
  for (const tick of ticks) {
    const before = kept[kept.length - 1];
    if (before !== undefined && Math.abs(at(tick) - at(before)) < room) continue;
    kept.push(tick);
  }
  if (last !== undefined && kept[kept.length - 1] !== last) {
    kept.pop();
    kept.push(last);
  }
  return kept;
}
