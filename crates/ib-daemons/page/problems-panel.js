// Tab of problems: alarms, unreached nodes, inactive links.

import { h } from "./dom.js";
import { many, number } from "./format.js";
import { clock } from "./health.js";
import { Table } from "./table.js";

/** Creates the panel. `goTo` shows a node on the drawing. */
export function problemsPanel(state, { goTo }) {
  const { fabric } = state, since = (seconds) => clock(seconds, state.now);
  const missing = new Table({
    label: "Nodes that are not reached", key: ({ node }) => String(node),
    choose: ({ node }) => { state.choose(node); goTo(node); },
    columns: [
      { title: "Node", value: ({ node }) => fabric.label(node), show: ({ node }) => h("span", { class: "name", title: fabric.nodes[node].name }, fabric.label(node)) },
      { title: "Kind", value: ({ node }) => fabric.nodes[node].kind },
      { title: "Since", value: (row) => row.since, show: (row) => since(row.since), numeric: true },
    ],
  });
  const down = new Table({
    label: "Links that are down", key: ({ link }) => String(link),
    choose: ({ link }) => { state.chooseLink(link); goTo(fabric.ends[2 * link]); },
    columns: [
      { title: "Link", value: ({ link }) => link, numeric: true },
      { title: "Between", value: ({ link }) => fabric.title(link) },
      { title: "Since", value: (row) => row.since, show: (row) => since(row.since), numeric: true },
    ],
  });
  missing.element.id = "missing";
  down.element.id = "down";
  const alarms = h("div", { id: "alarms", role: "alert", "aria-label": "Alarms" });
  const missingHead = h("h2"), downHead = h("h2"), none = h("p", { id: "no-problems" });
  const element = h("div", {}, none, alarms, missingHead, missing.element, downHead, down.element);

  const paintAlarms = () => {
    const list = state.manager?.alarms ?? [], shown = JSON.stringify(list);
    if (alarms.dataset.shown === shown) return;
    alarms.dataset.shown = shown;
    alarms.hidden = list.length === 0;
    alarms.replaceChildren(h("h2", {}, "Alarms"), h("ul", { class: "plain" }, list.map(({ kind, since: at, text }) =>
      h("li", { "data-kind": kind }, h("strong", {}, "Alarm"), ` since ${new Date(at * 1000).toLocaleTimeString()}: ${text}`))));
  };
  // Switches first, because a missing switch disconnects its hosts.
  const rank = (node) => -fabric.nodes[node].rank;
  const paint = () => {
    paintAlarms();
    const count = fabric.missingList.length + fabric.downList.length + (state.manager?.alarms.length ?? 0);
    none.textContent = count ? "" : "No problems: no alarms, all nodes are reached, all links are active.";
    none.hidden = count > 0;
    for (const [head, table, list, text] of [
      [missingHead, missing, fabric.missingList, `${many(fabric.missingList.length, "node")} not reached`],
      [downHead, down, fabric.downList, `${many(fabric.downList.length, "link")} down`],
    ]) {
      head.hidden = table.element.hidden = !list.length;
      head.textContent = text;
    }
    if (state.tab !== "problems") return;
    const nodes = fabric.missingList.map(([node, at]) => ({ node, since: at })).sort((one, other) => rank(one.node) - rank(other.node) || one.since - other.since);
    missing.show(nodes, state.node === null ? null : String(state.node));
    down.show(fabric.downList.map((link) => ({ link, since: fabric.downSince[link] })), state.link === null ? null : String(state.link));
  };
  state.on("links missing manager tab selection", paint);
  return { element, count: () => number(fabric.missingList.length + fabric.downList.length + (state.manager?.alarms.length ?? 0)) };
}
