// Legend of the colours.

import { DOWN, LEAST, MOST, coloursOf, css } from "./colours.js";
import { h } from "./dom.js";
import { number, rate } from "./format.js";
import { RATES } from "./styles.js";

/** Updates the legend when the colour mode or the theme changes. */
export function legend(element, state) {
  const paint = () => {
    const colours = coloursOf(state.theme), { fabric } = state;
    const items = [];
    if (state.colour === "state") items.push(item(line(colours.active), `active: ${number(fabric.links.length - fabric.downList.length)}`));
    else {
      items.push(item(line(colours.idle), state.colour === "load" ? "unused" : "idle"));
      items.push(scale(colours.palette, ...(state.colour === "load" ? ["few", `${number(fabric.loadMost)} pairs`] : RATES.map(rate))));
    }
    items.push(item(line(css(colours.palette, DOWN), "dashed", "✕"), `down: ${number(fabric.downList.length)}`));
    if (state.path) items.push(item(line(colours.path, "thick"), "path"));
    if (state.former) items.push(item(line(colours.former, "dashed"), "previous path"));
    if (state.link !== null || state.node !== null) items.push(item(line(colours.chosen, "thick"), "selected"));
    const kinds = new Set(fabric.nodes.map(({ kind }) => kind));
    for (const kind of ["switch", "host", "router"]) if (kinds.has(kind)) items.push(item(shape(kind, colours[kind]), kind));
    const what = { state: "Link state", load: "Link load: host pairs per direction", traffic: "Traffic: bytes per second and direction" }[state.colour];
    element.replaceChildren(h("p", {}, what), h("ul", {}, items));
  };
  state.on("colour theme links load selection path", paint);
  paint();
}

const item = (sign, text) => h("li", {}, sign, text);

function coloured(element, properties) {
  Object.assign(element.style, properties);
  return element;
}

function line(colour, kind = "", sign = "") {
  const element = h("i", { class: `line ${kind}`, "aria-hidden": "true" }, sign && h("b", {}, sign));
  return coloured(element, { color: colour });
}
const shape = (kind, colour) => coloured(h("i", { class: `shape ${kind}`, "aria-hidden": "true" }), { backgroundColor: colour });

function scale(palette, least, most) {
  const steps = 16, canvas = h("i", { class: "ramp", "aria-hidden": "true" });
  const stops = Array.from({ length: steps }, (_, step) => css(palette, Math.round(LEAST + (step / (steps - 1)) * (MOST - LEAST))));
  return h("li", {}, least, coloured(canvas, { backgroundImage: `linear-gradient(to right, ${stops.join(", ")})` }), most);
}
