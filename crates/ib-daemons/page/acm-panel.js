// Tab of ACM: the cache of the ACM service at a host, and requests to resolve names.

import { get, post } from "./api.js";
import { h, mark, terms } from "./dom.js";
import { many, number, short } from "./format.js";
import { nodeField } from "./names.js";
import { Table } from "./table.js";

const EVERY = 2000; // ms

/** Creates the panel. It shows the service at the selected host, or at the host that is named in it. */
export function acmPanel(state, { report }) {
  const panel = new AcmPanel(state, report);
  state.on("selection tab", () => panel.follow());
  setInterval(() => panel.fetch(), EVERY);
  return panel;
}

class AcmPanel {
  constructor(state, report) {
    Object.assign(this, { state, report, host: null });
    this.field = nodeField("acm-host", "Service at", state, ({ id }) => state.choose(id), ["host"]);
    this.name = h("input", { type: "text", id: "acm-name", autocomplete: "off", spellcheck: "false", placeholder: "name, IP address or GID" });
    this.answer = h("div", { id: "acm-answer", "aria-live": "polite" });
    this.cache = new Table({
      label: "Destinations in the cache",
      columns: [
        { title: "To", value: ({ to }) => to, show: ({ to, gid }) => h("span", { class: "name", title: gid ? `${to}, GID ${gid}` : to }, to) },
        { title: "Kind", value: ({ kind }) => kind },
        { title: "State", value: ({ state: own }) => own, show: ({ state: own }) => mark(String(own)) },
        { title: "LID", value: ({ lid }) => lid ?? 0, show: ({ lid }) => String(lid ?? "–"), numeric: true },
        { title: "SL", value: ({ sl }) => sl ?? 0, show: ({ sl }) => String(sl ?? "–"), numeric: true },
        { title: "Age", value: ({ age }) => age ?? 0, show: ({ age }) => (age === null || age === undefined ? "–" : `${short(age)} s`), numeric: true },
      ],
    });
    this.cache.element.id = "acm-cache";
    this.facts = h("div", { id: "acm-facts" });
    this.counters = h("div", { id: "acm-counters" });
    this.cacheHead = h("h2");
    this.body = h("div", { hidden: true },
      h("form", { submit: (event) => { event.preventDefault(); this.resolve(); } },
        h("div", { class: "search" }, h("label", {}, h("span", {}, "Destination"), this.name)), h("p", { class: "buttons" }, h("button", { id: "acm-resolve" }, "Resolve"))),
      this.answer, this.facts, this.cacheHead, this.cache.element, h("h2", {}, "Counters"), this.counters);
    this.none = h("p", { class: "faint" }, "Choose a host: every host has an ACM service, which resolves names and addresses to paths.");
    this.element = h("div", {}, this.field.element, this.none, this.body);
  }

  follow() {
    const { state } = this, chosen = state.node !== null && state.fabric.nodes[state.node].kind === "host" ? state.node : this.host;
    if (chosen !== this.host) {
      this.host = chosen;
      this.body.hidden = true;
      this.answer.replaceChildren();
    }
    if (document.activeElement !== this.field.input) this.field.input.value = this.host === null ? "" : state.fabric.nodes[this.host].name;
    this.fetch();
  }

  async fetch() {
    const { host, state } = this;
    if (host === null || state.tab !== "acm" || state.connected === false || document.hidden || this.asking) return;
    this.asking = true;
    try {
      const service = await get("acm", { id: host });
      if (this.host === host) this.paint(service);
    } catch (error) {
      if (this.host !== host) return;
      this.body.hidden = true;
      this.none.hidden = false;
      this.none.textContent = error.message;
    } finally {
      this.asking = false;
    }
  }

  paint({ addresses, endpoints, destinations, counters }) {
    this.body.hidden = false;
    this.none.hidden = true;
    this.facts.replaceChildren(terms([
      ["addresses", h("ul", { class: "plain" }, addresses.map((address) => h("li", {}, address)))],
      ["endpoints", h("ul", { class: "plain" }, endpoints.map(({ pkey, name, up }) => h("li", {}, `${name}, PKey ${pkey} `, up === undefined ? null : mark(up ? "active" : "down", up ? "up" : "down"))))],
    ]));
    this.cacheHead.textContent = `Cache: ${many(destinations.length, "destination")}`;
    this.cache.show(destinations);
    this.counters.replaceChildren(terms(counters.map(([name, value]) => [name, typeof value === "number" ? number(value) : String(value)])));
  }

  async resolve() {
    const { host } = this, to = this.name.value.trim();
    if (!to) return this.report("Enter a name, an IP address or a GID to resolve.");
    try {
      const { path, microseconds } = await post("resolve", { from: host, to });
      if (this.host !== host) return undefined;
      this.answer.replaceChildren(h("h2", {}, `Path to ${to} `, mark("resolved", `${number(Math.round(microseconds))} µs`)),
        terms(Object.entries(path).map(([key, value]) => [key.toUpperCase(), String(value)])));
      this.report("");
    } catch (error) {
      this.answer.replaceChildren(h("p", { class: "problem" }, error.message));
    }
    return this.fetch();
  }
}
