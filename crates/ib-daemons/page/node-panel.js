// Tab of the selected node or link: tables and counters.

import { get, post } from "./api.js";
import { h, jump, mark, renew, terms } from "./dom.js";
import { many, number, rate } from "./format.js";
import { Table } from "./table.js";

const EVERY = 2000; // ms between two updates of the counters

/** Creates the panel. `report` shows errors, `goTo` shows a node on the drawing. */
export function nodePanel(state, { report, goTo }) {
  const panel = new NodePanel(state, report, goTo);
  state.on("selection", () => panel.choose());
  state.on("links traffic load routes", () => panel.link());
  state.on("links missing routes tab", () => panel.fetch());
  setInterval(() => panel.fetch(), EVERY);
  panel.choose();
  return panel;
}

class NodePanel {
  constructor(state, report, goTo) {
    Object.assign(this, { state, report, goTo });
    this.linkCard = h("section", { class: "card link", "aria-label": "Selected link" });
    this.head = h("section", { "aria-label": "Selected node" });
    this.ports = new Table({
      label: "Ports",
      key: ({ port }) => String(port),
      choose: ({ port }) => state.choose(state.node, port),
      columns: [
        { title: "Port", value: ({ port }) => port, numeric: true },
        { title: "State", value: ({ state: own }) => own, show: ({ state: own }) => mark(own) },
        { title: "Errors", value: errors, show: (row) => h("span", { class: errors(row) ? "sign" : undefined }, number(errors(row))), numeric: true },
        { title: "To", value: (row) => this.peer(row), show: (row) => h("span", { title: this.peer(row) }, this.peer(row)), cut: true },
        { title: "Sent", value: ({ counters }) => counters?.PortXmitPkts ?? 0, show: ({ counters }) => number(counters?.PortXmitPkts ?? 0), numeric: true },
        { title: "Received", value: ({ counters }) => counters?.PortRcvPkts ?? 0, show: ({ counters }) => number(counters?.PortRcvPkts ?? 0), numeric: true },
      ],
    });
    this.counters = h("div");
    this.table = new Table({
      label: "LFT", most: 100,
      columns: [
        { title: "LID", value: ([lid]) => lid, numeric: true },
        { title: "Port", value: ([, port]) => port, numeric: true },
        { title: "To", value: ([, port]) => this.peer(this.node.ports.find((own) => own.port === port)) },
      ],
    });
    this.filter = h("input", { type: "text", inputmode: "numeric", placeholder: "LID", "aria-label": "LID to look up", input: () => this.forwarding() });
    this.forwards = h("summary");
    this.details = h("details", {}, this.forwards, h("p", {}, h("label", {}, "Look up ", this.filter)), this.table.element);
    this.body = h("div", {}, h("h3", {}, "Ports"), h("p", { class: "faint" }, "Packets sent and received. Choose a port for all counters and its link."), this.ports.element, this.counters, this.details);
    this.none = h("p", { class: "faint" }, "Choose a node or a link on the drawing or in the tab Fabric, or find a node by its name.");
    this.element = h("div", {}, this.linkCard, this.head, this.body, this.none);
  }

  peer(row) {
    if (!row) return "–";
    if (row.port === 0) return "itself";
    return row.peer ? `${this.state.fabric.nodes[row.peer[0]].name} port ${row.peer[1]}` : "–";
  }

  choose() {
    const { state } = this;
    if (this.node?.id !== state.node) this.node = null;
    this.none.hidden = state.node !== null || state.link !== null;
    this.head.hidden = state.node === null;
    this.body.hidden = !this.node;
    this.link();
    if (this.node) this.paint();
    else this.head.replaceChildren(...(state.node === null ? [] : [h("h2", {}, state.fabric.nodes[state.node].name)]));
    this.fetch();
  }

  // Shows the selected link: its ends, its traffic, and a button that cuts or restores it.
  link() {
    const { state, state: { fabric, link } } = this;
    this.linkCard.hidden = link === null;
    if (link === null) {
      this.shown = null;
      return this.linkCard.replaceChildren();
    }
    const down = Boolean(fabric.down[link]), both = (values, write) => `${write(values[2 * link])} →, ${write(values[2 * link + 1])} ←`;
    if (this.shown?.link !== link || this.shown.down !== down) this.shown = this.card(link, down);
    const texts = { now: both(fabric.traffic, rate), pairs: fabric.loadMost ? both(fabric.load, number) : "not known yet" };
    for (const [name, text] of Object.entries(texts)) if (this.shown[name].textContent !== text) this.shown[name].textContent = text;
    return undefined;
  }

