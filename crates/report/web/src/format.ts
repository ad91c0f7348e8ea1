// Numbers as text: one way to write each kind of quantity, with its unit.
//
// Missing values are written as an en dash, so that a gap in the evidence is never read as zero.
// Nothing here knows the locale of the reader: a report reads the same everywhere.

import { vocabulary } from "./vocabulary";

/** What a missing value looks like. */
export const MISSING = "\u2013";

const NARROW_SPACE = "\u202f";
const MINUS = "\u2212";

function isMissing(value: number | null | undefined): value is null | undefined {
  return value === null || value === undefined || !Number.isFinite(value);
}

function group(digits: string): string {
  return digits.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** A number with a fixed count of decimals, thousands separated by commas. */
export function fixed(value: number | null | undefined, decimals = 0): string {
  if (isMissing(value)) return MISSING;
  const text = Math.abs(value).toFixed(decimals);
  const [whole = "0", fraction] = text.split(".");
  const negative = value < 0 && Number(text) !== 0;
  return (negative ? MINUS : "") + group(whole) + (fraction ? `.${fraction}` : "");
}

/** A number with about `digits` significant digits; whole numbers are never shortened. */
export function significant(value: number | null | undefined, digits = 3): string {
  if (isMissing(value)) return MISSING;
  if (value === 0) return "0";
  const exponent = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(digits)))));
  return fixed(value, Math.min(6, Math.max(0, digits - 1 - exponent)));
}

/** A count: whole, thousands separated. */
export function count(value: number | null | undefined): string {
  return fixed(value, 0);
}

/** A number of virtual users, or of requests in flight. */
export function users(value: number): string {
  const { one, many } = vocabulary();
  return value === 1 ? `1 ${one}` : `${count(value)} ${many}`;
}

/** A rate such as NOPM: whole from 100 up, three significant digits below. */
export function rate(value: number | null | undefined): string {
  if (isMissing(value)) return MISSING;
  return Math.abs(value) >= 100 ? fixed(value) : significant(value);
}

/** A short form for axes: 1.5k, 20k, 1.2M. */
export function short(value: number | null | undefined): string {
  if (isMissing(value)) return MISSING;
  const size = Math.abs(value);
  const trim = (text: string) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  for (const [limit, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]] as const) {
    if (size >= limit) return trim(significant(value / limit, 3)) + letter;
  }
  return trim(significant(value, 3));
}

/** A share in 0..1 as percent. */
export function percent(share: number | null | undefined, decimals = 1): string {
  return isMissing(share) ? MISSING : `${fixed(share * 100, decimals)}${NARROW_SPACE}%`;
}

/** A signed change of a ratio: 1.25 is +25 %. */
export function change(ratio: number | null | undefined): string {
  if (isMissing(ratio)) return MISSING;
  const share = (ratio - 1) * 100;
  const text = fixed(share, Math.abs(share) < 10 ? 1 : 0);
  return `${share > 0 && Number(text) !== 0 ? "+" : ""}${text}${NARROW_SPACE}%`;
}

/** A ratio: 1.83 with a multiplication sign. */
export function ratio(value: number | null | undefined): string {
  if (isMissing(value)) return MISSING;
  return `${value < 0.1 ? significant(value, 2) : fixed(value, value >= 10 ? 1 : 2)}\u00d7`;
}

/** A unit of time and how many nanoseconds it has. */
export interface TimeUnit {
  name: string;
  nanos: number;
}

const TIME_UNITS: readonly TimeUnit[] = [
  { name: "s", nanos: 1e9 },
  { name: "ms", nanos: 1e6 },
  { name: "\u00b5s", nanos: 1e3 },
  { name: "ns", nanos: 1 },
];

/** The largest unit in which `nanos` is at least one: the unit for an axis that ends there. */
export function timeUnit(nanos: number): TimeUnit {
  return TIME_UNITS.find((unit) => Math.abs(nanos) >= unit.nanos) ?? TIME_UNITS[3]!;
}

/** A latency in nanoseconds with its unit: 412 us, 1.83 ms, 2.40 s. */
export function latency(nanos: number | null | undefined): string {
  if (isMissing(nanos)) return MISSING;
  if (nanos === 0) return "0";
  const unit = timeUnit(Number(nanos.toPrecision(3)));
  return `${significant(nanos / unit.nanos)}${NARROW_SPACE}${unit.name}`;
}

/** A span of seconds in words a reader says: 45 s, 4 min 32 s, 2 h 05 min. */
export function duration(seconds: number | null | undefined): string {
  if (isMissing(seconds)) return MISSING;
  if (seconds < 10) return `${significant(seconds, 2)}${NARROW_SPACE}s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole}${NARROW_SPACE}s`;
  const pad = (n: number) => String(n).padStart(2, "0");
  if (whole < 3600) {
    return `${Math.floor(whole / 60)}${NARROW_SPACE}min ${pad(whole % 60)}${NARROW_SPACE}s`;
  }
  const minutes = Math.round(whole / 60);
  return `${Math.floor(minutes / 60)}${NARROW_SPACE}h ${pad(minutes % 60)}${NARROW_SPACE}min`;
}

/** A position on a time axis: 1:05, 12:30, 1:02:05. */
export function clock(seconds: number): string {
  const whole = Math.round(Math.abs(seconds));
  const pad = (n: number) => String(n).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  const text = hours > 0
    ? `${hours}:${pad(minutes)}:${pad(whole % 60)}`
    : `${minutes}:${pad(whole % 60)}`;
  return seconds < 0 && whole > 0 ? MINUS + text : text;
}

/** A size in bytes, in powers of 1024. */
export function bytes(value: number | null | undefined): string {
  if (isMissing(value)) return MISSING;
  const names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let size = Math.abs(value);
  let step = 0;
  while (size >= 1024 && step < names.length - 1) {
    size /= 1024;
    step += 1;
  }
  const text = step === 0 ? fixed(size) : significant(size);
  return `${value < 0 ? MINUS : ""}${text}${NARROW_SPACE}${names[step]}`;
}

/** An interval in the form of its point estimate: "1,200 to 1,300", "3.9 to 4.1 ms". */
export function interval(
  low: number | null | undefined,
  high: number | null | undefined,
  write: (value: number) => string,
): string {
  if (isMissing(low) || isMissing(high)) return MISSING;
  const [first = "", unit] = write(low).split(NARROW_SPACE);
  const last = write(high);
  const shared = unit !== undefined && last.endsWith(`${NARROW_SPACE}${unit}`);
  return `${shared ? first : write(low)} to ${last}`;
}

/** A sentence with a capital letter at its begin. */
export function capitalised(sentence: string): string {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}

/** The same in the middle of a sentence; what begins with an abbreviation stays. */
export function uncapitalised(sentence: string): string {
  const isAbbreviation = /^[A-Z]{2}/.test(sentence);
  return isAbbreviation ? sentence : sentence.charAt(0).toLowerCase() + sentence.slice(1);
}

/** A dotted or underscored name as words: `new_order` is "New order". */
export function words(name: string): string {
  return capitalised(name.replace(/[_.-]+/g, " ").trim());
}

/** A wall clock time in nanoseconds since 1970, in UTC. */
export function wallTime(nanos: number | null | undefined): string {
  if (isMissing(nanos) || nanos <= 0) return MISSING;
  return `${new Date(nanos / 1e6).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}
