// What is looked up rather than read: settings, sources, host, method.

import type { Source } from "../analysis";
import { html } from "../dom";
import { count, duration, MISSING, words } from "../format";
import { section, type Page } from "../page";
import { readable } from "../readable";
import { facts, searchableTable, table } from "../table";

/** Every setting with its origin. */
export function settings(page: Page): HTMLElement {
  return section("settings", "Settings", "Every value of the plan and its origin.",
    searchableTable(
      [{ heading: "Setting", wrap: true }, { heading: "Value", wrap: true }, { heading: "Design", design: true }, { heading: "Group" }, { heading: "Origin" }],
      page.analysis.settings.map((setting) => ({
        cells: [
          html("code", {}, setting.path),
          html("span", { class: "code" }, readable(setting.path, setting.value)),
          setting.design === null ? "all" : page.designs[setting.design]?.title ?? "",
          words(setting.group),
          setting.origin,
        ],
      })),
      "Settings",
    ));
}

const STATUS: Record<string, string> = { available: "good", degraded: "warn", absent: "bad" };

/** Which sources could be read, and why not. Runs in which a source fared the same share a line. */
export function sources(page: Page): HTMLElement {
  const lines = new Map<string, Source[]>();
  for (const source of page.analysis.sources) {
    const key = [source.name, source.status, source.reason].join("\n");
    lines.set(key, [...(lines.get(key) ?? []), source]);
  }
  const runs = new Set(page.analysis.sources.map((source) => source.run)).size;
  return section("sources", "Sources", "What was recorded, and what was unavailable.",
    table(
      [
        { heading: "Source" }, { heading: "Layer" }, { heading: "Status" }, { heading: "Runs" }, { heading: "Series", numeric: true },
        { heading: "Ticks", numeric: true }, { heading: "Longest gap", numeric: true }, { heading: "Reason", wrap: true },
      ],
      [...lines.values()].map((same) => {
        const first = same[0]!;
        const gaps = same.flatMap((source) => (source.longest_gap_s === null ? [] : [source.longest_gap_s]));
        return {
          cells: [
            html("code", {}, first.name), words(first.layer),
            html("span", { class: `status ${STATUS[first.status] ?? ""}` }, first.status),
            same.length === runs ? "all" : same.map((source) => count(page.analysis.runs[source.run]?.order)).join(", "),
            count(Math.max(...same.map((source) => source.series))),
            count(same.reduce((sum, source) => sum + source.ticks, 0)),
            gaps.length > 0 ? duration(Math.max(...gaps)) : MISSING,
            first.reason ?? "",
          ],
        };
      }),
      "Sources of the timelines",
    ));
}

function flat(value: unknown, prefix = ""): [string, string][] {
  if (value === null || typeof value !== "object") return [[prefix, value === null ? MISSING : String(value)]];
  if (Array.isArray(value) && value.every((item) => typeof item !== "object")) {
    return [[prefix, value.join(", ")]];
  }
  return Object.entries(value).flatMap(([key, inner]) => flat(inner, prefix ? `${prefix}.${key}` : key));
}

/** The host and the programs. */
export function host(page: Page): HTMLElement {
  const list = (value: unknown) => {
    return facts(flat(value).map(([name, text]) => [name, readable(name, text)]), "list");
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
