// The data of the page as files, made in the browser.

import { rungsCsv, timelinesCsv } from "../csv";
import { html } from "../dom";
import { section, type Page } from "../page";

function save(name: string, type: string, content: string): void {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = html("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** The section. */
export function downloads(page: Page): HTMLElement {
  const name = page.analysis.study.name;
  const button = (label: string, file: string, type: string, make: () => string) =>
    html("button", { type: "button", onclick: () => save(`${name}-${file}`, type, make()) }, label);
  const element = section(
    "data", "Data", "The data of this page as files. The record next to it holds every raw sample.",
    html("div", { class: "controls" },
      button("Rungs as CSV", "rungs.csv", "text/csv", () => rungsCsv(page.analysis)),
      button("Timelines as CSV", "timelines.csv", "text/csv", () => timelinesCsv(page.analysis)),
      button("Everything as JSON", "analysis.json", "application/json", () => JSON.stringify(page.analysis))));
  element.classList.add("downloads");
  return element;
}
