// Tab of a pair: its path, hop by hop, and the difference from the previous path.

import { get, post, Retry } from "./api.js";
import { h, jump, mark, terms } from "./dom.js";
import { many, number } from "./format.js";
import { nodeField } from "./names.js";

/** Creates the panel. `report` shows errors, `settle` removes an error, `goTo` shows a node on the drawing. */
export function pathPanel(state, { report, settle, goTo }) {
  const panel = new PathPanel(state, report, settle, goTo);
  state.on("pair routes", () => { panel.again.reset(); panel.fetch(); });
  state.on("connection", () => { if (state.connected && !state.path && !state.pair.includes(null)) panel.fetch(); });
  state.on("links", () => panel.paint());
  state.on("picking", () => panel.picking());
  panel.paint();
  return panel;
}

class PathPanel {
  constructor(state, report, settle, goTo) {
    Object.assign(this, { state, report, settle, goTo, problem: null, again: new Retry(), ticket: 0 });
    const field = (id, label, end) => nodeField(id, label, state, ({ id: node }) => {
      state.setPair(...(end ? [state.pair[0], node] : [node, state.pair[1]]));
    }, ["host"]);
    this.from = field("from", "From (A)", 0);
    this.to = field("to", "To (B)", 1);
    this.pick = h("button", { type: "button", id: "pick", "aria-pressed": "false", "aria-keyshortcuts": "p", click: () => this.start() }, "Pick on the drawing ", h("kbd", {}, "p"));
    this.result = h("div", { id: "path", "aria-live": "polite" });
    this.record = h("div", { id: "record", "aria-live": "polite" });
    this.element = h("div", {},
      h("div", { class: "pair" }, this.from.element, this.to.element),
      h("p", { class: "buttons" }, this.pick,
        h("button", { type: "button", id: "swap", click: () => state.setPair(state.pair[1], state.pair[0]) }, "Swap"),
        h("button", { type: "button", id: "clear-pair", click: () => state.setPair(null, null) }, "Clear")),
      this.result, this.record);
  }

  /** Starts or stops to pick a pair. */
  start() {
    const { state } = this;
    state.set("picking", { picking: state.picking === null ? 0 : null });
    if (state.picking === 0) this.report("Select the source host of the path, then the destination host.");
  }

  picking() {
    this.pick.setAttribute("aria-pressed", String(this.state.picking !== null));
  }

  async fetch() {
    const { state } = this, [from, to] = state.pair;
    for (const [{ input }, node] of [[this.from, from], [this.to, to]]) {
      const name = node === null ? "" : state.fabric.nodes[node].name;
      if (document.activeElement !== input) input.value = name;
    }
    const ticket = ++this.ticket;
    if (from === null || to === null) {
      this.record.replaceChildren();
      return this.paint();
    }
    try {
      const path = await get("path", { from, to });
      if (ticket !== this.ticket) return undefined; // another pair has been selected
      this.again.reset();
      const before = state.path, other = before && !same(before, path);
      if (before && !other) state.path = path;
      else {
        Object.assign(state, { path, former: other ? before : null });
        state.tell("path");
      }
      if (other) this.report(path.error ? `The routes have changed: ${path.error}` : "The routes have changed: the path is different now.");
      else this.settle(this.problem);
      this.problem = null;
    } catch (error) {
      if (ticket !== this.ticket) return undefined;
      this.problem = error.message;
      this.report(this.problem, true);
      this.again.later(() => this.fetch());
    }
    return this.paint();
  }

  paint() {
    const { state, state: { path, former, pair, fabric } } = this;
    if (!path) {
      this.result.replaceChildren(h("p", { class: "faint" }, pair[0] === null && pair[1] === null
        ? "Select two hosts: enter their names, pick them on the drawing, or click them with Shift."
        : pair.includes(null) ? "Select the other host." : "The path is being requested."));
      return;
    }
    const links = path.hops.filter(({ link }) => link !== null).length;
    this.result.replaceChildren(
      h("h2", {}, "Path ", path.error ? mark("failed", "interrupted") : mark("active", many(links, "link"))),
      ...(path.error ? [h("p", { class: "problem" }, path.error)] : []),
      terms([["SLID → DLID", `${path.slid} → ${path.dlid}`], ["SL", path.sl], ["routes", `version ${path.routes}`]]),
      this.table(path, former, "Hops", "path-now"),
      ...(former ? [h("h3", { class: "former" }, "Before"), this.table(former, path, "Hops before", "path-before")] : []),
      h("p", { class: "buttons" }, h("button", { type: "button", id: "resolve", click: () => this.resolve() }, `Resolve by ACM at ${fabric.nodes[pair[0]].name}`)));
  }

  table({ hops, sl }, other, label, id) {
    const { fabric } = this.state, there = new Set(other?.hops.map(({ link }) => link));
    const row = (hop, index) => {
      const { node, in: into, out, link, vl } = hop, new_ = other && link !== null && !there.has(link);
      const down = link !== null && fabric.down[link];
      return h("tr", { class: [new_ && "differs", down && "down"].filter(Boolean).join(" ") || undefined },
        h("td", { class: "number" }, String(index)),
        h("td", {}, h("span", { class: "name", title: fabric.nodes[node].name }, jump(fabric.nodes[node].name, () => { this.state.choose(node); this.goTo(node); }))),
        h("td", { class: "number" }, into ? String(into) : "–"),
        h("td", { class: "number" }, out ? String(out) : "–"),
        h("td", { class: "number" }, link === null ? "–" : `${sl} / ${vl}`),
        h("td", {}, link === null ? "–" : h("span", {}, jump(`link ${link}`, () => this.state.chooseLink(link)),
          new_ ? h("span", { class: "sign" }, id === "path-now" ? " new" : " not used") : null, down ? h("span", { class: "sign" }, " down") : null)));
    };
    return h("div", { class: "table" }, h("table", { id, "aria-label": label },
      h("thead", {}, h("tr", {}, ["#", "Node", "In", "Out", "SL / VL", "Output link"].map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, hops.map(row))));
  }

  // Shows the response of the source's ACM service for the destination's name.
  async resolve() {
    const { pair: [from, to], fabric } = this.state;
    try {
      const { path, microseconds } = await post("resolve", { from, to: fabric.nodes[to].name });
      if (this.state.pair[0] !== from || this.state.pair[1] !== to) return;
      this.record.replaceChildren(h("h2", {}, "Path record from ACM"), terms([
        ["response time", `${number(Math.round(microseconds))} µs`], ...Object.entries(path).map(([key, value]) => [key.toUpperCase(), String(value)]),
      ]));
    } catch (error) {
      this.report(error.message, true);
    }
  }
}

const same = (one, other) => one.error === other.error && one.sl === other.sl && one.hops.length === other.hops.length
  && one.hops.every((hop, index) => ["node", "in", "out", "link", "vl"].every((key) => hop[key] === other.hops[index][key]));
