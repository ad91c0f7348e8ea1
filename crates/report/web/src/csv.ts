// The numbers of the page as comma-separated values, one observation per line.

import type { Analysis, Estimate } from "./analysis";

type Cell = string | number | null;

/** Whether a spreadsheet would calculate the text instead of showing it. */
function isFormula(text: string): boolean {
  return /^[=+\-@\t\r＝＋－＠]/.test(text) && (text.trim() === "" || Number.isNaN(Number(text)));
}

/** Comma-separated values as RFC 4180 has them, and without formulas, as those of the program. */
export function csv(rows: Cell[][]): string {
  const quote = (cell: Cell) => {
    const raw = cell === null ? "" : String(cell);
    const text = isFormula(raw) ? `'${raw}` : raw;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => `${row.map(quote).join(",")}\r\n`).join("");
}

/** One line per design, rung, metric and run. */
export function rungsCsv(analysis: Analysis): string {
  const rows: Cell[][] = [["design", "users", "scope", "metric", "mean", "ci_low", "ci_high", "runs"]];
  const put = (design: string, users: number, scope: string, metric: string, e: Estimate) =>
    rows.push([design, users, scope, metric, e.value, e.low, e.high, e.runs.map((run) => run ?? "").join(" ")]);
  for (const rung of analysis.rungs) {
    const design = analysis.designs[rung.design]!.name;
    for (const [metric, e] of Object.entries(rung.metrics)) put(design, rung.users, "", metric, e);
    for (const row of rung.latencies) {
      put(design, rung.users, row.transaction, "p50_ns", row.p50);
      put(design, rung.users, row.transaction, "p95_ns", row.p95);
      put(design, rung.users, row.transaction, "p99_ns", row.p99);
    }
    for (const row of rung.volumes) {
      for (const [metric, e] of Object.entries(row.metrics)) put(design, rung.users, row.volume, metric, e);
    }
  }
  return csv(rows);
}

/** One line per run, series and bucket. */
export function timelinesCsv(analysis: Analysis): string {
  const { timelines, runs, designs } = analysis;
  const rows: Cell[][] = [["design", "repeat", "series", "unit", "begin_s", "end_s", "mean", "min", "max"]];
  for (const line of timelines.lines) {
    const run = runs[line.run]!;
    const series = timelines.series[line.series]!;
    line.mean.forEach((mean, index) => {
      const begin = line.begin_s + index * line.step_s;
      rows.push([
        designs[run.design]!.name, run.repeat, series.name, series.unit,
        Number(begin.toFixed(3)), Number((begin + line.step_s).toFixed(3)),
        mean, line.min?.[index] ?? mean, line.max?.[index] ?? mean,
      ]);
    });
  }
  return csv(rows);
}
