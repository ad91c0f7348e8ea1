// Why: where the time of a session goes in each design, what limits it, and what was ruled out.

import type { Bottleneck, BudgetPart, CausalCheck, Reaction } from "../analysis";
import { drawBudget, type BudgetBar } from "../chart/budget";
import { clear, figure } from "../chart/frame";
import { segments, select } from "../control";
import { html, type Child } from "../dom";
import { capitalised, latency, percent, uncapitalised, users as usersText, words } from "../format";
import { section, type Page } from "../page";
import { table } from "../table";
import { vocabulary } from "../vocabulary";
import { confidenceBadge } from "./verdict";

const TITLES: Record<string, string> = {
  driver: "Load generator",
  "driver-limit": "Load generator's CPU limit",
  client: "Client",
  "client-network": "Client's network",
  cpu: "Server CPU",
  "run-queue": "Waiting for CPU",
  "cpu-limit": "Server's CPU limit",
  "host-io": "Host's share of I/O",
  log: "Log writes",
  "log-behind-data": "Log behind data writes",
  "data-read": "Data reads",
  "data-write": "Data writes",
  lock: "Locks",
  latch: "Latches",
  other: "Other",
};

/** The order of the classes in every bar: from the client through the server to the storage. */
const ORDER = Object.keys(TITLES);

type Measure = "share" | "per transaction";

/** Title of a class of time or of a limit. */
export function className(key: string): string {
  return TITLES[key] ?? words(key);
}

/** The section. */
export function why(page: Page): HTMLElement | null {
  const list = page.analysis.bottlenecks;
  if (list.length === 0) return null;
  const ladder = [...new Set(list.map((bottleneck) => bottleneck.users))].sort((a, b) => a - b);
  const asked = page.analysis.verdict.users;
  let users = asked !== null && ladder.includes(asked) ? asked : ladder[ladder.length - 1]!;
  let measure: Measure = "share";
  const body = html("div", {});
  const draw = () => {
    clear(body);
    const shown = page.designs.map((_, design) =>
      list.find((bottleneck) => bottleneck.design === design && bottleneck.users === users));
    body.append(budget(page, shown, measure), cards(page, shown));
  };
  draw();
  return section("why", "Bottlenecks", "Where database sessions spend their time, and what limits each design.",
    html("div", { class: "controls" },
      select("At", ladder.map((value) => ({ value, label: usersText(value) })), users, (value) => {
        users = value;
        draw();
      }),
      segments<Measure>("Measure",
        [{ value: "share", label: "Share of time" }, { value: "per transaction", label: `Per ${vocabulary().request}` }],
        measure, (value) => {
          measure = value;
          draw();
        })),
    body);
}

function inOrder(parts: BudgetPart[]): BudgetPart[] {
  const place = (part: BudgetPart) => {
    const index = ORDER.indexOf(part.class);
    return index < 0 ? ORDER.length : index;
  };
  return [...parts].sort((a, b) => place(a) - place(b));
}

function budget(page: Page, shown: (Bottleneck | undefined)[], measure: Measure): HTMLElement | string {
  const bars: BudgetBar[] = shown.flatMap((bottleneck, design) => {
    if (!bottleneck || bottleneck.budget.length === 0) return [];
    const perTransaction = bottleneck.budget.reduce((sum, part) => sum + (part.per_transaction_ns ?? 0), 0);
    return [{
      title: page.designs[design]!.title,
      note: perTransaction > 0 ? `${latency(perTransaction)} per ${vocabulary().request}` : "",
      parts: inOrder(bottleneck.budget).map((part) => ({
        key: part.class,
        title: className(part.class),
        share: part.share,
        detail: [
          `${percent(part.share)} of the time`,
          part.per_transaction_ns === null ? "" : `${latency(part.per_transaction_ns)} of the mean ${vocabulary().request}`,
        ].filter(Boolean).join(", "),
        value: measure === "share" ? part.share : part.per_transaction_ns ?? 0,
      })),
    }];
  });
  if (bars.length === 0) return html("p", { class: "muted" }, "No session samples were recorded, so there is no time budget.");
  const classes = ORDER.filter((key) =>
    bars.some((bar) => bar.parts.some((part) => part.key === key && part.share >= 0.003)));
  return html("div", {},
    figure({
      title: "Time budget of a session",
      note: measure === "share" ? "share of its time" : `mean ${vocabulary().request}`,
      description: bars.map((bar) =>
        `${bar.title}: ${bar.parts.map((part) => `${part.title} ${percent(part.share)}`).join(", ")}.`).join(" "),
      draw: (width) =>
        drawBudget(
          { bars, unit: measure === "share" ? "share" : "ns", limit: measure === "share" ? 1 : undefined },
          width,
        ),
    }),
    html("ul", { class: "legend" }, classes.map((key) =>
      html("li", {}, html("span", { class: `box time-${key}` }), className(key)))));
}

