// Draws the fabric: links and switches on one canvas, what is pointed out on another above it.
// What the reader does with the drawing is in explore.js.

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("fabric-data").textContent);
const { names, hosts, x: X, y: Y } = data;
const stage = byId("stage"), base = byId("base"), over = byId("overlay");
const rows = data.shape === "rows", circle = data.shape === "circle";
const PITCH = 100; // between neighbouring switches, in the data's unit
const MARGIN = 84; // around the fabric, in pixels like all that follows
const MAX_PITCH = 130;
byId("fabric").classList.add("scripted");

// A bundle is all cables between two switches. A half of it is the part next to one end, which
// has the colour of the routes that leave there; it is written 2 × bundle + end.
const classOf = (load) => (load ? 1 + data.bounds.filter((bound) => bound <= load).length : 0);
const bundlesOf = names.map(() => []);
const halves = []; // by 8 × class of load + number of cables
const bundles = data.bundles.map(([a, b, bend, ...flat], index) => {
  const bundle = { ends: [a, b], bend, cables: [], most: [0, 0] };
  for (let at = 0; at < flat.length; at += 4) {
    bundle.cables.push({ ports: flat.slice(at, at + 2), routes: flat.slice(at + 2, at + 4) });
  }
  bundle.ends.forEach((end, side) => {
    bundlesOf[end].push(index);
    bundle.most[side] = Math.max(...bundle.cables.map((cable) => cable.routes[side]));
    const style = 8 * classOf(bundle.most[side]) + Math.min(bundle.cables.length, 7);
    (halves[style] ??= []).push(2 * index + side);
  });
  return bundle;
});
const bothHalves = (half) => [half & ~1, half | 1];
function halfAt([from, port]) {
  for (const index of bundlesOf[from]) {
    const side = bundles[index].ends.indexOf(from);
    if (bundles[index].cables.some((cable) => cable.ports[side] === port)) return 2 * index + side;
  }
}
const hot = data.hot.map(halfAt), loops = data.loops.map((loop) => loop.map(halfAt));

// The view says where the fabric's coordinates are on the screen.
let width = 0, height = 0, view, painted, cost = 0, settling = 0, asked = false, colours;
let hovered = {}, chosen = {}, matches = []; // a node or a bundle, or neither
const atX = (node) => X[node] * view.kx + view.tx;
const atY = (node) => Y[node] * view.ky + view.ty;
const inSight = (node) => atX(node) > -20 && atX(node) < width + 20 && atY(node) > -20 && atY(node) < height + 20;
const pitch = () => view.kx * PITCH;
const boxWidth = () => Math.max(2, Math.min(22, pitch() * 0.55));
const boxHeight = () => Math.max(rows ? 8 : 4, boxWidth());
function fit() {
  const [wide, high] = data.extent.map((size) => Math.max(size, 1));
  let kx = Math.min((width - 2 * MARGIN) / wide, MAX_PITCH / PITCH);
  let ky = rows ? (height - 2 * MARGIN) / high : Math.min((height - 2 * MARGIN) / high, kx);
  if (!rows) kx = ky;
  const [left, top] = [X, Y].map((values) => values.reduce((a, b) => Math.min(a, b)));
  const tx = (width - data.extent[0] * kx) / 2 - left * kx;
  view = { kx, ky, tx, ty: (height - data.extent[1] * ky) / 2 - top * ky };
}

