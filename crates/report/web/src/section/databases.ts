// Several databases under test: the throughput of each beside the total, and the numbers of all rungs.

import type { Database, Rung } from "../analysis";
import { drawBars } from "../chart/bars";
import { figure } from "../chart/frame";
import { capitalised, count, interval, latency, MISSING, rate } from "../format";
import { legend, section, type Page } from "../page";
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
    chart(page, list),
    tall(numbers(page, list, unit)),
    jobs.length > 0 ? tall(results(page, jobs)) : null,
  );
}

/** What the jobs beside the users came to. */
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
    "Jobs beside the users, which are in no total; backup and restore: mean time of one",
  );
}

/** The rung of a design with the most users. */
function highest(rungs: Rung[], design: number): Rung | null {
  const own = rungs.filter((rung) => rung.design === design);
  return own.reduce<Rung | null>((best, rung) => (best === null || rung.users > best.users ? rung : best), null);
}

function chart(page: Page, list: Database[]): HTMLElement {
  const { rate: rateWords, rate_unit, unit } = page.analysis.workload;
  const groups: [string, Rung[]][] = list.map((database) => [database.name, database.rungs]);
  groups.push(["total", page.analysis.rungs]);
  return figure({
    title: capitalised(rateWords),
    note: `${unit}, at the highest number of ${vocabulary().many} of each design`,
    description: `${capitalised(rateWords)} of each database and in total, for each design; the table has the numbers.`,
    draw: (width) =>
      drawBars(
        {
          designs: page.designs,
          groups: groups.map(([name]) => name),
          estimates: groups.map(([, rungs]) =>
            page.designs.map((_, design) => highest(rungs, design)?.metrics["headline"] ?? null)),
          unit: rate_unit,
          axisTitle: "database",
        },
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