function cards(page: Page, shown: (Bottleneck | undefined)[]): HTMLElement {
  return html("div", { class: "design-cards" }, shown.map((bottleneck, design) =>
    bottleneck
      ? html("article", {},
        html("h3", {}, page.designs[design]!.title),
        html("p", {}, capitalised(bottleneck.sentence), " ", confidenceBadge(bottleneck.confidence)),
        page.analysis.causal_checks
          .filter((check) => check.design === design && check.users === bottleneck.users)
          .map(causalCheck),
        lockHolders(bottleneck),
        ruledOut(bottleneck),
        gates(bottleneck))
      : null));
}

const RESOURCES: Record<string, string> = {
  log: "Log writes and flushes",
  "data-read": "Data reads",
  "data-write": "Data writes",
  network: "Cluster network",
  cpu: "Server CPU",
  client: "Load generator CPU",
  connections: "Use of shared connections",
};

const AGREEMENT = {
  confirmed: ["\u2713 confirmed", "good"],
  "not-confirmed": ["observed, not confirmed", "warn"],
  "too-short": ["too short to tell", "warn"],
  observed: ["observed only", ""],
  "by-experiment": ["by experiment", ""],
} as const;

/** What the experiment says: each resource made slower under load, and what throughput did. */
function causalCheck(check: CausalCheck): Child {
  const [text, status] = AGREEMENT[check.agreement];
  const whatIf = check.resources.some((resource) => resource.what_if !== null);
  const decimals = ({ value, low, high }: Reaction) =>
    `${value.toFixed(2)} [${low.toFixed(2)}, ${high.toFixed(2)}]`;
  const change = (ratio: number) => `${ratio < 1 ? "\u2212" : "+"}${percent(Math.abs(ratio - 1), 1)}`;
  const gain = (ratio: Reaction) => `${change(ratio.value)} [${change(ratio.low)}, ${change(ratio.high)}]`;
  return html("div", {},
    html("p", {}, html("span", { class: `status ${status}` }, text), " ", capitalised(check.sentence), "."),
    table(
      [
        { heading: "Slowed" },
        { heading: "Throughput lost, % per 1 %" },
        { heading: "p95 gained, % per 1 %" },
        ...(whatIf ? [{ heading: "If 20 % faster: predicted" }, { heading: "Measured" }] : []),
      ],
      check.resources.map((resource) => ({
        cells: [
          RESOURCES[resource.resource] ?? words(resource.resource),
          decimals(resource.throughput),
          resource.p95 ? decimals(resource.p95) : "\u2013",
          ...(whatIf
            ? [
              resource.what_if ? gain(resource.what_if.predicted) : "\u2013",
              resource.what_if?.measured ? gain(resource.what_if.measured) : "\u2013",
            ]
            : []),
        ],
      })),
      "Causal check",
    ),
    check.not_perturbed.length === 0
      ? null
      : html("p", { class: "muted" },
        `Not slowed, so only observed: ${check.not_perturbed
          .map((entry) => `${uncapitalised(RESOURCES[entry.resource] ?? words(entry.resource))} (${entry.reason})`)
          .join("; ")}.`));
}

function lockHolders(bottleneck: Bottleneck): Child {
  if (bottleneck.lock_holders.length === 0) return null;
  const list = bottleneck.lock_holders
    .filter((part) => part.share >= 0.01)
    .map((part) => `${uncapitalised(className(part.class))} ${percent(part.share, 0)}`);
  return html("p", { class: "muted" }, `Lock holders, while other sessions waited, were in: ${list.join(", ")}.`);
}

function ruledOut(bottleneck: Bottleneck): Child {
  if (bottleneck.ruled_out.length === 0) return null;
  return table(
    [{ heading: "Resource" }, { heading: "Reason" }],
    bottleneck.ruled_out.map((entry) => ({ cells: [className(entry.class), entry.reason] })),
    "Ruled out",
  );
}

const GATE = {
  passed: ["\u2713 passed", "good"],
  soft: ["marginal", "warn"],
  failed: ["\u2717 failed", "bad"],
  "not-judged": ["not judged", ""],
} as const;

function gates(bottleneck: Bottleneck): Child {
  if (bottleneck.gates.length === 0) return null;
  const failed = bottleneck.gates.filter((gate) => gate.state === "failed").length;
  const soft = bottleneck.gates.filter((gate) => gate.state === "soft").length;
  const passed = bottleneck.gates.filter((gate) => gate.state === "passed").length;
  const counts = [`${passed} passed`, soft ? `${soft} marginal` : "", failed ? `${failed} failed` : ""];
  return html("details", { class: "disclosure" },
    html("summary", {}, `Conditions for a verdict: ${counts.filter(Boolean).join(", ")}`),
    table(
      [{ heading: "Condition" }, { heading: "Result" }, { heading: "Measured" }],
      bottleneck.gates.map((gate) => {
        const [text, status] = GATE[gate.state];
        return { cells: [`${gate.id} ${gate.title}`, html("span", { class: `status ${status}` }, text), gate.text] };
      }),
      "Conditions for a verdict",
    ));
}
