// The selection is stored in the address behind `#`, so that reloads keep it and links to a node can be shared.
//
// `tab`, `node` with `port`, `link`, `from` and `to`: nodes by their names, a link by the node and port of its end a.

const NAMES = ["tab", "node", "port", "link", "from", "to"];

/** Returns the address fragment of the selection. */
export function fragmentOf(state) {
  const { fabric } = state, name = (node) => (node === null ? null : fabric.nodes[node].name);
  const end = state.link === null ? null : fabric.links[state.link].a;
  const values = {
    tab: state.tab, node: name(state.node), port: state.node === null ? null : state.port,
    link: state.node === null && end ? `${name(end[0])}:${end[1]}` : null, from: name(state.pair[0]), to: name(state.pair[1]),
  };
  const parameters = new URLSearchParams();
  for (const key of NAMES) if (values[key] !== null) parameters.set(key, String(values[key]));
  return `#${parameters}`;
}

/** Applies a fragment to the selection; unknown names are ignored. `open` opens a tab. */
export function apply(fragment, state, open) {
  const { fabric } = state, wanted = new URLSearchParams(fragment.replace(/^#/, ""));
  const node = (key) => fabric.names.get(wanted.get(key)) ?? null;
  const host = (key) => { const id = node(key); return id !== null && fabric.nodes[id].kind === "host" ? id : null; };
  const [from, to] = [host("from"), host("to")];
  if (from !== null || to !== null) state.setPair(from, to);
  const [, name, port] = /^(.*):(\d+)$/.exec(wanted.get("link") ?? "") ?? [];
  const link = fabric.names.has(name) ? fabric.linkAt(fabric.names.get(name), Number(port)) : null;
  if (node("node") !== null) state.choose(node("node"), /^\d+$/.test(wanted.get("port") ?? "") ? Number(wanted.get("port")) : null);
  else if (link !== null) state.chooseLink(link);
  if (wanted.has("tab")) open(wanted.get("tab"));
  return node("node");
}

/** Keeps the address and the selection in sync. */
export function keepAddress(state, open, show) {
  const begin = apply(location.hash, state, open);
  if (begin !== null) show(begin);
  const write = () => {
    const fragment = fragmentOf(state);
    if (fragment !== location.hash) history.replaceState(null, "", fragment);
  };
  state.on("selection pair tab", write);
  window.addEventListener("hashchange", () => {
    const node = apply(location.hash, state, open);
    if (node !== null) show(node);
  });
  write();
}
