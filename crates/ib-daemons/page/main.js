// The page of `ibfabric up`: requests the fabric, creates the parts of the page and updates them.
//
// state.js holds the selection and the data; all other parts subscribe to it. stage.js and its imports draw the fabric.
// Each tab is a file that ends in -panel.js. Tests use `window.ibfabric`, at the end of this file.

import { acmPanel } from "./acm-panel.js";
import { keepAddress } from "./address.js";
import { get, listen, Retry } from "./api.js";
import { keys, pointers } from "./controls.js";
import { byId, h, mark } from "./dom.js";
import { Fabric } from "./fabric.js";
import { many, number } from "./format.js";
import { healthOf } from "./health.js";
import { legend } from "./legend.js";
import { loadPanel } from "./load-panel.js";
import { logPanel, news } from "./log-panel.js";
import { combobox } from "./names.js";
import { fabricPanel } from "./fabric-panel.js";
import { nodePanel } from "./node-panel.js";
import { notices, notLoaded } from "./notice.js";
import { pathPanel } from "./path-panel.js";
import { levelled } from "./rows.js";
import { problemsPanel } from "./problems-panel.js";
import { rtrsPanel } from "./rtrs-panel.js";
import { Stage } from "./stage.js";
import { State } from "./state.js";
import { tabs } from "./tabs.js";

const HEARD = 100; // log lines that the server sends to a new connection
const state = new State(), root = document.documentElement;
const report = (line, problem = false) => {
  byId("status").textContent = line;
  byId("status").classList.toggle("problem", problem);
};
// Removes a reported error, unless a newer one has replaced it.
const settle = (line) => { if (byId("status").textContent === line) report(""); };

themes();
try {
  state.fabric = new Fabric(await get("fabric"));
  start();
} catch (error) {
  notLoaded(error);
  if (error.status === undefined) throw error;
}

function start() {
  const { fabric } = state, wanted = new URLSearchParams(location.search);
  byId("name").textContent = fabric.name;
  document.title = `${fabric.name} – ibfabric up`;
  byId("summary").textContent = `${many(fabric.hosts, "host")}, ${many(fabric.nodes.length - fabric.hosts, "switch", "switches")}, ${many(fabric.links.length, "link")}`;
  if (levelled(fabric)) state.layout = "force";
  document.querySelector(`[name=layout][value=${state.layout}]`).checked = true;
  const stage = new Stage(byId("stage"), state, { flat: wanted.get("gl") === "0" });
  const goTo = (node) => stage.goTo(node), tools = { report, settle, goTo };
  const node = nodePanel(state, tools), path = pathPanel(state, tools);
  const problems = problemsPanel(state, tools);
  const parts = [
    ["problems", "Problems", problems], ["node", "Node", node], ["path", "Path", path], ["load", "Load", loadPanel(state)],
    ["acm", "ACM", acmPanel(state, tools)], ["rtrs", "RTRS", rtrsPanel(state, tools)], ["fabric", "Fabric", fabricPanel(state, tools)], ["log", "Log", logPanel(state)],
  ].map(([id, title, { element }]) => ({ id, title, element }));
  const open = tabs(byId("tabs"), byId("panels"), parts, state);
  legend(byId("legend"), state);
  notices(state, { open, report });
  choices();
  byId("zoom-in").addEventListener("click", () => stage.zoom(1.5));
  byId("zoom-out").addEventListener("click", () => stage.zoom(1 / 1.5));
  byId("zoom-fit").addEventListener("click", () => stage.fit());
  byId("help-open").addEventListener("click", () => byId("help").showModal());
  combobox(byId("find"), byId("found"), state, ({ id }) => {
    state.choose(id);
    stage.goTo(id);
    open("node");
    byId("stage").focus();
  });

  // A click on a host while a pair is picked, or with Shift, sets an end of the pair.
  const end = (id) => {
    if (fabric.nodes[id].kind !== "host") return report(`${fabric.nodes[id].name} is not a host: a path leads from host to host.`);
    const which = state.picking ?? (state.pair[0] === null || state.pair[1] !== null ? 0 : 1);
    state.set("picking", { picking: state.picking === 0 ? 1 : null });
    state.setPair(...(which ? [state.pair[0], id] : [id, null]));
    report(which ? "" : `From ${fabric.nodes[id].name} to … choose another host.`);
    return open("path");
  };
  pointers(stage, state, (target, event) => {
    if (target.node !== undefined && (event.shiftKey || state.picking !== null)) end(target.node);
    else if (target.node !== undefined) choose(() => state.choose(target.node));
    else if (target.link !== undefined) choose(() => state.chooseLink(target.link));
    else state.choose(null);
  });
  const choose = (act) => {
    act();
    if (!["node", "acm"].includes(state.tab)) open("node");
  };
  keys(stage, state, {
    find: () => byId("find").select(), cut: () => node.toggle(), help: () => byId("help").showModal(), end,
    pick: () => { open("path"); path.start(); byId("stage").focus(); },
    tab: (index) => open(parts[index].id, true),
    escape: () => {
      if (state.picking !== null) state.set("picking", { picking: null });
      else if (state.node !== null || state.link !== null) state.choose(null);
      else if (state.pair.some((own) => own !== null)) state.setPair(null, null);
      report("");
    },
  });
  // Shows a pair that another part of the page has set.
  state.on("pair", () => { if (!state.pair.includes(null) && state.tab !== "node") open("path"); });
  state.on("status", () => report(state.status, true));
  byId("health").addEventListener("click", () => open("problems"));
  state.on("links missing manager", () => {
    byId("tab-problems").textContent = problems.count() === "0" ? "Problems" : `Problems ${problems.count()}`;
  });
  live();
  keepAddress(state, open, (own) => stage.goTo(own));
  surface(stage, open);
}

