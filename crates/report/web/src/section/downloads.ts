// The data of the page as files, made in the browser.

import type { Estimate } from "../analysis";
import { html } from "../dom";
import { section, type Page } from "../page";

type Cell = string | number | null;

/** Comma-separated values as RFC 4180 has them. */
export function csv(rows: Cell[][]): string {
  const quote = (cell: Cell) => {
    const text = cell === null ? "" : String(cell);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => `${row.map(quote).join(",")}\r\n`).join("");
}

function save(name: string, type: string, content: string): void {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = html("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** One line per design, rung, metric and run. */
export function rungsCsv(page: Page): string {
  const rows: Cell[][] = [["design", "users", "scope", "metric", "mean", "ci_low", "ci_high", "runs"]];
  const put = (design: string, users: number, scope: string, metric: string, e: Estimate) =>
    rows.push([design, users, scope, metric, e.value, e.low, e.high, e.runs.map((run) => run ?? "").join(" ")]);
  for (const rung of page.analysis.rungs) {
    const design = page.analysis.designs[rung.design]!.name;
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
export function timelinesCsv(page: Page): string {
  const { timelines, runs, designs } = page.analysis;
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

/** The section. */
export function downloads(page: Page): HTMLElement {
  const name = page.analysis.study.name;
  const button = (label: string, file: string, type: string, make: () => string) =>
    html("button", { type: "button", onclick: () => save(`${name}-${file}`, type, make()) }, label);
  const element = section(
    "data", "Data", "What this page shows, as files. The record beside it holds every raw sample.",
    html("div", { class: "controls" },
      button("Rungs as CSV", "rungs.csv", "text/csv", () => rungsCsv(page)),
      button("Time lines as CSV", "timelines.csv", "text/csv", () => timelinesCsv(page)),
      button("Everything as JSON", "analysis.json", "application/json", () => JSON.stringify(page.analysis))));
  element.classList.add("downloads");
  return element;
}
