// The bar at the top: what this page is, what kind of evidence it holds, and the theme.

import { segments } from "./control";
import { html, type Child } from "./dom";
import type { Page } from "./page";
import { dilationBadge, evidenceBadge, evidenceKinds } from "./section/verdict";
import { chooseTheme, themeChoice, type Choice } from "./theme";

/** The bar of a report. */
export function masthead(page: Page): HTMLElement {
  return bar(page.analysis.study.title, ...evidenceKinds(page).map(evidenceBadge), dilationBadge(page));
}

/** The bar of a page with this title. */
export function bar(title: string, ...badges: Child[]): HTMLElement {
  return html(
    "header",
    { class: "masthead" },
    html(
      "div",
      {},
      html("span", { class: "study", title }, title),
      ...badges,
      segments<Choice>(
        "Theme",
        [
          { value: "system", label: "Auto" },
          { value: "light", label: "Light" },
          { value: "dark", label: "Dark" },
        ],
        themeChoice(),
        chooseTheme,
      ),
    ),
  );
}
