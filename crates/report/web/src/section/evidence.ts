// How good the evidence is: the runs in their order, whether each window was steady, whether the
// emulation kept its times, and what the load generator cost.

import type { Run, RungValidity, Validity, Window } from "../analysis";
import { drawOrder } from "../chart/order";
import { figure } from "../chart/frame";
import { html, type Child } from "../dom";
import { capitalised, clock, count, duration, latency, MISSING, percent, rate, significant, wallTime, users as usersText } from "../format";
import { legend, section, type Page } from "../page";
import { table, tall, type Row } from "../table";
import { isBlockLoad, isBlockStudy, vocabulary } from "../vocabulary";
import { VALIDITY } from "./verdict";

const STEADY = {
  steady: ["\u2713 steady", "good"],
  "not-steady": ["\u2717 not steady", "bad"],
  "too-short": ["too short to judge", "warn"],
} as const;

const STATUS: Record<string, string> = { finished: "good", failed: "bad", interrupted: "bad" };

/** The section. */
export function evidence(page: Page): HTMLElement {
  return section("evidence", "Quality of the evidence", summary(page),
    orderChart(page),
    html("h3", {}, "Runs"), runTable(page), eventTable(page),
    page.analysis.windows.length > 0 ? [html("h3", {}, "Measured windows"), windowTable(page)] : null,
    page.analysis.validity.length > 0 ? [html("h3", {}, "Design or host"), validityTable(page)] : null,
    page.analysis.emulation.length > 0 ? [html("h3", {}, "Emulation"), emulationTable(page)] : null,
    page.analysis.driver.length > 0 ? [html("h3", {}, "Load generator"), driverTable(page)] : null);
}

function summary(page: Page): string {
  const { windows, validity } = page.analysis;
  const found = (state: Window["steady"]["state"]) => windows.filter((window) => window.steady.state === state).length;
  const [steady, short] = [found("steady"), found("too-short")];
  const outcomes = (Object.keys(VALIDITY) as Validity[])
    .map((outcome) => [outcome, validity.filter((row) => row.outcome === outcome).length] as const)
    .filter(([, rungs]) => rungs > 0)
    .map(([outcome, rungs]) => `${count(rungs)} ${outcome}`);
  return [
    steady + short < windows.length || steady > 0
      ? `${count(steady)} of ${count(windows.length)} measured windows were steady.`
      : "",
    short > 0 ? `${count(short)} of ${count(windows.length)} measured windows were too short to judge.` : "",
    outcomes.length > 0 ? `Of ${count(validity.length)} emulated rungs: ${outcomes.join(", ")}.` : "",
  ].filter(Boolean).join(" ");
}

/** Drift of the host over the hours shows as a slope over all runs. */
function orderChart(page: Page): Child {
  const { windows, runs, verdict } = page.analysis;
  const users = verdict.users ?? page.ladder[page.ladder.length - 1];
  const points = windows
    .filter((window) => window.users === users && window.headline.value !== null)
    .map((window) => ({
      order: runs[window.run]!.order,
      design: window.design,
      repeat: runs[window.run]!.repeat,
      estimate: window.headline,
    }));
  // Rounds of the command's block load are parts of one run, and have a section of their own.
  const { workload } = page.analysis;
  if (points.length < 3 || users === undefined || (isBlockLoad(workload) && !isBlockStudy(workload))) return null;
  return [
    legend(page),
    figure({
      title: `${capitalised(page.analysis.workload.rate)} at ${usersText(users)}, run by run`,
      note: "in the order of execution; whiskers show the variation within each window",
      description: "Throughput of every run in the order of execution, to show drift.",
      draw: (width) => drawOrder({ points, designs: page.designs, unit: page.analysis.workload.rate_unit }, width),
    }),
  ];
}

function nameOf(page: Page, run: Run | undefined): string {
  return run ? page.designs[run.design]?.title ?? MISSING : MISSING;
}

function runTable(page: Page): HTMLElement {
  return table(
    [
      { heading: "Order", numeric: true }, { heading: "Design", design: true }, { heading: "Repeat", numeric: true },
      { heading: "Started" }, { heading: "Length", numeric: true }, { heading: "Status" }, { heading: "Remark", wrap: true },
    ],
    page.analysis.runs.map((run) => ({
      className: run.counted ? "" : "muted",
      cells: [
        count(run.order), nameOf(page, run), count(run.repeat),
        html("span", { class: "nowrap" }, wallTime(run.begin_wall_ns)), duration(run.seconds),
        html("span", { class: `status ${STATUS[run.status] ?? "warn"}` }, run.status),
        [run.reason, run.counted ? "" : run.superseded_by === null ? "not counted" : "replaced, not counted"]
          .filter(Boolean).join("; "),
      ],
    })),
    "Every run, in the order of execution",
  );
}

