// What is looked up rather than read: settings, sources, host, method.

import { html, type Child } from "../dom";
import { count, duration, words } from "../format";
import { section, type Page } from "../page";
import { facts, searchableTable, table, tall } from "../table";

/** Every setting with its origin. */
export function settings(page: Page): HTMLElement {
  return section("settings", "Settings", "Every value of the plan, and where it comes from.",
    searchableTable(
      [{ heading: "Setting", wrap: true }, { heading: "Value", wrap: true }, { heading: "Design", design: true }, { heading: "Of" }, { heading: "Origin" }],
      page.analysis.settings.map((setting) => ({
        cells: [
          html("code", {}, setting.path),
          html("span", { class: "code" }, setting.value),
          setting.design === null ? "all" : page.designs[setting.design]?.title ?? "",
          words(setting.group),
          setting.origin,
        ],
      })),
      "Settings",
    ));
}

const STATUS: Record<string, string> = { available: "good", degraded: "warn", absent: "bad" };

/** Which sources could be read, and why not. */
export function sources(page: Page): HTMLElement {
  const { sources: list, runs } = page.analysis;
  return section("sources", "Sources", "What was recorded, and what could not be.",
    tall(table(
      [
        { heading: "Source" }, { heading: "Layer" }, { heading: "Run" }, { heading: "Status" }, { heading: "Series", numeric: true },
        { heading: "Ticks", numeric: true }, { heading: "Longest gap", numeric: true }, { heading: "Reason", wrap: true },
      ],
      list.map((source) => {
        const run = runs[source.run];
        return {
          cells: [
            html("code", {}, source.name), words(source.layer),
            run ? `${page.designs[run.design]?.title}, repeat ${run.repeat}` : "all",
            html("span", { class: `status ${STATUS[source.status] ?? ""}` }, source.status),
            count(source.series), count(source.ticks), duration(source.longest_gap_s), source.reason ?? "",
          ],
        };
      }),
      "Sources of the time lines",
    )));
}

function flat(value: unknown, prefix = ""): [string, Child][] {
  if (value === null || typeof value !== "object") return [[prefix, String(value)]];
  if (Array.isArray(value) && value.every((item) => typeof item !== "object")) {
    return [[prefix, value.join(", ")]];
  }
  return Object.entries(value).flatMap(([key, inner]) => flat(inner, prefix ? `${prefix}.${key}` : key));
}

/** The host and the programs. */
export function host(page: Page): HTMLElement {
  const list = (value: unknown) => {
    return facts(flat(value).map(([name, text]) => [words(name), text]), "list");
  };
  return section("host", "Host and software", null, list(page.analysis.host), html("h3", {}, "Software"), list(page.analysis.software));
}

/** How the numbers were made and what they mean. */
export function method(page: Page): HTMLElement {
  const { method: text, study } = page.analysis;
  return section("method", "Method and definitions", null,
    html("dl", { class: "definitions" }, text.definitions.map(([name, meaning]) =>
      html("div", {}, html("dt", {}, name), html("dd", {}, meaning)))),
    text.metrics.length > 0
      ? html("details", { class: "disclosure" },
        html("summary", {}, `How each of the ${count(text.metrics.length)} measures is computed`),
        table(
          [{ heading: "Measure" }, { heading: "Name in files" }, { heading: "Unit" }, { heading: "Definition", wrap: true }],
          text.metrics.map((metric) => ({
            cells: [metric.title, html("code", {}, metric.name), metric.unit, metric.definition],
          })),
          "Measures",
        ))
      : null,
    html("h3", {}, "Derived workload"),
    html("p", {}, text.disclaimer),
    html("ul", {}, text.deviations.map((deviation) => html("li", {}, deviation))),
    facts([
      ["Seed", html("code", {}, study.seed)],
      ["Workload identity", html("code", {}, study.identity)],
    ]));
}
