// Controls: choices of one among few, and filters of several.

import { html, uniqueId } from "./dom";

/** An option of a choice. */
export interface Option<T> {
  value: T;
  label: string;
}

/** A drop-down list with a label. `changed` is called with the new value. */
export function select<T>(
  label: string,
  options: Option<T>[],
  initial: T,
  changed: (value: T) => void,
): HTMLElement {
  const id = uniqueId("select");
  const list = html(
    "select",
    {
      id,
      onchange: () => {
        const option = options[list.selectedIndex];
        if (option) changed(option.value);
      },
    },
    options.map((option, index) =>
      html("option", { value: index, selected: option.value === initial }, option.label)),
  );
  return html("span", { class: "control" }, html("label", { for: id }, label), list);
}

/** Buttons of which one is pressed. */
export function segments<T>(
  label: string,
  options: Option<T>[],
  initial: T,
  changed: (value: T) => void,
): HTMLElement {
  const buttons = options.map((option) =>
    html(
      "button",
      {
        type: "button",
        "aria-pressed": String(option.value === initial),
        onclick: (event: Event) => {
          for (const button of buttons) {
            button.setAttribute("aria-pressed", String(button === event.currentTarget));
          }
          changed(option.value);
        },
      },
      option.label,
    ));
  return html("span", { class: "control segments", role: "group", "aria-label": label }, buttons);
}

/** Check boxes; `changed` is called with the values that are on. */
export function checks<T>(
  label: string,
  options: (Option<T> & { ornament?: Element })[],
  initial: T[],
  changed: (values: T[]) => void,
): HTMLElement {
  const on = new Set(initial);
  return html(
    "fieldset",
    { class: "control checks" },
    html("legend", {}, label),
    options.map((option) => {
      const box = html("input", {
        type: "checkbox",
        checked: on.has(option.value),
        onchange: () => {
          if (box.checked) on.add(option.value);
          else on.delete(option.value);
          changed(options.map((o) => o.value).filter((value) => on.has(value)));
        },
      });
      return html("label", {}, box, option.ornament ?? null, option.label);
    }),
  );
}
