// Elements of the page. Names come from fabric files: whatever is shown is set as text, never as markup.

/**
 * Makes an element.
 *
 * Of the attributes, functions listen to the event that they are named after, true and false set and leave out
 * the attribute, undefined leaves it out. Children are nodes or texts; null and undefined are left out.
 */
export function h(tag, attributes = {}, ...children) {
  const element = tag === "svg" || attributes.svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "svg" || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Makes an element of SVG. */
export const svg = (tag, attributes = {}, ...children) => h(tag, { svg: true, ...attributes }, ...children);

/** Returns the element with an id. */
export const byId = (id) => document.getElementById(id);

/**
 * Shows nodes and texts in an element. What looks the same is left alone, and otherwise the focus goes to the button that
 * is where the focused one was: neither a click nor the focus is lost because of what is repeated.
 */
export function renew(element, ...children) {
  const fresh = element.cloneNode(false);
  fresh.append(...children);
  if (element.isEqualNode(fresh)) return;
  const at = [...element.querySelectorAll("button")].indexOf(document.activeElement);
  element.replaceChildren(...fresh.childNodes);
  if (at >= 0) element.querySelectorAll("button")[at]?.focus();
}

/**
 * Returns a function that calls `act`, but not while a pointer is pressed in an element: a click on what has been replaced
 * before its release would be none. Of the calls that wait, only the last one is made.
 */
export function unhurried(element, act) {
  let pressed = false, waiting = null;
  element.addEventListener("pointerdown", () => {
    pressed = true;
    const released = new AbortController();
    const release = () => {
      released.abort();
      // The click comes after the release.
      setTimeout(() => {
        pressed = false;
        waiting?.();
        waiting = null;
      });
    };
    for (const event of ["pointerup", "pointercancel"]) window.addEventListener(event, release, { signal: released.signal });
  });
  return (...values) => {
    if (pressed) waiting = () => act(...values);
    else act(...values);
  };
}

/** Makes a list of terms and what they are. Rows whose value is null or undefined are left out. */
export function terms(rows) {
  return h("dl", { class: "terms" }, rows.filter(([, value]) => value !== null && value !== undefined)
    .map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, typeof value === "number" ? String(value) : value))));
}

/** Makes a button that looks like a link in a text. */
export const jump = (text, act) => h("button", { type: "button", class: "jump", click: act }, text);

/** Makes a mark of a state, which has a sign and a word beside its colour. */
export function mark(state, text = state) {
  const kind = KINDS[state.toLowerCase()] ?? "plain";
  return h("span", { class: `mark ${kind}` }, h("span", { "aria-hidden": "true" }, SIGNS[kind]), text);
}

const KINDS = {
  active: "good", linkup: "good", connected: "good", resolved: "good", ready: "good", master: "good", live: "good",
  down: "bad", disabled: "bad", failed: "bad", error: "bad", lost: "bad", ended: "bad", polling: "bad", disconnected: "bad",
  init: "busy", armed: "busy", connecting: "busy", reconnecting: "busy", resolving: "busy", standby: "busy", discovering: "busy", waiting: "busy", closing: "busy",
};
const SIGNS = { good: "●", bad: "✕", busy: "◐", plain: "○" };
