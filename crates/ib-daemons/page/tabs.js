// Tabs: one tab is in the tab order, the arrow keys select the others.

import { h } from "./dom.js";

/**
 * Creates tabs of `[{ id, title, element }]` and their panels. Returns a function that opens a tab by its id, and optionally
 * focuses it.
 */
export function tabs(list, place, parts, state) {
  const buttons = parts.map(({ id, title, element }, index) => {
    place.append(h("div", { role: "tabpanel", id: `panel-${id}`, "aria-labelledby": `tab-${id}`, tabindex: "0" }, element));
    return h("button", {
      type: "button", role: "tab", id: `tab-${id}`, "aria-controls": `panel-${id}`, "aria-keyshortcuts": String(index + 1),
      click: () => open(id), keydown: (event) => move(event, index),
    }, title);
  });
  list.append(...buttons);

  function open(id, focus = false) {
    if (!parts.some((part) => part.id === id)) return;
    parts.forEach((part, index) => {
      const chosen = part.id === id;
      buttons[index].setAttribute("aria-selected", String(chosen));
      buttons[index].tabIndex = chosen ? 0 : -1;
      place.children[index].hidden = !chosen;
      if (chosen && focus) buttons[index].focus();
    });
    state.set("tab", { tab: id });
  }
  function move(event, index) {
    const to = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: parts.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    open(parts[(to + parts.length) % parts.length].id, true);
  }
  open(parts[0].id);
  return open;
}
