// Raw values of settings and facts, with what they mean in units of people.

import { bytes, latency } from "./format";

/** `4294967296` under a name that ends with `_bytes` is `4294967296 (4.00 GiB)`; times likewise. */
export function readable(path: string, value: string): string {
  if (!/^\d+(\.\d+)?$/.test(value)) return value;
  const number = Number(value);
  const plain = value.replace(/\.0+$/, "");
  if (/(^|[._])bytes$/.test(path) && number >= 1024) return `${plain} (${bytes(number)})`;
  if (/(^|[._])ns$/.test(path) && !/wall_ns$/.test(path) && number >= 1000) return `${plain} (${latency(number)})`;
  return plain;
}
