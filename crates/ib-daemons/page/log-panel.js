// Tab of the log: state of the SM, and log lines.

import { h, mark, terms } from "./dom.js";
import { number } from "./format.js";

const MOST = 500; // lines

/**
 * Returns the lines of a new connection that are not among the last lines `heard` of former connections. Lines are
 * `[time, text]` in log order, so the first ones of `lines` may be the last ones of `heard`. If there is no overlap, a line
 * reports that lines may be missing.
 */
export function news(heard, lines) {
  const same = (one, other) => one[0] === other[0] && one[1] === other[1];
  for (let count = Math.min(heard.length, lines.length); count > 0; count--) {
    const tail = heard.slice(-count);
    if (tail.every((line, index) => same(line, lines[index]))) return lines.slice(count);
  }
  return heard.length && lines.length ? [[lines[0][0], "lines before this one may be missing: the page was not connected"], ...lines] : lines;
}

/** Creates the panel. */
export function logPanel(state) {
  const facts = h("div"), lines = h("ol", {}), log = h("div", { id: "log", role: "log", "aria-label": "Log", tabindex: "0" }, lines);
  const element = h("div", {}, h("h2", {}, "Subnet manager"), facts, h("h3", {}, "Log"), log);
  const paint = () => {
    const { manager } = state;
    if (state.tab !== "log" || !manager) return;
    facts.replaceChildren(terms([
      ["state", mark(manager.state)], ["subnet", mark(manager.up ? "active" : "down", manager.up ? "up" : "not up")], ["LID", manager.lid],
      ["sweeps", number(manager.sweeps)], ["partial sweeps", number(manager.followed)], ["last sweep", manager.last || null], ["version of routes", state.routes],
      ["fabric's clock", `${state.time.toFixed(1)} s`],
    ]));
  };
  const add = () => {
    const atEnd = log.scrollTop + log.clientHeight > log.scrollHeight - 30;
    for (const [time, line] of state.log.splice(0)) lines.append(h("li", {}, h("time", {}, time.toFixed(3)), " ", line));
    while (lines.children.length > MOST) lines.firstChild.remove();
    if (atEnd) log.scrollTop = log.scrollHeight;
  };
  state.on("manager tab", paint);
  state.on("log", add);
  state.on("tab", () => { if (state.tab === "log") log.scrollTop = log.scrollHeight; });
  return { element };
}
