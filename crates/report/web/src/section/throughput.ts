// What each rung of the ladder delivered, and beside it how long answers took and how much of the processors was left.

import type { Estimate, Rung } from "../analysis";
import { drawBars } from "../chart/bars";
import { figure } from "../chart/frame";
import { html } from "../dom";
import { capitalised, count, words } from "../format";
import { grid, hasValues, legend, mainType, section, type Page } from "../page";
import { isBlockLoad, vocabulary } from "../vocabulary";

interface Bars {
  title: string;
  note: string;
  unit: string;
  limit?: number;
  pick: (rung: Rung) => Estimate | null | undefined;
}

function bars(page: Page): Bars[] {
  const { counted, rate, rate_unit, unit, is_job } = page.analysis.workload;
  const done = isBlockLoad(page.analysis.workload) ? "completed" : "committed";
  const metric = (name: string) => (rung: Rung) => rung.metrics[name];
  // The result of a job is not a count.
  const what = is_job ? "the run\u2019s result; Method has its definition" : `${done} ${counted}, counted by the load generator`;
  return [
    { title: capitalised(rate), note: `${unit}: ${what}`, unit: rate_unit, pick: metric("headline") },
    { title: "Duration", note: "from the job\u2019s begin to its end", unit: "s", pick: metric("job_s") },
    ...responseTime(page),
    {
      title: "Transactions per minute", note: "TPM: commits and rollbacks counted by the engine", unit: "1/min",
      pick: metric("tpm"),
    },
    ...idle(page),
  ];
}

/** Of what the headline counts; a job has none that it is judged by. */
function responseTime(page: Page): Bars[] {
  const { workload, rungs } = page.analysis;
  const timed = rungs.flatMap((rung) => rung.latencies.filter((row) => row.p95.value !== null));
  const type = mainType(page, [...new Set(timed.map((row) => row.transaction))]);
  if (type === undefined || workload.is_job) return [];
  return [{
    title: "Response time, p95", note: `${words(type).toLowerCase()}, from the intended start`, unit: "ns",
    pick: (rung) => rung.latencies.find((row) => row.transaction === type)?.p95,
  }];
}

/** Of what the server may use, where it has a limit: the host's idle time says nothing about a server that is held back. */
function idle(page: Page): Bars[] {
  if (isBlockLoad(page.analysis.workload)) return [];
  const limited = page.analysis.rungs.some((rung) => rung.metrics["server_cpu_idle"]?.value != null);
  const [name, note] = limited ? ["server_cpu_idle", "of the server\u2019s CPU limit"] : ["cpu_idle", "of the host"];
  return [{ title: "CPU idle", note, unit: "share", limit: 1, pick: (rung) => rung.metrics[name] }];
}

/** The section. */
export function throughput(page: Page): HTMLElement {
  const figures = bars(page).flatMap(({ title, note, unit, limit, pick }) => {
    const estimates = grid(page, pick);
    if (!hasValues(estimates)) return [];
    return [
      figure({
        title,
        note,
        description: `${title} for each design and number of ${vocabulary().many}; the table of rungs has the numbers.`,
        draw: (width) =>
          drawBars(
            {
              designs: page.designs,
              groups: page.ladder.map((users) => count(users)),
              estimates,
              unit,
              axisTitle: vocabulary().axis,
              limit,
            },
            width,
          ),
      }),
    ];
  });
  return section(
    "throughput",
    "Throughput",
    isBlockLoad(page.analysis.workload)
      ? vocabulary().means
      : "Bars: means over the repeats. Whiskers: 95 % confidence intervals. Dots: individual runs.",
    legend(page),
    html("div", { class: "chart-pair" }, figures),
  );
}
