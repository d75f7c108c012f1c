// Elements of the page. Names come from fabric files, so all values are set as text, never as markup.

/**
 * Creates an element.
 *
 * Attributes: functions become event listeners of that name; true and false set and omit the attribute, undefined omits it.
 * Children are nodes or texts; null and undefined are omitted.
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

/** Creates an SVG element. */
export const svg = (tag, attributes = {}, ...children) => h(tag, { svg: true, ...attributes }, ...children);

/** Returns the element with an id. */
export const byId = (id) => document.getElementById(id);

/**
 * Replaces the content of an element by nodes and texts. Equal content is not touched. The focus moves to the button at the
 * same position, so updates lose neither clicks nor the focus.
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
 * Returns a function that calls `act`, but delays it while a pointer is pressed in an element. Otherwise a click would be
 * lost if its element is replaced before the release. Of several delayed calls only the last one is made.
 */
export function unhurried(element, act) {
  let pressed = false, waiting = null;
  element.addEventListener("pointerdown", () => {
    pressed = true;
    const released = new AbortController();
    const release = () => {
      released.abort();
      // The click event follows the release.
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

/** Creates a list of terms and values. Rows with the value null or undefined are omitted. */
export function terms(rows) {
  return h("dl", { class: "terms" }, rows.filter(([, value]) => value !== null && value !== undefined)
    .map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, typeof value === "number" ? String(value) : value))));
}

/** Creates a button that looks like a link. */
export const jump = (text, act) => h("button", { type: "button", class: "jump", click: act }, text);

/** Creates a mark of a state, with a sign and a word beside its colour. */
export function mark(state, text = state) {
  const kind = KINDS[state.toLowerCase()] ?? "plain";
  return h("span", { class: `mark ${kind}` }, h("span", { "aria-hidden": "true" }, SIGNS[kind]), text);
}

const KINDS = {
  active: "good", reached: "good", linkup: "good", connected: "good", resolved: "good", ready: "good", master: "good", live: "good",
  down: "bad", disabled: "bad", failed: "bad", error: "bad", lost: "bad", exited: "bad", ended: "bad", "not reached": "bad", polling: "bad", disconnected: "bad",
  init: "busy", armed: "busy", connecting: "busy", reconnecting: "busy", resolving: "busy", standby: "busy", discovering: "busy", waiting: "busy", closing: "busy",
};
const SIGNS = { good: "●", bad: "✕", busy: "◐", plain: "○" };
