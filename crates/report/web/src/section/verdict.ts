// The answer: one sentence, how much, how sure, and what kind of evidence it rests on.

import type { Answer, Aspect, Confidence, Evidence, Validity, Verdict } from "../analysis";
import { html, type Child } from "../dom";
import { capitalised, count, MISSING, wallTime } from "../format";
import type { Page } from "../page";
import { facts } from "../table";
import { vocabulary } from "../vocabulary";
import { comparisons } from "./comparisons";

function meaning(evidence: Evidence): string {
  const { load } = vocabulary();
  return {
    measured: `${load} on a real datastore, in real time`,
    emulated: `${load} on modelled devices, in real time`,
    simulated: "virtual time: no real database or device",
    mixed: "different kinds of evidence; see each design",
  }[evidence];
}

const CONFIDENCE: Record<Confidence, [string, string]> = {
  high: ["high confidence", "good"],
  medium: ["medium confidence", "warn"],
  low: ["low confidence", "warn"],
  none: ["no conclusion", "bad"],
};

const ANSWER: Record<Answer, [string, string]> = {
  winner: ["difference shown", "good"],
  equivalent: ["the same within 5 %", "good"],
  "no-difference-shown": ["no difference shown", "warn"],
  "not-repeated": ["not repeated", "warn"],
  "host-limited": ["this host was measured", "bad"],
  "not-comparable": ["not comparable", "bad"],
  invalid: ["invalid", "bad"],
  "single-design": ["one design", ""],
  "no-data": ["no data yet", "warn"],
};

/** What may be read from the numbers of an emulated design. */
export const VALIDITY: Record<Validity, [string, string]> = {
  valid: ["valid", "good"],
  bounded: ["bounded", "warn"],
  unknown: ["validity unknown", "warn"],
  "host-limited": ["host-limited", "bad"],
};

function validityBadge(validity: Validity | null): Child {
  if (validity === null) return null;
  const [text, className] = VALIDITY[validity];
  return html("span", { class: `badge ${className}`, title: "whether the designs or this host were measured" }, text);
}

/** The badge of a kind of evidence. */
export function evidenceBadge(evidence: Evidence): HTMLElement {
  return html("span", { class: `badge ${evidence}`, title: meaning(evidence) }, evidence);
}

/** The kinds of evidence of the designs, in the order in which these first have them. */
export function evidenceKinds(page: Page): Evidence[] {
  const { designs, study } = page.analysis;
  const kinds = [...new Set(designs.map((design) => design.evidence))];
  return kinds.length > 0 ? kinds : [study.evidence];
}

/** The badge of time dilation; nothing in real time. */
export function dilationBadge(page: Page): HTMLElement | null {
  const factor = page.analysis.study.time_dilation;
  if (factor === 1) return null;
  const title = `everything took ${factor} times as long; all times are the design's own`;
  return html("span", { class: "badge emulated", title }, `time dilation ${factor}`);
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
    { class: "verdict", id: "verdict", "aria-labelledby": "verdict-title", "data-contents": "Answer" },
    html("p", { class: "question" }, study.question),
    html("h1", { class: "headline", id: "verdict-title" }, quietIntervals(answer.headline)),
    html("p", { class: "badges" },
      html("span", { class: `badge ${className}` }, word),
      confidenceBadge(answer.confidence),
      validityBadge(answer.validity),
      evidenceKinds(page).map((kind) => [evidenceBadge(kind), html("span", { class: "muted" }, meaning(kind))]),
      dilationBadge(page),
      warningsLink(page)),
    supported(answer),
    comparisons(page, "headline"),
    described(page),
    facts(keyFacts(page)),
  );
}

/** What the sentences are about, in the order in which a reader asks. */
const ASPECTS: readonly [Aspect, string][] = [
  ["how-much", "How much"], ["why", "Why"], ["how-sure", "How sure"], ["savings", "What it saves"], ["published", "Published"],
];

/** By how much, why and how sure: a group of sentences for each question. */
function supported(answer: Verdict): Child {
  const groups = ASPECTS.flatMap(([aspect, title]) => {
    const sentences = answer.support.filter((_, place) => answer.support_aspects[place] === aspect);
    const lines = sentences.map((sentence): Child => html("p", {}, quietIntervals(sentence)));
    if (aspect === "how-sure") lines.push(reasons(answer.confidence_reasons));
    return lines.some((line) => line !== null) ? [html("div", {}, html("dt", {}, title), html("dd", {}, lines))] : [];
  });
  return groups.length > 0 ? html("dl", { class: "answers" }, groups) : null;
}

/** What each design is: sentences and charts use its title only. */
function described(page: Page): Child {
  const designs = page.analysis.designs.filter((design) => design.description !== "");
  if (designs.length === 0) return null;
  return html("ul", { class: "support" }, designs.map((design) =>
    html("li", { class: "muted" }, html("b", {}, design.title), `: ${design.description}`)));
}

function warningsLink(page: Page): Child {
  const grave = page.analysis.findings.filter((finding) => finding.severity !== "information").length;
  if (grave === 0) return null;
  return html("a", { href: "#warnings" }, grave === 1 ? "1 warning" : `${count(grave)} warnings`);
}

function reasons(list: string[]): Child {
  if (list.length === 0) return null;
  return html("p", { class: "muted" }, `Confidence: ${list.join("; ")}.`);
}

function keyFacts(page: Page): [string, Child][] {
  const { study, runs } = page.analysis;
  const counted = runs.filter((run) => run.counted).length;
  const repeats = new Set(runs.filter((run) => run.counted).map((run) => run.repeat)).size;
  return [
    ["Runs counted", `${count(counted)} of ${count(runs.length)}`],
    ["Repeats", count(repeats)],
    [capitalised(vocabulary().axis), page.ladder.map(count).join(", ") || MISSING],
    ["Started", wallTime(study.started_wall_ns)],
    ...(study.status === "finished" ? [] : [["Execution", html("span", { class: "status warn" }, study.status)] as [string, Child]]),
  ];
}

/** Intervals in brackets step back behind the words around them. */
function quietIntervals(sentence: string): Child {
  return sentence.split(/(\[[^\]]*\])/).map((part) =>
    part.startsWith("[") ? html("span", { class: "interval" }, part) : part);
}
