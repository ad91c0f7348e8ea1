// The numbers behind the charts, as tables.

import type { Estimate, Rung } from "../analysis";
import { select } from "../control";
import { html, type Child } from "../dom";
import { capitalised, count, interval, latency, MISSING, words, users as usersText } from "../format";
import { metricOf, section, type Page } from "../page";
import { table, type Row } from "../table";
import { quantity } from "../unit";
import { vocabulary } from "../vocabulary";

/** The measures of the table of rungs; one that no rung has is left out. */
const METRICS = [
  "headline", "bytes_per_second", "rate_at_1ms", "latency_at_peak_ns", "tpm", "tpm_per_user", "backup_s", "restore_s",
  "restore_bytes_per_second", "backup_latency_ns", "restore_latency_ns",
  "server_cpu_idle", "cpu_idle", "error_share",
];

/** The section. */
export function numbers(page: Page): HTMLElement {
  return section("numbers", "Numbers", vocabulary().means,
    rungTable(page), latencyTables(page));
}

function withInterval(
  estimate: Estimate | undefined,
  write: (value: number | null) => string,
): Child {
  if (!estimate || estimate.value === null) return MISSING;
  const span = interval(estimate.low, estimate.high, write);
  return [
    write(estimate.value),
    span === MISSING ? null : html("div", { class: "muted" }, span),
  ];
}

function rungTable(page: Page): HTMLElement {
  const metrics = METRICS
    .filter((name) => page.analysis.rungs.some((rung) => rung.metrics[name]))
    .map((name) => metricOf(page, name));
  const touched = page.analysis.rungs.some((rung) => rung.working_set !== null);
  const rows = page.ladder.flatMap((users) =>
    page.designs.flatMap((design, index): Row[] => {
      const rung = page.rung(index, users);
      if (!rung) return [];
      return [{
        className: index === 0 ? "group-start" : "",
        cells: [
          count(users),
          design.title,
          ...metrics.map((metric) =>
            withInterval(rung.metrics[metric.name], (value) => quantity(value, metric.unit))),
          ...(touched ? [rung.working_set?.text ?? MISSING] : []),
          count(rung.metrics["headline"]?.runs.length ?? 0),
        ],
      }];
    }));
  return table(
    [
      { heading: capitalised(vocabulary().many), numeric: true },
      { heading: "Design", design: true },
      ...metrics.map((metric) => ({ heading: metric.title, numeric: true })),
      ...(touched ? [{ heading: "Working set" }] : []),
      { heading: "Runs", numeric: true },
    ],
    rows,
    "Throughput of each design at each rung of the ladder",
  );
}

/** One table per rung. On screen the reader chooses one; on paper all are printed. */
function latencyTables(page: Page): Child {
  // What was only counted has no times: a table of gaps would say nothing.
  const ladder = page.ladder.filter((users) =>
    page.analysis.rungs.some((rung) => rung.users === users && rung.latencies.some((row) => row.p50.value !== null)));
  const last = ladder[ladder.length - 1];
  if (last === undefined) return null;
  const asked = page.analysis.verdict.users;
  const initial = asked !== null && ladder.includes(asked) ? asked : last;
  const tables = ladder.map((users) => latencyTable(page, users));
  const show = (users: number) =>
    tables.forEach((element, index) => element.classList.toggle("off-screen", ladder[index] !== users));
  show(initial);
  return [
    html("div", { class: "controls" },
      select("Response times at", ladder.map((value) => ({ value, label: usersText(value) })), initial, show)),
    tables,
  ];
}

function latencyTable(page: Page, users: number): HTMLElement {
  const rungs = page.designs.map((_, design) => page.rung(design, users));
  const transactions = [...new Set(rungs.flatMap((rung) => rung?.latencies.map((row) => row.transaction) ?? []))];
  return table(
    [
      { heading: capitalised(vocabulary().request) },
      { heading: "Design", design: true },
      { heading: "Count", numeric: true },
      { heading: "Mean", numeric: true },
      { heading: "p50", numeric: true },
      { heading: "p95", numeric: true },
      { heading: "p99", numeric: true },
      { heading: "Maximum", numeric: true },
      { heading: "Service p99", numeric: true },
      { heading: "Errors", numeric: true },
    ],
    transactions.flatMap((transaction) => latencyRows(page, rungs, transaction)),
    `Response time at ${usersText(users)}, from the intended start of each ${vocabulary().request}`,
  );
}

function latencyRows(page: Page, rungs: (Rung | undefined)[], transaction: string): Row[] {
  return rungs.flatMap((rung, design): Row[] => {
    const row = rung?.latencies.find((candidate) => candidate.transaction === transaction);
    if (!row) return [];
    return [{
      className: design === 0 ? "group-start" : "",
      cells: [
        words(transaction),
        page.designs[design]!.title,
        count(row.count),
        latency(row.mean_ns),
        withInterval(row.p50, latency),
        withInterval(row.p95, latency),
        withInterval(row.p99, latency),
        latency(row.max_ns),
        latency(row.service_p99_ns),
        count(row.errors),
      ],
    }];
  });
}
