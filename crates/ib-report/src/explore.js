// What the reader does with the drawing: pointing, choosing, moving, zooming and finding.

const tip = byId("tip"), panel = byId("panel"), search = byId("find");
const number = (value) => value.toLocaleString("en");
const many = (count, one) => `${number(count)} ${one}${count === 1 ? "" : "s"}`;
const loaded = (routes) => `${many(routes, "route")}${data.mean ? ` (${(routes / data.mean).toFixed(2)} × mean)` : ""}`;

function hit(x, y) {
  let least = Math.max(7, boxHeight() / 2 + 3), best = {};
  names.forEach((_, node) => {
    const distance = Math.hypot(atX(node) - x, atY(node) - y);
    if (distance < least) [least, best] = [distance, { node }];
  });
  if (best.node !== undefined) return best;
  least = 5;
  // Once a switch is chosen, only its links can be pointed at.
  for (const bundle of bundlesOf[chosen.node] ?? bundles.keys()) {
    const { ends: [a, b], bend } = bundles[bundle];
    const left = Math.min(X[a], X[b]) * view.kx + view.tx, right = Math.max(X[a], X[b]) * view.kx + view.tx;
    if (!bend && (x < left - least || x > right + least)) continue;
    for (const { ax, ay, cx, cy, mx, my } of bothHalves(2 * bundle).map(halfLine)) {
      const qx = (ax + 2 * cx + mx) / 4, qy = (ay + 2 * cy + my) / 4;
      const distance = Math.min(toLine(x, y, ax, ay, qx, qy), toLine(x, y, qx, qy, mx, my));
      if (distance < least) [least, best] = [distance, { bundle }];
    }
  }
  return best;
}
function toLine(x, y, ax, ay, bx, by) {
  const along = ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / ((bx - ax) ** 2 + (by - ay) ** 2 || 1);
  const at = Math.max(0, Math.min(1, along));
  return Math.hypot(ax + at * (bx - ax) - x, ay + at * (by - ay) - y);
}

function about({ node, bundle }) {
  if (node !== undefined) {
    const some = hosts[node].slice(0, 6).join(", ");
    const others = hosts[node].length > 6 ? ` and ${number(hosts[node].length - 6)} more` : "";
    const links = bundlesOf[node].reduce((sum, index) => sum + bundles[index].cables.length, 0);
    return `${names[node]}\n${data.guids[node]}, LID ${data.lids[node]}\n` +
      `${many(links, "link")} to switches, ${many(hosts[node].length, "host")}${some && ": "}${some}${others}`;
  }
  const { ends, cables } = bundles[bundle];
  const lines = cables.slice(0, 4).flatMap(({ ports, routes }) => [0, 1].map((side) =>
    `port ${ports[side]} → port ${ports[1 - side]} of ${names[ends[1 - side]]}: ${loaded(routes[side])}`));
  return [`${names[ends[0]]} – ${names[ends[1]]}`, ...lines].join("\n") + (cables.length > 4 ? `\nand ${cables.length - 4} more cables` : "");
}
function point(target, x, y) {
  const same = target.node === hovered.node && target.bundle === hovered.bundle;
  hovered = target;
  tip.hidden = target.node === undefined && target.bundle === undefined;
  if (!tip.hidden) {
    tip.textContent = about(target);
    tip.style.left = `${Math.max(0, Math.min(x + 14, width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${y + 18 + tip.offsetHeight < height ? y + 18 : Math.max(0, y - tip.offsetHeight - 10)}px`;
  }
  over.style.cursor = tip.hidden ? "" : "pointer";
  if (!same) paintOverlay();
}

