// Warnings and remarks: what a reader must know before believing the numbers.

import type { Finding, Severity } from "../analysis";
import { html } from "../dom";
import { capitalised, users } from "../format";
import { section, type Page } from "../page";

const SEVERITY: Record<Severity, [string, string, number]> = {
  invalid: ["Invalid", "bad", 0],
  warning: ["Warning", "warn", 1],
  information: ["Note", "", 2],
};

/** The section: grave findings in full, remarks folded. */
export function findings(page: Page): HTMLElement {
  const all = [...page.analysis.findings].sort((a, b) => SEVERITY[a.severity][2] - SEVERITY[b.severity][2]);
  const grave = all.filter((finding) => finding.severity !== "information");
  const remarks = all.filter((finding) => finding.severity === "information");
  return section(
    "warnings",
    grave.length === 0 ? "No warnings" : grave.length === 1 ? "1 warning" : `${grave.length} warnings`,
    grave.length === 0 ? "No problems were found with these results." : null,
    grave.length > 0 ? list(page, grave) : null,
    remarks.length > 0
      ? html("details", { class: "disclosure" },
        html("summary", {}, remarks.length === 1 ? "1 note" : `${remarks.length} notes`), list(page, remarks))
      : null,
  );
}

function list(page: Page, findings: Finding[]): HTMLElement {
  return html("ul", { class: "findings" }, findings.map((finding) => {
    const [word, className] = SEVERITY[finding.severity];
    return html("li", {},
      html("span", { class: `badge ${className}` }, word),
      html("div", {},
        html("p", {}, capitalised(finding.text)),
        html("p", { class: "muted" }, where(page, finding), html("code", {}, finding.code))));
  }));
}

function where(page: Page, finding: Finding): string {
  const run = finding.run === null ? undefined : page.analysis.runs[finding.run];
  const design = finding.design ?? run?.design;
  const parts = [
    design === undefined ? "" : page.designs[design]?.title,
    run ? `repeat ${run.repeat}` : "",
    finding.users === null ? "" : users(finding.users),
  ].filter(Boolean);
  return parts.length > 0 ? `${parts.join(", ")}. ` : "";
}