/** Shows the summary of the state in the header. */
function showHealth() {
  const health = byId("health"), { kind, parts } = healthOf(state);
  const shown = JSON.stringify([kind, parts]);
  if (health.dataset.shown === shown) return;
  Object.assign(health.dataset, { shown, kind });
  health.replaceChildren(h("span", { "aria-hidden": "true" }, { good: "●", busy: "◐", bad: "✕", unknown: "?" }[kind]), ` ${parts.join(" · ")}`);
  document.title = `${kind === "good" ? "" : "! "}${state.fabric.name} – ibfabric up`;
}

// Subscribes to the events of the server.
function live() {
  const { fabric } = state, connection = byId("connection"), manager = byId("manager");
  let heard = []; // last log lines, compared with the first ones of a new connection
  listen((event, first) => {
    Object.assign(state, { time: event.time, manager: event.sm, now: [event.time, Date.now()], heard: true });
    const lines = first ? news(heard, event.log ?? []) : event.log ?? [];
    heard = [...heard, ...lines].slice(-HEARD);
    state.log.push(...lines);
    const topics = ["manager", ...(lines.length ? ["log"] : [])];
    if (fabric.setDown(event.down, event.since)) topics.push("links");
    if (fabric.setMissing(event.missing)) topics.push("missing");
    if (fabric.setTraffic(event.traffic)) topics.push("traffic");
    if (state.routes !== event.routes) {
      state.routes = event.routes;
      topics.push("routes");
    }
    state.tell(...topics);
    root.dataset.routes = String(event.routes);
    root.dataset.down = fabric.downList.join(" ");
  }, (how, line) => {
    if (how === "live" && state.connected === false) report("Connected again.");
    else if (line) report(line, true);
    connection.replaceChildren(mark(how, ["lost", "exited"].includes(how) ? "no connection" : how));
    if (how !== "connecting") state.set("connection", { connected: how === "live", connection: how });
  });
  connection.replaceChildren(mark("connecting"));
  state.on("manager connection", () => {
    showHealth();
    if (!state.manager) return;
    const { state: own, sweeps, followed } = state.manager;
    // After a disconnect the last state is obsolete.
    manager.hidden = state.connected === false;
    manager.replaceChildren("SM ", mark(own), ` ${many(sweeps, "sweep")}, ${many(followed, "partial sweep")}`);
  });
  showHealth();
  // Loads are requested when a part shows them, and again when the routes have changed.
  let loaded = null, asking = false, problem = null;
  const again = new Retry();
  const load = async () => {
    if (asking || loaded === state.routes || (state.colour !== "load" && state.tab !== "load" && state.link === null)) return;
    asking = true;
    try {
      const answer = await get("load");
      fabric.setLoad(answer);
      state.engine = answer.engine;
      loaded = answer.routes;
      again.reset();
      settle(problem);
      problem = null;
      state.tell("load");
    } catch (error) {
      problem = error.message;
      report(problem, true);
      again.later(load);
    }
    asking = false;
    // If the response is older than the events, it is requested again after a pause.
    if (problem === null && loaded !== state.routes) setTimeout(load, 300);
  };
  state.on("routes colour tab selection", () => { again.reset(); load(); });
  state.on("connection", () => { if (state.connected) load(); });
}