function choose(target) {
  chosen = target;
  panel.replaceChildren();
  panel.hidden = target.node === undefined;
  if (!panel.hidden) listLinks(target.node);
  paintOverlay();
}
function listLinks(node) {
  const add = (parent, tag, text = "") => {
    const element = parent.appendChild(document.createElement(tag));
    element.textContent = text;
    return element;
  };
  add(panel, "h3", `Links of ${names[node]}`);
  const table = add(panel, "table"), head = add(add(table, "thead"), "tr"), body = add(table, "tbody");
  for (const title of ["Port", "To", "Port", "Routes out", "Routes in"]) add(head, "th", title);
  const links = bundlesOf[node].flatMap((index) => {
    const { ends, cables } = bundles[index], side = ends.indexOf(node);
    return cables.map(({ ports, routes }) => [ports[side], names[ends[1 - side]], ports[1 - side], loaded(routes[side]), loaded(routes[1 - side])]);
  });
  for (const link of links.sort((a, b) => a[0] - b[0])) {
    const row = add(body, "tr");
    for (const cell of link) add(row, "td", cell);
  }
}

function zoom(by, x = width / 2, y = height / 2) {
  if (!by) fit();
  else {
    const factor = Math.max(0.5, Math.min(by * pitch(), 400)) / pitch();
    view.tx = x - (x - view.tx) * factor;
    view.kx *= factor;
    // A tree is stretched sideways only, so that all its rows stay in sight.
    if (!rows) view.ty = y - (y - view.ty) * factor;
    if (!rows) view.ky *= factor;
  }
  repaint();
}
function move(x, y) {
  view.tx += x;
  if (!rows) view.ty += y;
  repaint();
}
function show(nodes) {
  const middle = (of) => nodes.reduce((sum, node) => sum + of(node), 0) / nodes.length;
  move(width / 2 - middle(atX), height / 2 - middle(atY));
}

let dragged = null;
over.addEventListener("pointerdown", (event) => {
  over.setPointerCapture(event.pointerId);
  dragged = { x: event.offsetX, y: event.offsetY, far: false };
});
over.addEventListener("pointermove", (event) => {
  const { offsetX: x, offsetY: y } = event;
  if (!dragged) return point(hit(x, y), x, y);
  dragged.far ||= Math.hypot(x - dragged.x, y - dragged.y) > 4;
  if (!dragged.far) return;
  move(x - dragged.x, y - dragged.y);
  Object.assign(dragged, { x, y });
});
over.addEventListener("pointerup", ({ offsetX: x, offsetY: y }) => {
  if (dragged && !dragged.far) choose(hit(x, y));
  dragged = null;
});
over.addEventListener("pointercancel", () => { dragged = null; });
over.addEventListener("pointerleave", () => point({}));
over.addEventListener("wheel", (event) => {
  if (document.activeElement !== over && !event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
}, { passive: false });
const keys = {
  "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), 0: () => zoom(0), Escape: () => choose({}),
  ArrowLeft: () => move(80, 0), ArrowRight: () => move(-80, 0), ArrowUp: () => move(0, 80), ArrowDown: () => move(0, -80),
};
over.addEventListener("keydown", (event) => {
  if (!Object.hasOwn(keys, event.key) || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  keys[event.key]();
});
for (const button of document.querySelectorAll("[data-zoom]")) {
  button.addEventListener("click", () => zoom(Number(button.dataset.zoom)));
}
for (const button of document.querySelectorAll("[data-link]")) {
  button.addEventListener("click", () => {
    choose({ bundle: halfAt(button.dataset.link.split(",").map(Number)) >> 1 });
    show(bundles[chosen.bundle].ends);
    stage.scrollIntoView({ block: "center" });
  });
}
for (const id of ["show-hot", "show-loops"]) byId(id).addEventListener("change", paintOverlay);

let turn = -1;
search.addEventListener("input", () => {
  const wanted = search.value.trim().toLowerCase();
  const fits = (text) => text.toLowerCase().includes(wanted);
  matches = wanted ? [...names.keys()].filter((node) => fits(names[node]) || fits(data.guids[node]) || hosts[node].some(fits)) : [];
  byId("found").textContent = wanted && many(matches.length, "switch").replace("hs", "hes") + (matches.length ? ", Enter for the next" : "");
  turn = -1;
  paintOverlay();
});
search.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || matches.length === 0) return;
  turn = (turn + 1) % matches.length;
  choose({ node: matches[turn] });
  show([matches[turn]]);
});

new ResizeObserver(() => {
  if (stage.clientWidth === width && stage.clientHeight === height) return;
  view = undefined;
  prepare();
}).observe(stage);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", prepare);
prepare();