  // Creates the card of a link. It is replaced only if the link's state changes, because a click lasts longer than the
  // interval between two events.
  card(link, down) {
    const { state, state: { fabric } } = this, { a, b, width, speed, gbit } = fabric.links[link];
    const shown = { link, down, now: h("span"), pairs: h("span") };
    const end = ([node, port]) => h("span", {}, jump(fabric.nodes[node].name, () => { state.choose(node, port); this.goTo(node); }), ` port ${port}`);
    renew(this.linkCard,
      h("h2", {}, `Link ${link} `, mark(down ? "Down" : "Active", down ? "down" : "up")),
      h("p", {}, end(a), " – ", end(b)),
      terms([
        ["rate", `${width}, ${speed} Gb/s a lane, ${gbit} Gb/s`],
        ["traffic", shown.now],
        ["host pairs", shown.pairs],
      ]),
      h("p", {}, h("button", { type: "button", id: "toggle-link", class: down ? "restore" : "cut", click: () => this.toggle(), "aria-keyshortcuts": "c" },
        down ? "Restore this link" : "Cut this link", " ", h("kbd", {}, "c"))));
    return shown;
  }

  /** Cuts or restores the selected link. */
  async toggle() {
    const { state } = this, { link } = state;
    if (link === null) return this.report("Select a link first.");
    const up = Boolean(state.fabric.down[link]);
    try {
      await post("link", { link, up });
      this.report(`${state.fabric.title(link)}: ${up ? "restored" : "cut"}.`);
    } catch (error) {
      this.report(error.message, true);
    }
    return undefined;
  }

  async fetch() {
    const { state } = this, id = state.node;
    if (id === null || state.tab !== "node" || state.connected === false || document.hidden || this.asking === id) return;
    this.asking = id;
    try {
      const node = await get("node", { id });
      if (state.node === id) {
        this.node = node;
        this.paint();
      }
    } catch (error) {
      if (state.node === id) this.report(error.message, true);
    } finally {
      this.asking = null;
    }
  }

  paint() {
    const { node, state } = this;
    this.body.hidden = false;
    renew(this.head,
      h("h2", {}, node.name),
      ...(description(node) ? [h("p", { class: "description" }, description(node))] : []),
      ...(state.fabric.missing[node.id] ? [h("p", { class: "problem" }, "Not reached: no path over active links leads from the SM to this node")] : []),
      h("p", { class: "buttons" },
        h("button", { type: "button", id: "show-node", click: () => this.goTo(node.id) }, "Show"),
        ...(node.kind === "host" ? [["Path from here", "pair-from", 0], ["Path to here", "pair-to", 1]].map(([text, id, end]) =>
          h("button", { type: "button", id, click: () => state.setPair(...(end ? [state.pair[0], node.id] : [node.id, state.pair[1]])) }, text)) : [])),
      terms([
        ["kind", node.kind], ["GUID", node.guid], ["LID", node.lid || "none"], ["rank", node.rank],
        ["links", many(node.ports.filter(({ link }) => link !== null).length, "link")],
        ["roles", node.roles?.length ? node.roles.join(", ") : null],
        ...(node.values ?? []).map(([key, value]) => [key, String(value)]),
      ]));
    this.ports.show(node.ports, state.port === null ? null : String(state.port));
    const port = node.ports.find((own) => own.port === state.port);
    this.counters.replaceChildren(...(port ? [h("h3", {}, `Port ${port.port}`), terms([
      ["state", mark(port.state)], ["physical", port.physical], ["LID", port.lid || null], ["width", port.width], ["speed", port.speed],
      ...Object.entries(port.counters ?? {}).map(([name, value]) => [name, number(value)]),
    ])] : []));
    this.details.hidden = !node.lft?.length;
    this.forwards.textContent = `LFT: ${many(node.lft?.length ?? 0, "LID")}`;
    this.forwarding();
  }

  forwarding() {
    const wanted = this.filter.value.trim();
    this.table.show((this.node?.lft ?? []).filter(([lid]) => !wanted || String(lid).startsWith(wanted)));
  }
}

// Returns the description of a node if it differs from the name.
function description({ id, name, values = [] }) {
  const [, own] = values.find(([key]) => key === "description") ?? [];
  return own && own !== name ? own : null;
}

// Returns the non-zero error counters of a port.
function errors({ counters = {} }) {
  const names = Object.keys(counters ?? {}).filter((name) => /Error|Discard|Downed|Overrun|Recovery|Dropped/i.test(name));
  return names.reduce((sum, name) => sum + counters[name], 0);
}
