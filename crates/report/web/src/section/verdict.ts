// The answer: one sentence, how much, how sure, and what kind of evidence it rests on.

import type { Answer, Comparison, Confidence, Evidence } from "../analysis";
import { drawForest, type ForestRow } from "../chart/forest";
import { figure } from "../chart/frame";
import { html, type Child } from "../dom";
import { change, count, interval, MISSING, ratio, wallTime } from "../format";
import type { Page } from "../page";
import { facts } from "../table";

const EVIDENCE: Record<Evidence, string> = {
  measured: "a real database on a real datastore, in real time",
  emulated: "a real database on modelled devices, in real time",
  simulated: "virtual time: no database, no device",
};

const CONFIDENCE: Record<Confidence, [string, string]> = {
  high: ["high confidence", "good"],
  medium: ["medium confidence", "warn"],
  low: ["low confidence", "warn"],
  none: ["no conclusion", "bad"],
};

const ANSWER: Record<Answer, [string, string]> = {
  winner: ["difference shown", "good"],
  equivalent: ["equal within the margin", "good"],
  "no-difference-shown": ["no difference shown", "warn"],
  "not-repeated": ["not repeated", "warn"],
  "not-comparable": ["not comparable", "bad"],
  invalid: ["invalid", "bad"],
  "single-design": ["one design", ""],
  "no-data": ["no data yet", "warn"],
};

/** The margin within which designs count as equal (TOST), as statistics of the report use it. */
const EQUIVALENCE = 0.03;

/** The badge of a kind of evidence. */
export function evidenceBadge(evidence: Evidence): HTMLElement {
  return html("span", { class: `badge ${evidence}`, title: EVIDENCE[evidence] }, evidence);
}

/** The badge of a degree of confidence. */
export function confidenceBadge(confidence: Confidence): HTMLElement {
  const [text, className] = CONFIDENCE[confidence];
  return html("span", { class: `badge ${className}` }, text);
}

/** The section. */
export function verdict(page: Page): HTMLElement {
  const { study, verdict: answer } = page.analysis;
  const [word, className] = ANSWER[answer.answer];
  return html(
    "section",
    { class: "verdict", id: "verdict", "aria-labelledby": "verdict-title" },
    html("p", { class: "question" }, study.question),
    html("h1", { class: "headline", id: "verdict-title" }, answer.headline),
    html("p", { class: "badges" },
      html("span", { class: `badge ${className}` }, word),
      confidenceBadge(answer.confidence),
      evidenceBadge(study.evidence),
      html("span", { class: "muted" }, EVIDENCE[study.evidence])),
    answer.support.map((sentence) => html("p", { class: "support" }, sentence)),
    reasons(answer.confidence_reasons),
    comparisons(page),
    facts(keyFacts(page)),
  );
}

function reasons(list: string[]): Child {
  if (list.length === 0) return null;
  return html("p", { class: "support muted" }, `How sure: ${list.join("; ")}.`);
}

function keyFacts(page: Page): [string, Child][] {
  const { study, runs } = page.analysis;
  const counted = runs.filter((run) => run.counted).length;
  const repeats = new Set(runs.filter((run) => run.counted).map((run) => run.repeat)).size;
  return [
    ["Runs counted", `${count(counted)} of ${count(runs.length)}`],
    ["Repeats", count(repeats)],
    ["Virtual users", page.ladder.map(count).join(", ") || MISSING],
    ["Started", wallTime(study.started_wall_ns)],
    ...(study.status === "finished" ? [] : [["Execution", html("span", { class: "status warn" }, study.status)] as [string, Child]]),
  ];
}

function comparisons(page: Page): Child {
  const main = page.analysis.comparisons.filter((c) => c.metric === "nopm" && c.ratio !== null);
  const pairs = [...new Set(main.map((c) => `${c.a} ${c.b}`))];
  return pairs.map((pair) => forest(page, main.filter((c) => `${c.a} ${c.b}` === pair)));
}

/** The comparisons of one pair, turned so that the design that is ahead overall stands above the line. */
function forest(page: Page, list: Comparison[]): HTMLElement {
  const { a, b } = list[0]!;
  const winner = page.analysis.verdict.winner;
  const mean = list.reduce((sum, c) => sum + Math.log(c.ratio ?? 1), 0);
  const turned = winner === a || (winner !== b && mean < 0);
  const top = page.designs[turned ? a : b]!;
  const base = page.designs[turned ? b : a]!;
  return figure({
    title: `${top.title} against ${base.title}`,
    note: "ratio of new orders per minute with 95 % confidence interval; the grey band is too small to matter",
    description: list.map((comparison) => comparison.text).join(" "),
    draw: (width) =>
      drawForest(
        {
          rows: list.map((comparison) => forestRow(page, comparison, turned)),
          equivalence: EQUIVALENCE,
          sides: [`\u2190 ${base.title} ahead`, `${top.title} ahead \u2192`],
        },
        width,
      ),
  });
}

function forestRow(page: Page, comparison: Comparison, turned: boolean): ForestRow {
  const turn = (value: number | null) => (value === null ? null : turned ? 1 / value : value);
  const value = turn(comparison.ratio) ?? 1;
  const [low, high] = turned
    ? [turn(comparison.high), turn(comparison.low)]
    : [comparison.low, comparison.high];
  const ahead = comparison.outcome === "better" ? comparison.b : comparison.outcome === "worse" ? comparison.a : null;
  const label = comparison.users === null ? "each at its peak" : `${count(comparison.users)} users`;
  return {
    label,
    value,
    low,
    high,
    className: ahead === null ? "" : page.designs[ahead]!.look.className,
    describe: () => [
      html("div", { class: "readout-heading" }, `${label}: ${change(value)}`),
      html("div", {}, comparison.text),
      html("div", { class: "muted" },
        low === null ? "a single pair of runs: no interval" : `${interval(low, high, ratio)}, ${count(comparison.pairs)} pairs of runs`),
    ],
  };
}