function halfLine(half) {
  const { ends, bend } = bundles[half >> 1];
  const near = ends[half & 1], far = ends[1 - (half & 1)];
  const ax = atX(near), ay = atY(near), bx = atX(far), by = atY(far);
  const upright = X[near] === X[far];
  const px = upright ? (bend * view.kx) / 2 : 0, py = upright ? 0 : (bend * view.ky) / 2;
  // From a switch to the middle of the link, and the control point of the curve between them.
  return { ax, ay, cx: (3 * ax + bx) / 4 + px, cy: (3 * ay + by) / 4 + py, mx: (ax + bx) / 2 + px, my: (ay + by) / 2 + py };
}
function stroke(context, list, colour, lineWidth) {
  context.beginPath();
  for (const half of list) {
    const { ax, ay, cx, cy, mx, my } = halfLine(half);
    context.moveTo(ax, ay);
    if (bundles[half >> 1].bend) context.quadraticCurveTo(cx, cy, mx, my);
    else context.lineTo(mx, my);
  }
  context.strokeStyle = colour;
  context.lineWidth = lineWidth;
  context.stroke();
}
const thin = () => Math.max(0.5, Math.min(2.2, pitch() / 14));
function emphasise(context, list, more) {
  stroke(context, list, colours.sheet, thin() + more + 3);
  for (const half of list) {
    stroke(context, [half], colours.load[classOf(bundles[half >> 1].most[half & 1])], thin() + more);
  }
}
function arrows(context, list) {
  context.fillStyle = colours.loop;
  for (const { ax, ay, cx, cy, mx, my } of list.map(halfLine)) {
    context.save();
    context.translate((ax + 2 * cx + mx) / 4, (ay + 2 * cy + my) / 4);
    context.rotate(Math.atan2(my - ay, mx - ax));
    context.fill(new Path2D("M9 0L-6-7V7Z"));
    context.restore();
  }
}

function drawSwitch(context, node) {
  const w = boxWidth(), h = boxHeight(), x = atX(node), y = atY(node);
  if (!inSight(node)) return;
  context.fillStyle = hosts[node].length ? colours.node : w > 4 ? colours.sheet : colours.faint;
  context.fillRect(x - w / 2, y - h / 2, w, h);
  context.strokeStyle = colours.node;
  context.lineWidth = 1.5;
  if (w > 4) context.strokeRect(x - w / 2, y - h / 2, w, h);
  if (w < 15 || !hosts[node].length) return;
  context.fillStyle = colours.sheet;
  context.textAlign = "center";
  context.fillText(hosts[node].length, x, y);
}
function write(context, text, x, y, colour) {
  context.strokeStyle = colours.sheet;
  context.lineWidth = 3;
  context.strokeText(text, x, y);
  context.fillStyle = colour;
  context.fillText(text, x, y);
}
function drawName(context, node) {
  const room = data.room[node] * view.kx, lowest = Y[node] === data.extent[1];
  const rim = circle || (rows && (lowest || Y[node] === 0)); // where a name may stand on end
  if (room < (rim ? 10 : 48)) return;
  const flat = !circle && room >= 48;
  const grid = !rows && !circle, w = boxWidth(), h = boxHeight();
  const most = Math.floor((grid ? room - w / 2 - 6 : flat ? room - 6 : MARGIN - 16) / 6.6);
  const name = names[node].length > most ? "…" + names[node].slice(1 - most) : names[node];
  let turn = flat ? 0 : circle ? Math.atan2(Y[node], X[node]) : lowest ? Math.PI / 2 : -Math.PI / 2;
  const back = Math.abs(turn) > Math.PI / 2 + 0.01; // else it would be upside down
  if (back) turn += Math.PI;
  const away = (h / 2 + (flat ? 9 : 5)) * (back || (flat && rows && !lowest) ? -1 : 1);
  const [x, y] = grid ? [w / 2 + 3, away] : flat ? [0, away] : [away, 0];
  context.save();
  context.font = `${flat ? 11 : 10}px system-ui, sans-serif`;
  context.translate(atX(node), atY(node));
  context.rotate(turn);
  context.textAlign = grid ? "start" : flat ? "center" : back ? "end" : "start";
  write(context, name, x, y, colours.ink);
  context.restore();
}

