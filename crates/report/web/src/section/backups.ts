// Backups and restores: seconds, MB/s and latency of each cycle, one bar per design.

import type { Estimate, Operation } from "../analysis";
import { drawBars } from "../chart/bars";
import { figure } from "../chart/frame";
import { html, type Child } from "../dom";
import { capitalised, count, interval, latency, MISSING } from "../format";
import { legend, section, type Page } from "../page";
import { table, tall } from "../table";
import { quantity } from "../unit";
import { comparisons } from "./comparisons";

const KINDS = ["backup", "restore"];

type Measure = [(operation: Operation) => Estimate, string, string, (kind: string) => string];

const MEASURES: readonly Measure[] = [
  [(operation) => operation.seconds, "s", "seconds", () => "until what was written is durable"],
  [(operation) => operation.bytes_per_second, "bytes/s", "MB/s", () => "bytes written over the time that it took"],
  [(operation) => operation.read_latency_ns, "ns", "read latency",
    (kind) => `mean time of a read of the volume ${kind === "backup" ? "data" : "backup"}`],
  [(operation) => operation.write_latency_ns, "ns", "write latency",
    (kind) => `mean time of a write to the volume ${kind === "backup" ? "backup" : "data"}`],
];

/** The section; nothing where no backups were taken. */
export function backups(page: Page): HTMLElement | null {
  const operations = page.analysis.operations ?? [];
  if (operations.length === 0) return null;
  const kinds = KINDS.filter((kind) => operations.some((operation) => operation.kind === kind));
  return section(
    "backups",
    kinds.length > 1 ? "Backups and restores" : "Backups",
    "Each cycle: a backup by the engine\u2019s own program" +
      (kinds.length > 1 ? ", then its restore to a second place on the same volumes. " : ". ") +
      "Files are read from storage, not from memory. Bars: means over the repeats. Whiskers: 95 % confidence intervals.",
    legend(page),
    kinds.map((kind) => html("div", { class: "chart-pair" }, charts(page, operations, kind))),
    comparisons(page, "restore_bytes_per_second"),
    html("details", { class: "disclosure" }, html("summary", {}, "Every cycle"), numbers(page, operations)),
  );
}

function charts(page: Page, operations: Operation[], kind: string): Child {
  const ofKind = operations.filter((operation) => operation.kind === kind);
  const cycles = [...new Set(ofKind.map((operation) => operation.cycle))].sort((a, b) => a - b);
  return MEASURES.flatMap(([pick, unit, name, note]) => {
    const estimates = cycles.map((cycle) => page.designs.map((_, design) => {
      const found = ofKind.find((operation) => operation.cycle === cycle && operation.design === design);
      return found ? pick(found) : null;
    }));
    if (estimates.flat().every((estimate) => estimate === null || estimate.value === null)) return [];
    return [figure({
      title: `${capitalised(kind)}: ${name}`,
      note: note(kind),
      description: `${capitalised(kind)}, ${name} of each cycle and design; the table of cycles has the numbers.`,
      draw: (width) =>
        drawBars(
          { designs: page.designs, groups: cycles.map((cycle) => count(cycle)), estimates, unit, axisTitle: "cycle" },
          width,
        ),
    })];
  });
}

function numbers(page: Page, operations: Operation[]): HTMLElement {
  const cell = (estimate: Estimate, write: (value: number | null) => string): Child => {
    if (estimate.value === null) return MISSING;
    const span = interval(estimate.low, estimate.high, write);
    return [write(estimate.value), span === MISSING ? null : html("div", { class: "muted" }, span)];
  };
  return tall(table(
    [
      { heading: "Operation" }, { heading: "Cycle", numeric: true }, { heading: "Design", design: true },
      { heading: "Time", numeric: true }, { heading: "MB/s", numeric: true },
      { heading: "Read latency", numeric: true }, { heading: "Write latency", numeric: true },
    ],
    operations.map((operation) => ({
      cells: [
        capitalised(operation.kind), count(operation.cycle), page.designs[operation.design]?.title ?? MISSING,
        cell(operation.seconds, (value) => quantity(value, "s")),
        cell(operation.bytes_per_second, (value) => quantity(value, "bytes/s")),
        cell(operation.read_latency_ns, latency), cell(operation.write_latency_ns, latency),
      ],
    })),
    "Backups and restores by cycle, means over the repeats",
  ));
}
