// How latency is distributed: the percentiles that a mean hides.

import { drawDistribution, type View } from "../chart/percentiles";
import { clear, figure } from "../chart/frame";
import { segments, select } from "../control";
import { html } from "../dom";
import { capitalised, count, words, users as usersText } from "../format";
import { vocabulary } from "../vocabulary";
import { legend, mainType, section, type Page } from "../page";

/** The section. */
export function distribution(page: Page): HTMLElement | null {
  const all = page.analysis.distributions.filter((entry) => entry.count > 0);
  if (all.length === 0) return null;
  const transactions = [...new Set(all.map((entry) => entry.transaction))];
  const ladder = [...new Set(all.map((entry) => entry.users))].sort((a, b) => a - b);
  let transaction = mainType(page, transactions)!;
  let users = ladder[ladder.length - 1]!;
  let view: View = "percentiles";
  const body = html("div", {});
  const draw = () => {
    clear(body);
    const drawn = page.designs.flatMap((design, index) => {
      const entry = all.find((e) => e.design === index && e.users === users && e.transaction === transaction);
      if (!entry) return [];
      const points = entry.shares.map((share, place) => ({ share, nanos: entry.nanos[place]! }));
      return [{ title: design.title, look: design.look, points, count: entry.count }];
    });
    const requests = drawn.map((entry) => count(entry.count)).join(" and ");
    body.append(figure({
      title: `${words(transaction)} at ${usersText(users)}`,
      note: `response time of ${requests} ${vocabulary().request}s`,
      description: `Distribution of the response time of ${words(transaction)}; the table of latencies has the numbers.`,
      draw: (width) => drawDistribution(drawn, view, width),
    }));
  };
  draw();
  return section("distribution", "Latency distribution", null,
    html("div", { class: "controls" },
      select(capitalised(vocabulary().request), transactions.map((value) => ({ value, label: words(value) })), transaction, (value) => {
        transaction = value;
        draw();
      }),
      select("At", ladder.map((value) => ({ value, label: usersText(value) })), users, (value) => {
        users = value;
        draw();
      }),
      segments<View>("View",
        [{ value: "percentiles", label: "Percentiles" }, { value: "cumulative", label: "Cumulative share" }],
        view, (value) => {
          view = value;
          draw();
        })),
    legend(page),
    body);
}
