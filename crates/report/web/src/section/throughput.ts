// Throughput at each rung of the ladder: the bars that answer "how much".

import { drawBars } from "../chart/bars";
import { figure } from "../chart/frame";
import { html } from "../dom";
import { capitalised, count } from "../format";
import { grid, hasValues, legend, section, type Page } from "../page";
import { isBlockLoad, vocabulary } from "../vocabulary";

function bars(page: Page): [string, string, string, string][] {
  const { counted, rate, rate_unit, unit, is_job } = page.analysis.workload;
  const done = isBlockLoad(page.analysis.workload) ? "completed" : "committed";
  // The result of a job is not a count.
  const what = is_job ? "the run\u2019s result; Method has its definition" : `${done} ${counted}, counted by the load generator`;
  return [
    ["headline", capitalised(rate), `${unit}: ${what}`, rate_unit],
    ["tpm", "Transactions per minute", "TPM: commits and rollbacks counted by the engine", "1/min"],
  ];
}

/** The section. */
export function throughput(page: Page): HTMLElement {
  const figures = bars(page).flatMap(([metric, title, note, unit]) => {
    const estimates = grid(page, (rung) => rung.metrics[metric]);
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
