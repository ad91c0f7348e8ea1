// Consistency of the data before and after each run: in words as well as in colour.

import type { Check } from "../analysis";
import { html, type Child } from "../dom";
import { count } from "../format";
import { section, type Page } from "../page";
import { table } from "../table";

/** The section. */
export function checks(page: Page): HTMLElement | null {
  const all = page.analysis.checks;
  if (all.length === 0) return null;
  const broken = all.filter((check) => check.outcome !== "ok");
  const ids = [...new Set(all.map((check) => check.id))];
  const rows = ids.map((id) => {
    const mine = all.filter((check) => check.id === id);
    const moment = (name: string) => summary(page, mine.filter((check) => check.moment === name));
    return { cells: [html("code", {}, id), mine[0]!.title, moment("before"), moment("after")] };
  });
  return section(
    "checks",
    "Consistency of the data",
    broken.length === 0
      ? `All ${count(all.length)} checks passed, before and after every run.`
      : `${count(broken.length)} of ${count(all.length)} checks failed: the results of these runs are invalid.`,
    table(
      [{ heading: "Check" }, { heading: "Condition", wrap: true }, { heading: "Before" }, { heading: "After" }],
      rows,
      "Consistency conditions, further invariants and the client\u2019s commit ledger",
    ),
  );
}

function summary(page: Page, checks: Check[]): Child {
  const broken = checks.filter((check) => check.outcome !== "ok");
  if (checks.length === 0) return html("span", { class: "muted" }, "not run");
  if (broken.length === 0) {
    const runs = checks.length === 1 ? "1 run" : `${count(checks.length)} runs`;
    return [html("span", { class: "status good" }, "\u2713 passed"), " ", html("span", { class: "muted" }, `(${runs})`)];
  }
  return broken.map((check) => {
    const run = page.analysis.runs[check.run];
    const place = run ? `${page.designs[run.design]?.title}, repeat ${run.repeat}: ` : "";
    const text = check.outcome === "violated" ? `violated by ${count(check.rows)} rows` : "could not be checked";
    return html("div", {},
      html("span", { class: "status bad" }, `\u2717 ${place}${text}`),
      check.detail ? html("div", { class: "muted" }, check.detail) : null);
  });
}
