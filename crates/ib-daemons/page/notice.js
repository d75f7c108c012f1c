// The notice above the drawing: a state of the fabric or of the server in which the drawing alone would mislead, with the
// cause and the next step.

import { post } from "./api.js";
import { byId, h, renew } from "./dom.js";
import { many, number } from "./format.js";

const AGAIN = "Run ibfabric up again, and open the address that it prints after “page:”.";
const time = (ms) => new Date(ms).toLocaleTimeString();

/** Shows the notice in the element `#notice`. `open` opens a tab. */
export function notices(state, { open, report }) {
  const paint = () => show(noticeOf(state), {
    problems: () => open("problems", true),
    restore: (link) => post("link", { link, up: true }).catch((error) => report(error.message, true)),
  });
  state.on("links missing manager connection", paint);
  paint();
}

/** Shows the notice that the fabric could not be loaded. */
export const notLoaded = (error) => show({
  kind: error.status === null ? "ended" : "broken", title: "The fabric cannot be loaded", text: error.message,
  step: error.status === null ? AGAIN : "Load the page again. If that fails, read the messages of ibfabric up in its terminal.",
  actions: [["Load again", "reload"]],
}, { reload: () => location.reload() });

function show(notice, acts) {
  const element = byId("notice");
  element.hidden = !notice;
  if (!notice) return;
  const { kind, title, text, step, actions = [] } = notice;
  element.dataset.kind = kind;
  renew(element,
    h("h2", { id: "notice-title" }, title), h("p", {}, text), h("p", { class: "step" }, step),
    ...(actions.length ? [h("p", { class: "buttons" }, actions.map(([label, act, value]) => h("button", { type: "button", click: () => acts[act](value) }, label)))] : []));
}

/**
 * Returns the notice for a state of the page, or null if there is none: its `kind` ("ended", "lost", "waiting", "empty" or
 * "broken"), `title`, `text`, `step`, and `actions` as [label, action, value].
 */
export function noticeOf(state) {
  const { fabric, manager, connection, now, heard } = state;
  if (["ended", "exited", "lost"].includes(connection)) return disconnected(connection, heard ? now[1] : null);
  if (!heard) return null;
  if (!fabric.hosts) {
    return {
      kind: "empty", title: "This fabric has no hosts",
      text: `It has ${many(fabric.nodes.length, "switch", "switches")} and no HCA. So there are no paths between hosts, no ACM services and no block device.`,
      step: "Add nodes of the type Ca to the fabric file and run ibfabric up with it. Without a file, ibfabric up has 32 hosts.",
    };
  }
  // A subnet manager without a link has no routes either. The link is the cause.
  return (isCutOff(fabric) ? null : subnet(state, manager)) ?? unreached(state);
}

function disconnected(connection, since) {
  const last = since === null ? "" : ` The page shows the last state, of ${time(since)}.`;
  if (connection === "lost") {
    return {
      kind: "lost", title: "ibfabric up does not respond", text: `The process may be stopped or busy.${last}`,
      step: "The page reconnects when the process responds. A process that a shell has stopped continues with fg.",
    };
  }
  return { kind: "ended", title: "ibfabric up has exited", text: `The address of this page is no longer served.${last}`, step: AGAIN };
}

// Returns the notice about the SM and its routes.
function subnet({ fabric }, manager) {
  if (!manager) {
    return {
      kind: "broken", title: "No subnet manager runs", text: "Nodes get no LIDs and switches no LFTs.",
      step: `Run ibfabric sm --ibsim=${fabric.socket}.`,
    };
  }
  const alarm = (kind) => manager.alarms.find((own) => own.kind === kind), actions = [["Show problems", "problems"]];
  const plan = alarm("no_plan"), loops = alarm("credit_loops"), pairs = alarm("unreachable");
  if (plan) return { kind: "broken", title: "The subnet manager has no routes", text: plan.reason, step: "Run ibfabric up with another routing engine: -R auto.", actions };
  if (!manager.up) {
    return {
      kind: "waiting", title: "The subnet is not up yet", text: `The subnet manager (${manager.state}) assigns LIDs and routes to ${many(fabric.nodes.length, "node")}.`,
      step: "The page follows by itself. A fabric of 10,000 hosts takes less than a minute.",
    };
  }
  if (loops) {
    return {
      kind: "broken", title: `The routes have ${many(loops.loops, "credit loop")}`,
      text: `Packets on the routes of ${loops.engine} can wait for one another's buffers in a cycle, so the fabric can deadlock under load.`,
      step: loops.avoided_by ? `Run ibfabric up with -R ${loops.avoided_by}, whose routes have no credit loop.` : `None of the tried engines avoids it: ${loops.tried.join(", ")}.`, actions,
    };
  }
  if (pairs) {
    return {
      kind: "broken", title: `${many(pairs.host_pairs, "host pair")} unreachable`, text: "The LFTs of the switches lose packets of these pairs, although cables connect them.",
      step: pairs.reached_by ? `Run ibfabric up with -R ${pairs.reached_by}, whose routes reach more pairs.` : "Restore the links that are down.", actions,
    };
  }
  return null;
}

// Returns true if the SM reaches no node but its own.
const isCutOff = ({ missingList, nodes }) => nodes.length > 1 && missingList.length === nodes.length - 1;

// Returns the notice about nodes that no active link leads to.
function unreached({ fabric, manager }) {
  const { missingList: missing, downList: down, nodes } = fabric, single = down.length === 1;
  if (!missing.length) return null;
  const alone = isCutOff(fabric);
  return {
    kind: "broken",
    title: alone ? "The subnet manager reaches no other node" : `${number(missing.length)} of ${number(nodes.length)} nodes not reached`,
    text: alone ? `It runs at ${manager.node === null ? "the first host" : fabric.label(manager.node)}, and no link of this node is active. Changes of the fabric have no effect on routes.`
      : `No path over active links leads from the subnet manager to ${missing.length === 1 ? "this node" : "these nodes"}. ${many(down.length, "link")} down.`,
    step: single ? "Restore the link." : "Restore links: choose one in the list of problems.",
    actions: [...(single ? [[`Restore link ${down[0]}`, "restore", down[0]]] : []), ["Show problems", "problems"]],
  };
}
