// Pointer and keyboard input of the drawing.

import { h } from "./dom.js";
import { many, rate } from "./format.js";

const STEP = 60, ZOOM = 1.25; // pixels per arrow key; zoom factor per key
const STILL = 4; // maximum movement of a click in pixels

/** Handles pointers on the stage; calls `press` with the clicked item and the event. */
export function pointers(stage, state, press) {
  const { element } = stage, tip = element.querySelector("#tip"), down = new Map();
  let moved = 0, last = null, over = null;
  const at = (event) => {
    const { left, top } = element.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  };
  const middle = () => {
    const points = [...down.values()], x = points.reduce((sum, point) => sum + point[0], 0) / points.length;
    const y = points.reduce((sum, point) => sum + point[1], 0) / points.length;
    return [x, y, points.length > 1 ? Math.hypot(points[0][0] - points[1][0], points[0][1] - points[1][1]) : 0];
  };
  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    element.setPointerCapture(event.pointerId);
    down.set(event.pointerId, at(event));
    if (down.size === 1) moved = 0;
    last = middle();
    element.focus({ preventScroll: true });
  });
  element.addEventListener("pointermove", (event) => {
    if (!down.has(event.pointerId)) {
      if (event.buttons === 0) hover(...at(event));
      return;
    }
    down.set(event.pointerId, at(event));
    const now = middle();
    moved += Math.hypot(now[0] - last[0], now[1] - last[1]) + Math.abs(now[2] - last[2]);
    if (moved > STILL) {
      stage.pan(now[0] - last[0], now[1] - last[1]);
      if (now[2] && last[2]) stage.zoom(now[2] / last[2], now[0], now[1]);
      tip.hidden = true;
      element.classList.add("dragged");
    }
    last = now;
  });
  const up = (event) => {
    if (!down.delete(event.pointerId)) return;
    element.classList.remove("dragged");
    if (down.size) last = middle();
    else if (moved <= STILL && event.type === "pointerup") press(stage.at(...at(event)), event);
  };
  element.addEventListener("pointerup", up);
  element.addEventListener("pointercancel", up);
  element.addEventListener("pointerleave", () => hover(-100, -100));
  element.addEventListener("dblclick", (event) => {
    const { node } = stage.at(...at(event));
    if (node !== undefined) stage.goTo(node);
    else stage.zoom(2, ...at(event));
  });
  element.addEventListener("wheel", (event) => {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 33 : event.deltaMode === 2 ? 400 : 1;
    stage.zoom(Math.exp(-Math.max(-300, Math.min(300, event.deltaY * unit)) * 0.0022), ...at(event));
    tip.hidden = true;
  }, { passive: false });

  // The tooltip of a link or a node is updated while the pointer rests.
  state.on("links missing traffic load", () => { if (over && !tip.hidden) hover(...over); });

  function hover(x, y) {
    const target = x < 0 ? {} : stage.at(x, y);
    stage.point(target);
    element.classList.toggle("over", target.node !== undefined || target.link !== undefined);
    const text = about(state.fabric, target);
    tip.hidden = !text;
    over = text ? [x, y] : null;
    if (!text) return;
    tip.replaceChildren(...text.map((line, index) => h(index ? "span" : "strong", {}, line)));
    tip.style.left = `${Math.max(4, Math.min(x + 14, element.clientWidth - tip.offsetWidth - 4))}px`;
    tip.style.top = `${y + 20 + tip.offsetHeight < element.clientHeight ? y + 20 : Math.max(4, y - tip.offsetHeight - 10)}px`;
  }
}

function about(fabric, { node, link }) {
  if (node !== undefined) {
    const { kind, guid } = fabric.nodes[node], links = fabric.at(node), down = links.filter((own) => fabric.down[own]).length;
    return [fabric.label(node), `${kind}, GUID ${guid}${fabric.missing[node] ? ", not reached" : ""}`, `${many(links.length, "link")}${down ? `, ${down} of them down` : ""}`];
  }
  if (link === undefined) return null;
  const { width, speed } = fabric.links[link], [there, back] = [fabric.traffic[2 * link], fabric.traffic[2 * link + 1]];
  const lines = [fabric.title(link), `${width} at ${speed} Gb/s a lane, ${fabric.down[link] ? "down" : "up"}`];
  if (fabric.loadMost) lines.push(`host pairs: ${fabric.load[2 * link]} →, ${fabric.load[2 * link + 1]} ←`);
  if (there || back) lines.push(`traffic: ${rate(there)} →, ${rate(back)} ←`);
  return lines;
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/**
 * Handles keys. Keys of the drawing require its focus. Letters work everywhere except in text fields; the letter that cuts
 * a link works only on the drawing and in the link's tab. `acts` has the actions: find, pick, cut, help, escape,
 * tab(index), end(node).
 */
export function keys(stage, state, acts) {
  stage.element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = ARROWS[event.key];
    if (arrow && event.shiftKey) {
      const next = state.node === null ? null : stage.neighbour(state.node, ...arrow);
      if (next !== null) {
        state.choose(next);
        stage.reveal(next);
      }
    } else if (arrow) stage.pan(-arrow[0] * STEP, -arrow[1] * STEP);
    else if (event.key === "Enter" && state.node !== null) acts.end(state.node);
    else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") return acts.escape();
    if (event.target.closest("input:not([type=radio]), textarea, select")) return undefined;
    const act = {
      "/": acts.find, p: acts.pick, c: event.target.closest("#stage, #panel-node") && acts.cut, "?": acts.help, 0: () => stage.fit(),
      "+": () => stage.zoom(ZOOM), "=": () => stage.zoom(ZOOM), "-": () => stage.zoom(1 / ZOOM), "−": () => stage.zoom(1 / ZOOM),
    }[event.key] ?? (/^[1-8]$/.test(event.key) ? () => acts.tab(+event.key - 1) : null);
    if (!act) return undefined;
    event.preventDefault();
    return act();
  });
}
