// The page of a report, or of an atlas: reads the data in it and replaces the plain text of the answer, which
// html.rs wrote for browsers without script, by the full report.

import "uplot/dist/uPlot.min.css";
import "./style/theme.css";
import "./style/page.css";
import "./style/chart.css";
import "./style/print.css";

import { atlasPage } from "./atlas";
import { startFrames } from "./chart/frame";
import { contents } from "./contents";
import { isAtlas, readAnalysis, readAtlas } from "./data";
import { html } from "./dom";
import { masthead } from "./masthead";
import { openPage, type Page } from "./page";
import { axes } from "./section/axes";
import { backups } from "./section/backups";
import { blockLoads } from "./section/blockLoads";
import { checks } from "./section/checks";
import { curves } from "./section/curves";
import { databases } from "./section/databases";
import { designs } from "./section/designs";
import { distribution } from "./section/distribution";
import { downloads } from "./section/downloads";
import { evidence } from "./section/evidence";
import { findings } from "./section/findings";
import { numbers } from "./section/numbers";
import { published } from "./section/published";
import { rateCurves } from "./section/rateCurves";
import { resync } from "./section/resync";
import { host, method, settings, sources } from "./section/reference";
import { searches } from "./section/searches";
import { throughput } from "./section/throughput";
import { timelines } from "./section/timelines";
import { verdict } from "./section/verdict";
import { why } from "./section/why";
import { startTheme } from "./theme";
import { speakOf } from "./vocabulary";

type Section = (page: Page) => HTMLElement | null;

const SECTIONS: readonly Section[] = [
  verdict, why, findings, axes, throughput, databases, backups, resync, searches, blockLoads, rateCurves, curves, distribution, timelines, numbers, published, evidence,
  checks, designs, settings, sources, host, method, downloads,
];

/** What makes the numbers invalid goes before what explains them. */
function inOrder(page: Page): readonly Section[] {
  const invalid = page.analysis.findings.some((finding) => finding.severity === "invalid");
  if (!invalid) return SECTIONS;
  return [verdict, findings, ...SECTIONS.filter((make) => make !== verdict && make !== findings)];
}

function show(page: Page): void {
  const main = html("main", { id: "report" });
  for (const make of inOrder(page)) {
    const element = make(page);
    if (element) main.append(element);
  }
  document.getElementById("fallback")?.remove();
  document.body.append(
    html("a", { class: "skip", href: "#verdict" }, "Skip to the answer"),
    masthead(page),
    html("div", { class: "columns" }, contents(main), main),
  );
}

async function start(): Promise<void> {
  try {
    if (isAtlas()) {
      const atlas = await readAtlas();
      startFrames();
      atlasPage(atlas);
      document.documentElement.dataset["state"] = "ready";
      return;
    }
    const page = openPage(await readAnalysis());
    speakOf(page.analysis.workload);
    startFrames();
    show(page);
    document.documentElement.dataset["state"] = "ready";
  } catch (error) {
    // The plain answer stays; the reader learns why there is no more.
    const text = error instanceof Error ? error.message : String(error);
    document.body.prepend(html("p", { class: "status bad", role: "alert" }, `The charts cannot be shown: ${text}.`));
    document.documentElement.dataset["state"] = "failed";
    throw error;
  }
}

startTheme();
if (document.readyState === "loading") addEventListener("DOMContentLoaded", () => void start());
else void start();