function choices() {
  for (const input of document.querySelectorAll("[name=layout], [name=colour]")) {
    input.addEventListener("change", () => state.set(input.name, { [input.name]: input.value }));
  }
}

function themes() {
  const dark = matchMedia("(prefers-color-scheme: dark)"), select = byId("theme");
  const apply = () => {
    const theme = select.value === "auto" ? (dark.matches ? "dark" : "light") : select.value;
    root.dataset.theme = theme;
    state.set("theme", { theme });
  };
  try { select.value = localStorage.getItem("theme") ?? "auto"; } catch { /* nothing can be kept: the choice lasts as long as the page */ }
  select.addEventListener("change", () => {
    try { localStorage.setItem("theme", select.value); } catch { /* as above */ }
    apply();
  });
  dark.addEventListener("change", apply);
  apply();
}

/**
 * Interface for tests and measurements. `document.documentElement.dataset` has `ready`, `routes`, `down` (links) and
 * `theme`; the dataset of `#stage` has `drawn` and `settled`; `window.ibfabric` has these functions.
 */
function surface(stage, open) {
  const { fabric } = state;
  window.ibfabric = {
    renderer: stage.painter.name,
    /** Returns the nodes as the server describes them. */
    nodes: () => fabric.nodes,
    /** Returns the position of a node in the window, in CSS pixels. */
    nodeAt: (id) => stage.nodeAt(id),
    /** Returns a position on a link in the window; `part` is the fraction of its length from end a. */
    linkAt: (id, part) => stage.linkAt(id, part),
    /** Returns the present path and the former one. */
    path: () => ({ path: state.path, former: state.former }),
    /** Opens a tab. */
    open,
    /** Moves the drawing for some milliseconds like a user; returns the times between frames. */
    tour: (ms) => tour(stage, ms),
  };
  root.dataset.ready = "true";
  root.dataset.nodes = number(fabric.nodes.length);
}

function tour(stage, ms) {
  return new Promise((finish) => {
    const times = [], begun = performance.now();
    let before = null;
    const step = (time) => {
      if (before !== null) times.push(time - before);
      const since = time - begun, turn = since / 1000, { width, height } = stage.camera;
      if (since > ms) return finish(times);
      const part = before === null ? 0 : (time - before) / 1000;
      before = time;
      stage.zoom(Math.exp(1.1 * Math.sin(turn * 1.3) * part), width * (0.5 + 0.3 * Math.sin(turn)), height * 0.5);
      stage.pan(width * 0.5 * Math.cos(turn * 1.7) * part, height * 0.3 * Math.sin(turn * 2.3) * part);
      return requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  });
}
