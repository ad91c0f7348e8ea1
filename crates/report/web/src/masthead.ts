// The bar at the top: what this page is, what kind of evidence it holds, and the theme.

import { segments } from "./control";
import { html } from "./dom";
import type { Page } from "./page";
import { dilationBadge, evidenceBadge, evidenceKinds } from "./section/verdict";
import { chooseTheme, themeChoice, type Choice } from "./theme";

/** The bar. */
export function masthead(page: Page): HTMLElement {
  const { study } = page.analysis;
  return html(
    "header",
    { class: "masthead" },
    html(
      "div",
      {},
      html("span", { class: "study", title: study.title }, study.title),
      ...evidenceKinds(page).map(evidenceBadge),
      dilationBadge(page),
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
