// Several databases under test: the throughput of each next to the total, and the numbers of all rungs.

import type { Database, Estimate, Rung } from "../analysis";
import { drawBars } from "../chart/bars";
import { figure } from "../chart/frame";
import { html } from "../dom";
import { capitalised, count, interval, latency, MISSING, rate } from "../format";
import { hasValues, legend, section, type Page } from "../page";
import { table, tall } from "../table";
import { quantity } from "../unit";
import { vocabulary } from "../vocabulary";

/** The section; nothing where a study has one database. */
export function databases(page: Page): HTMLElement | null {
  const all = page.analysis.databases ?? [];
  const list = all.filter((database) => !database.workload.is_job);
  if (list.length === 0) return null;
  const jobs = all.filter((database) => database.workload.is_job);
  const { rate: rateWords, unit } = page.analysis.workload;
  return section(
    "databases",
    "Databases",
    `${capitalised(rateWords)} of each database and of all together. All databases were loaded and measured at the same time; ` +
      `${vocabulary().many} are those of each database.`,
    legend(page),
    charts(page, list),
    jobs.length > 0 ? tall(results(page, jobs)) : null,
    html("details", { class: "disclosure" },
      html("summary", {}, "Every rung of every database"), tall(numbers(page, list, unit))),
  );
}

/** The results of the jobs that run alongside the users. */
function results(page: Page, jobs: Database[]): HTMLElement {
  const seconds = (rung: Rung, metric: string) => {
    const value = rung.metrics[metric]?.value ?? null;
    return value === null ? MISSING : quantity(value, "s");
  };
  return table(
    [
      { heading: "Job" }, { heading: "Design", design: true }, { heading: "Result", numeric: true }, { heading: "95 %", numeric: true },
      { heading: "Backup", numeric: true }, { heading: "Restore", numeric: true },
    ],
    jobs.flatMap((job) => job.rungs.map((rung) => {
      const headline = rung.metrics["headline"];
      const value = headline?.value ?? null;
      return {
        cells: [
          job.name, page.designs[rung.design]?.title ?? MISSING,
          value === null ? MISSING : `${rate(value)} ${job.workload.unit}`,
          interval(headline?.low ?? null, headline?.high ?? null, rate), seconds(rung, "backup_s"), seconds(rung, "restore_s"),
        ],
      };
    })),
    "Jobs alongside the users, not included in any total; backup and restore: mean time per cycle",
  );
}

/** The rung of a design with the most users. */
function highest(rungs: Rung[], design: number): Rung | null {
  const own = rungs.filter((rung) => rung.design === design);
  return own.reduce<Rung | null>((best, rung) => (best === null || rung.users > best.users ? rung : best), null);
}

/** The databases on an axis of their own, because the total of many would leave them no room, and the total next to them. */
function charts(page: Page, list: Database[]): HTMLElement[] {
  const { rate: rateWords, rate_unit, types, unit } = page.analysis.workload;
  const at = `at the highest number of ${vocabulary().many}`;
  const groups: [string, Rung[]][] = list.map((database) => [database.name, database.rungs]);
  const headline = (rung: Rung) => rung.metrics["headline"];
  return [
    html("div", { class: "chart-split" },
      bars(page, groups, { title: capitalised(rateWords), note: `${unit}, ${at}`, unit: rate_unit, pick: headline }),
      bars(page, [["all databases", page.analysis.rungs]], { title: "Total", note: unit, unit: rate_unit, pick: headline })),
    html("div", { class: "chart-pair" },
      bars(page, groups, {
        title: "CPU use of each server", note: "of the processors that it may use", unit: "share", limit: 1,
        pick: (rung) => rung.metrics["server_cpu_use"],
      }),
      bars(page, groups, {
        title: "Response time, p95", note: "from the intended start", unit: "ns",
        pick: (rung) => rung.latencies.find((row) => types.includes(row.transaction))?.p95,
      })),
  ].filter((row) => row.hasChildNodes());
}

interface Bars {
  title: string;
  note: string;
  unit: string;
  limit?: number;
  pick: (rung: Rung) => Estimate | null | undefined;
}

function bars(page: Page, groups: [string, Rung[]][], { title, note, unit, limit, pick }: Bars): HTMLElement | null {
  const estimates = groups.map(([, rungs]) =>
    page.designs.map((_, design) => {
      const rung = highest(rungs, design);
      return (rung && pick(rung)) ?? null;
    }));
  if (!hasValues(estimates)) return null;
  return figure({
    title,
    note,
    description: `${title} of ${groups.map(([name]) => name).join(", ")}, for each design; the table has the numbers.`,
    draw: (width) =>
      drawBars(
        { designs: page.designs, groups: groups.map(([name]) => name), estimates, unit, limit, axisTitle: groups.length > 1 ? "database" : "" },
        width,
      ),
  });
}

function numbers(page: Page, list: Database[], unit: string): HTMLElement {
  const types = page.analysis.workload.types;
  const row = (name: string, rung: Rung) => {
    const headline = rung.metrics["headline"];
    const times = rung.latencies.find((latencies) => types.includes(latencies.transaction));
    return {
      cells: [
        name, page.designs[rung.design]?.title ?? MISSING, count(rung.users), rate(headline?.value ?? null),
        interval(headline?.low ?? null, headline?.high ?? null, rate), latency(times?.p50.value ?? null),
        latency(times?.p95.value ?? null), latency(times?.p99.value ?? null), count(times?.errors ?? 0),
      ],
    };
  };
  const rows = list.flatMap((database) => database.rungs.map((rung) => row(database.name, rung)));
  const totals = page.analysis.rungs.map((rung) => row("total", rung));
  return table(
    [
      { heading: "Database" }, { heading: "Design", design: true }, { heading: capitalised(vocabulary().many), numeric: true },
      { heading: unit, numeric: true }, { heading: "95 %", numeric: true }, { heading: "p50", numeric: true },
      { heading: "p95", numeric: true }, { heading: "p99", numeric: true }, { heading: "Errors", numeric: true },
    ],
    [...rows, ...totals],
    "Every rung of every database, and the totals",
  );
}
