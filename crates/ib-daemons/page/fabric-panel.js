// Tab of the fabric: all nodes and links as tables, the text alternative of the drawing.

import { h, mark } from "./dom.js";
import { many, number } from "./format.js";
import { Table } from "./table.js";

/** Creates the panel. `goTo` shows a node on the drawing. */
export function fabricPanel(state, { goTo }) {
  const { fabric } = state, shown = () => state.tab === "fabric";
  const nodes = new Table({
    label: "Nodes", most: 100, key: ({ id }) => String(id), choose: ({ id }) => { state.choose(id); goTo(id); },
    columns: [
      { title: "Node", value: ({ id }) => fabric.label(id), show: ({ id }) => h("span", { class: "name", title: fabric.label(id) }, fabric.label(id)) },
      { title: "Kind", value: ({ kind }) => kind },
      { title: "Links", value: ({ links }) => links, numeric: true },
      { title: "State", value: ({ state: own }) => own, show: ({ state: own }) => mark(own) },
    ],
  });
  const links = new Table({
    label: "Links", most: 100, key: ({ link }) => String(link), choose: ({ link }) => { state.chooseLink(link); goTo(fabric.ends[2 * link]); },
    columns: [
      { title: "Link", value: ({ link }) => link, numeric: true },
      { title: "Between", value: ({ link }) => fabric.title(link) },
      { title: "Rate", value: ({ link }) => fabric.links[link].gbit, show: ({ link }) => `${number(fabric.links[link].gbit)} Gb/s`, numeric: true },
      { title: "State", value: ({ state: own }) => own, show: ({ state: own }) => mark(own) },
    ],
  });
  const filter = h("input", { type: "text", id: "filter", autocomplete: "off", spellcheck: "false", placeholder: "part of a name", input: () => paint() });
  const heads = [h("h3", { id: "node-count" }), h("h3", { id: "link-count" })];
  const element = h("div", {},
    h("h2", {}, "Nodes and links"), h("p", { class: "faint" }, "The same as on the drawing. Choose a row to see its details in the tab Node."),
    h("div", { class: "search" }, h("label", {}, h("span", {}, "Filter"), filter)), heads[0], nodes.element, heads[1], links.element);

  const paint = () => {
    if (!shown()) return;
    const wanted = filter.value.trim().toLowerCase(), has = (text) => !wanted || text.toLowerCase().includes(wanted);
    const own = fabric.nodes.filter(({ id }) => has(fabric.label(id)))
      .map(({ id, kind }) => ({ id, kind, links: fabric.at(id).length, state: fabric.missing[id] ? "not reached" : "reached" }));
    const cables = [...fabric.links.keys()].filter((link) => !wanted || has(fabric.title(link)))
      .map((link) => ({ link, state: fabric.down[link] ? "down" : "active" }));
    heads[0].textContent = many(own.length, "node");
    heads[1].textContent = many(cables.length, "link");
    nodes.show(own, state.node === null ? null : String(state.node));
    links.show(cables, state.link === null ? null : String(state.link));
  };
  state.on("tab links missing selection", paint);
  return { element };
}