/** What happened in the runs and what the samplers remarked, folded away. */
function eventTable(page: Page): Child {
  const rows = page.analysis.runs.flatMap((run) =>
    [...run.events, ...run.notes].sort((a, b) => a.at_s - b.at_s).map((event): Row => ({
      cells: [
        count(run.order), nameOf(page, run), clock(event.at_s),
        event.until_s === null ? "" : duration(event.until_s - event.at_s), html("code", {}, event.kind), event.text,
      ],
    })));
  if (rows.length === 0) return null;
  return html("details", { class: "disclosure" },
    html("summary", {}, `${count(rows.length)} events and sampler notes`),
    tall(table(
      [
        { heading: "Order", numeric: true }, { heading: "Design", design: true }, { heading: "At", numeric: true },
        { heading: "Duration", numeric: true }, { heading: "Kind" }, { heading: "Event", wrap: true },
      ],
      rows,
      "Events and sampler notes",
    )));
}

function windowTable(page: Page): HTMLElement {
  const rows: Row[] = page.analysis.windows.map((window) => {
    const run = page.analysis.runs[window.run];
    const [word, className] = STEADY[window.steady.state];
    return {
      cells: [
        count(run?.order), nameOf(page, run), count(run?.repeat), count(window.users), rate(window.headline.value),
        html("span", { class: `status ${className}` }, word), window.steady.text,
      ],
    };
  });
  return tall(table(
    [
      { heading: "Order", numeric: true }, { heading: "Design", design: true }, { heading: "Repeat", numeric: true },
      { heading: capitalised(vocabulary().many), numeric: true }, { heading: page.analysis.workload.unit, numeric: true }, { heading: "Steady" },
      { heading: "Details", wrap: true },
    ],
    rows,
    "Whether throughput was steady in each measured window",
  ));
}

/** The host's part in the result of each emulated rung. */
function validityTable(page: Page): HTMLElement {
  const excess = (row: RungValidity, name: string): Child => {
    const found = row.excess.find((entry) => entry.class === name)?.excess_per_transaction_ns ?? null;
    return found === null ? MISSING : `${found < 0 ? "\u2212" : "+"}${latency(Math.abs(found))}`;
  };
  const factors = (of: RungValidity["throughput"]): Child =>
    of === null ? MISSING : `${significant(of.low)} to ${significant(of.high)}`;
  return tall(table(
    [
      { heading: capitalised(vocabulary().many), numeric: true }, { heading: "Design", design: true }, { heading: "Outcome" },
      { heading: "Log", numeric: true }, { heading: "Reads", numeric: true },
      { heading: "Throughput \u00d7", numeric: true }, { heading: "Of ceiling", numeric: true },
      { heading: "Details", wrap: true },
    ],
    page.analysis.validity.map((row) => {
      const [word, className] = VALIDITY[row.outcome];
      return {
        cells: [
          count(row.users), page.designs[row.design]?.title ?? MISSING, html("span", { class: `status ${className}` }, word),
          excess(row, "log"), excess(row, "read"), factors(row.throughput),
          percent(row.ceiling?.reached ?? null), row.text,
        ],
      };
    }),
    "What log and reads took beyond their model, per transaction; what throughput may have to be multiplied by; how near it comes to the host's ceiling",
  ));
}

function emulationTable(page: Page): HTMLElement {
  return table(
    [
      { heading: "Order", numeric: true }, { heading: "Design", design: true },
      { heading: "Modelled p50", numeric: true }, { heading: "Modelled p99", numeric: true },
      { heading: "Lateness p50", numeric: true }, { heading: "Lateness p99", numeric: true },
      { heading: "Host slower than device", numeric: true },
    ],
    page.analysis.emulation.map((entry) => {
      const run = page.analysis.runs[entry.run];
      return {
        cells: [
          count(run?.order), nameOf(page, run),
          latency(entry.modelled_p50_ns), latency(entry.modelled_p99_ns),
          latency(entry.lateness_p50_ns), latency(entry.lateness_p99_ns),
          percent(entry.host_limited_share),
        ],
      };
    }),
    "Modelled latency and lateness of the emulated datastore",
  );
}

function driverTable(page: Page): HTMLElement {
  return table(
    [
      { heading: capitalised(vocabulary().many), numeric: true }, { heading: "Design", design: true }, { heading: "Cores used", numeric: true },
      { heading: "Share of host", numeric: true }, { heading: `CPU-seconds per 10,000 ${page.analysis.workload.counted}`, numeric: true },
      { heading: "Dispatch lag p99", numeric: true }, { heading: "Bottleneck?" },
    ],
    [...page.analysis.driver].sort((a, b) => a.users - b.users || a.design - b.design).map((entry) => {
      const [word, className] = entry.saturated === null ? ["not known", "warn"] : entry.saturated ? ["yes: the rung is invalid", "bad"] : ["no", "good"];
      return {
        className: entry.design === 0 ? "group-start" : "",
        cells: [
          count(entry.users), page.designs[entry.design]?.title ?? MISSING, significant(entry.cores),
          percent(entry.share_of_host), significant(entry.cpu_seconds_per_10000), latency(entry.dispatch_lag_p99_ns),
          html("span", { class: `status ${className}` }, word),
        ],
      };
    }),
    "Cost of the load generator",
  );
}
