// Tab of loads: links with the most host pairs, and the traffic of links.

import { h, terms } from "./dom.js";
import { many, number, rate } from "./format.js";
import { barsOf, histogram } from "./histogram.js";
import { Table } from "./table.js";

const MOST = 12; // links in a list

/** Creates the panel. */
export function loadPanel(state) {
  const { fabric } = state;
  const list = (label, title, show) => new Table({
    label, key: ({ link }) => String(link), choose: ({ link }) => state.chooseLink(link),
    columns: [
      { title: "From", value: ({ from }) => from },
      { title: "To", value: ({ to }) => to },
      { title, value: ({ value }) => value, show: ({ value }) => show(value), numeric: true },
    ],
  });
  const loaded = list("Links with the most host pairs", "Pairs", number), busy = list("Busiest links", "Now", rate);
  const chart = h("div"), facts = h("div"), busyHead = h("h3");
  const element = h("div", {},
    h("h2", {}, "Link load"), h("p", { class: "faint" }, "Number of host pairs whose path uses a link, per direction, by the current LFTs."),
    facts, chart, loaded.element, busyHead, busy.element);

  const shown = () => state.tab === "load";
  const chosen = () => (state.link === null ? null : String(state.link));
  const top = (values) => {
    // Selects the directions with the largest values, without a complete sort.
    const best = [];
    values.forEach((value, end) => {
      if (!value || (best.length === MOST && value <= best[MOST - 1].value)) return;
      const link = end >> 1, ends = [fabric.links[link].a, fabric.links[link].b];
      if (end & 1) ends.reverse();
      const [from, to] = ends.map(([node, port]) => `${fabric.nodes[node].name} port ${port}`);
      best.splice(best.findIndex((own) => own.value < value) >>> 0, 0, { link, from, to, value });
      if (best.length > MOST) best.pop();
    });
    return best;
  };
  const paintLoad = () => {
    if (!shown() || !fabric.loadMost) return;
    const between = [];
    fabric.links.forEach(({ a, b }, link) => {
      if (fabric.nodes[a[0]].kind === "host" || fabric.nodes[b[0]].kind === "host" || fabric.down[link]) return;
      between.push(fabric.load[2 * link], fabric.load[2 * link + 1]);
    });
    const mean = between.reduce((sum, value) => sum + value, 0) / (between.length || 1);
    const most = between.reduce((top, value) => Math.max(top, value), 0);
    facts.replaceChildren(terms([
      ["engine", state.engine ?? fabric.engine], ["routes", state.routes === null ? null : `version ${state.routes}`],
      ["maximum of all links", number(fabric.loadMost)],
      ["between switches", between.length ? `mean ${mean.toFixed(1)}, most ${number(most)}` : null],
    ]));
    chart.replaceChildren(between.length ? histogram({
      bars: barsOf(between), write: number, label: "Links between switches, by direction", unit: "directions", marks: [[mean, "mean"]],
    }) : "");
    loaded.show(top(fabric.load), chosen());
  };
  const paintTraffic = () => {
    if (!shown()) return;
    const all = fabric.traffic.reduce((sum, value) => sum + value, 0), links = fabric.busy ?? 0;
    busyHead.replaceChildren("Traffic now ", h("span", { class: "faint" }, links ? `${rate(all)} over ${many(links, "link")}` : "none"));
    busy.element.hidden = !links;
    busy.show(top(fabric.traffic), chosen());
  };
  const paint = () => { paintLoad(); paintTraffic(); };
  state.on("load", paintLoad);
  state.on("traffic", paintTraffic);
  state.on("tab selection", paint);
  return { element };
}
