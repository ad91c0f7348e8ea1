// The list of contents: always in sight on wide screens, folded on narrow ones, and marking where
// the reader is.

import { html } from "./dom";

/** The contents of `main`, from its sections and their headings, or the shorter names that sections have for contents. */
export function contents(main: HTMLElement): HTMLElement {
  const links = new Map<Element, HTMLAnchorElement>();
  for (const section of main.querySelectorAll<HTMLElement>("section[id]")) {
    const title = section.dataset.contents ?? section.querySelector("h2")?.textContent ?? section.id;
    links.set(section, html("a", { href: `#${section.id}` }, title));
  }
  const fold = html(
    "details",
    {},
    html("summary", {}, "Contents"),
    html("ol", {}, [...links.values()].map((link) => html("li", {}, link))),
  );
  const wide = matchMedia("(min-width: 66rem)");
  const follow = () => {
    fold.open = wide.matches;
  };
  wide.addEventListener("change", follow);
  follow();
  markPosition(links);
  return html("nav", { class: "contents", "aria-label": "Contents" }, fold);
}

function markPosition(links: Map<Element, HTMLAnchorElement>): void {
  const visible = new Set<Element>();
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) visible.add(entry.target);
      else visible.delete(entry.target);
    }
    const current = [...links.keys()].find((section) => visible.has(section));
    for (const [section, link] of links) {
      if (section === current) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }, { rootMargin: "-70px 0px -55% 0px" });
  for (const section of links.keys()) observer.observe(section);
}