function cleared(canvas) {
  const context = canvas.getContext("2d"), ratio = Math.min(window.devicePixelRatio || 1, 2);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  context.scale(ratio, ratio);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  return context;
}
function paintBase() {
  const start = performance.now(), context = cleared(base);
  base.style.transform = "";
  painted = { ...view };
  halves.forEach((list, style) => {
    const load = style >> 3, cables = style & 7;
    context.globalAlpha = Math.min(1, pitch() / 25 + (load > 5 ? 900 : 300) / list.length + 0.12) * (load ? 1 : 0.6);
    context.setLineDash(load === 0 && list.length < 2000 ? [3, 3] : []);
    // Links of switches out of sight would only be in the way.
    const seen = list.filter((half) => inSight(bundles[half >> 1].ends[half & 1]));
    stroke(context, seen, colours.load[load], thin() * (0.4 + 0.6 * cables));
  });
  context.globalAlpha = 1;
  context.setLineDash([]);
  names.forEach((_, node) => drawSwitch(context, node));
  names.forEach((_, node) => drawName(context, node));
  cost = performance.now() - start;
}
function paintOverlay() {
  const context = cleared(over), touched = new Set();
  const light = (list, more) => {
    emphasise(context, list, more);
    for (const half of list) touched.add(bundles[half >> 1].ends[half & 1]);
  };
  const nothingChosen = chosen.node === undefined && chosen.bundle === undefined;
  base.classList.toggle("dim", !nothingChosen);
  if (nothingChosen && byId("show-hot").checked) light([...hot].reverse().flatMap(bothHalves), 1.5);
  if (byId("show-loops").checked) {
    const whole = loops.flat().flatMap(bothHalves);
    stroke(context, whole, colours.sheet, thin() + 6);
    stroke(context, whole, colours.loop, thin() + 2.5);
    arrows(context, loops.flat());
    for (const half of whole) touched.add(bundles[half >> 1].ends[half & 1]);
  }
  for (const { node, bundle } of [chosen, hovered]) {
    const lit = bundle !== undefined ? [bundle] : node === chosen.node || nothingChosen ? bundlesOf[node] : [];
    light((lit ?? []).flatMap((index) => bothHalves(2 * index)), bundle === undefined ? 0.5 : 2.5);
  }
  const shown = nothingChosen && names.length <= 500 ? [...names.keys()] : [...touched];
  for (const node of shown) drawSwitch(context, node);
  for (const node of shown) drawName(context, node);
  const pointed = [chosen.node, hovered.node].filter((node) => node !== undefined);
  for (const [nodes, colour] of [[data.faulty, colours.bad], [matches, colours.accent], [pointed, colours.accent]]) {
    context.strokeStyle = colour;
    context.lineWidth = 2.5;
    for (const node of nodes) {
      context.beginPath();
      context.arc(atX(node), atY(node), boxHeight() / 2 + 5, 0, 2 * Math.PI);
      context.stroke();
    }
  }
  context.textAlign = "left";
  for (const [at, name] of data.rows) write(context, name, 6, at * view.ky + view.ty - 14, colours.faint);
}
function paint() {
  asked = false;
  if (cost > 25 && painted) {
    // Too much to draw at every step: the old picture is stretched until the view is at rest.
    const fx = view.kx / painted.kx, fy = view.ky / painted.ky;
    base.style.transform = `matrix(${fx},0,0,${fy},${view.tx - painted.tx * fx},${view.ty - painted.ty * fy})`;
    clearTimeout(settling);
    if (Object.keys(view).some((key) => view[key] !== painted[key])) settling = setTimeout(paintBase, 120);
  } else paintBase();
  paintOverlay();
}
function repaint() {
  if (!asked) requestAnimationFrame(paint);
  asked = true;
}
function prepare() {
  const computed = getComputedStyle(document.documentElement);
  const colour = (name) => computed.getPropertyValue(`--${name}`).trim();
  colours = { load: [...Array(10).keys()].map((load) => colour(`load-${load}`)) };
  for (const name of ["sheet", "ink", "faint", "node", "bad", "loop", "accent"]) colours[name] = colour(name);
  stage.style.background = colours.sheet; // On paper too: the canvas keeps its colours.
  ({ clientWidth: width, clientHeight: height } = stage);
  if (!view) fit();
  paintBase();
  paintOverlay();
}
