// Input fields that search nodes by name.

import { get } from "./api.js";
import { h } from "./dom.js";

/** Minimum time between two requests for the addresses of nodes, in ms. */
const EVERY = 2000;

let asked = null; // the last request for the addresses, and its time

/** Updates the LIDs and IP addresses of the fabric's nodes; the promise resolves after the update. */
function refresh({ fabric, connected }) {
  if (connected === false) return Promise.resolve();
  if (!asked || performance.now() > asked.at + EVERY) {
    // Without addresses, the search still finds names and GUIDs.
    const answer = get("addresses").then(({ ports }) => fabric.setAddresses(ports), () => {});
    asked = { at: performance.now(), answer };
  }
  return asked.answer;
}

/**
 * Turns an input and a list into a combobox: text searches the fabric, arrow keys select a match, Enter accepts it. `take`
 * is called with the node.
 */
export function combobox(input, list, state, take, kinds = null) {
  let found = [], at = -1;
  const show = () => {
    list.hidden = !found.length;
    input.setAttribute("aria-expanded", String(found.length > 0));
    list.replaceChildren(...found.map((node, index) => h("li", {
      role: "option", id: `${list.id}-${index}`, "aria-selected": String(index === at), class: node.kind,
      pointerdown: (event) => { event.preventDefault(); accept(node); },
    }, node.name, node.hint ? h("span", { class: "hint" }, node.hint) : null)));
    if (at >= 0) {
      input.setAttribute("aria-activedescendant", `${list.id}-${at}`);
      list.children[at].scrollIntoView({ block: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
  };
  const close = () => { found = []; at = -1; show(); };
  const accept = (node) => {
    close();
    input.value = node.name;
    input.removeAttribute("aria-invalid");
    take(node);
  };
  input.addEventListener("focus", () => refresh(state));
  input.addEventListener("input", () => {
    search();
    // Repeats the search when the addresses have arrived.
    const written = input.value;
    refresh(state).then(() => { if (input.value === written && document.activeElement === input) search(); });
  });
  const search = () => {
    found = state.fabric.find(input.value, 12, kinds);
    at = found.length ? 0 : -1;
    input.toggleAttribute("aria-invalid", false);
    if (input.value.trim() && !found.length) input.setAttribute("aria-invalid", "true");
    show();
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && found.length) accept(found[Math.max(0, at)]);
    else if (event.key === "Escape" && found.length) { close(); event.stopPropagation(); }
    else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && found.length) {
      at = (at + (event.key === "ArrowDown" ? 1 : found.length - 1)) % found.length;
      show();
    } else return;
    event.preventDefault();
  });
  input.addEventListener("blur", close);
}

/** Creates a labelled field for a node; returns `{ element, input }`. */
export function nodeField(id, label, state, take, kinds) {
  const input = h("input", {
    type: "text", id, role: "combobox", "aria-expanded": "false", "aria-controls": `${id}-list`, "aria-autocomplete": "list",
    autocomplete: "off", spellcheck: "false", placeholder: "name, LID or IP address",
  });
  const list = h("ul", { id: `${id}-list`, role: "listbox", "aria-label": label, hidden: true });
  combobox(input, list, state, take, kinds);
  return { element: h("div", { class: "search" }, h("label", {}, h("span", {}, label), input), list), input };
}
