// Tables: plain, and searchable when they are long.

import { append, html, uniqueId, type Child } from "./dom";

/** A column: its heading, and whether it holds numbers (right-aligned, tabular figures). */
export interface Column {
  heading: Child;
  numeric?: boolean;
  /** Whether its cells hold prose, which may wrap anywhere. */
  wrap?: boolean;
  /** Whether it names a design: wide enough to be read at a glance. */
  design?: boolean;
}

/** A row of cells; a row may carry a class. */
export interface Row {
  cells: Child[];
  className?: string;
  /** Index of the cell that names the row. */
  header?: number;
}

function cellElement(column: Column | undefined, content: Child, isHeader: boolean): HTMLElement {
  const className = [
    column?.numeric ? "number" : "", column?.wrap ? "wrap" : "", column?.design ? "design" : "",
  ].filter(Boolean).join(" ");
  const attributes = { class: className || null };
  return isHeader
    ? html("th", { ...attributes, scope: "row" }, content)
    : html("td", attributes, content);
}

/** A table in a box that scrolls sideways by itself when the screen is narrow. */
export function table(columns: Column[], rows: Row[], caption: string): HTMLElement {
  const body = html(
    "tbody",
    {},
    rows.map((row) =>
      html(
        "tr",
        { class: row.className },
        row.cells.map((cell, index) => cellElement(columns[index], cell, index === (row.header ?? 0))),
      ),
    ),
  );
  const head = html(
    "thead",
    {},
    html(
      "tr",
      {},
      columns.map((column) =>
        html("th", { scope: "col", class: column.numeric ? "number" : null }, column.heading)),
    ),
  );
  const element = html("table", {}, html("caption", {}, caption), head, body);
  return html(
    "div",
    { class: "table-box", tabindex: "0", role: "region", "aria-label": caption },
    element,
  );
}

/** Gives a long table a frame of its own to scroll in; on paper it is shown in full. */
export function tall(box: HTMLElement): HTMLElement {
  box.classList.add("tall");
  return box;
}

/** Keeps the columns of a table of a few numbers together. */
export function close(box: HTMLElement): HTMLElement {
  box.classList.add("close");
  return box;
}

/** A table with a search field that leaves the rows containing every word of the query. */
export function searchableTable(columns: Column[], rows: Row[], caption: string): HTMLElement {
  const box = tall(table(columns, rows, caption));
  const elements = [...box.querySelectorAll("tbody tr")] as HTMLTableRowElement[];
  const texts = elements.map((element) => (element.textContent ?? "").toLowerCase());
  const status = html("span", { class: "muted", role: "status" }, `${rows.length} rows`);
  const id = uniqueId("search");
  const field = html("input", {
    id,
    type: "search",
    placeholder: "Search",
    autocomplete: "off",
    oninput: () => {
      const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      elements.forEach((element, index) => {
        element.hidden = !wanted.every((word) => texts[index]?.includes(word));
        if (!element.hidden) shown += 1;
      });
      status.textContent = shown === rows.length ? `${rows.length} rows` : `${shown} of ${rows.length} rows`;
    },
  });
  return html(
    "div",
    { class: "searchable" },
    html("div", { class: "controls" }, html("label", { for: id }, "Search"), field, status),
    box,
  );
}

/** How facts are laid out: in a row, or in a list with names and values aligned. */
export type FactLayout = "row" | "list";

/** Names with their values, as a description list. */
export function facts(pairs: [string, Child][], layout: FactLayout = "row"): HTMLElement {
  const list = html("dl", { class: `facts ${layout}` });
  for (const [name, value] of pairs) {
    append(list, [html("div", {}, html("dt", {}, name), html("dd", {}, value))]);
  }
  return list;
}
