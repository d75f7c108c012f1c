// Draws messages as bars over time, a group of rows for each pair of queue pairs.

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("timeline-data").textContent);
const stage = byId("stage"), canvas = byId("bars"), tip = byId("tip");
const context = canvas.getContext("2d");
const PARTS = ["queue", "wire", "receive", "completion"];
const NARROW = 1.5, ROW = 13, GAP = 22, AXIS = 24, MOST_ROWS = 24;
byId("timeline").classList.add("scripted");

// A message: its pair, when it begins and ends in us, its parts as [name, from, to], and what it is.
const messages = data.messages.map(([pair, sent, queue, wire, receive, completion, flight, kind, psn, bytes, again]) => {
  const parts = [];
  let at = sent - (queue ?? 0);
  const begin = at;
  const add = (name, length) => {
    if (length !== null) parts.push([name, at, (at += Math.max(length, 0))]);
  };
  add("queue", queue);
  at = sent;
  if (wire !== null && receive !== null && completion !== null) {
    add("wire", wire); add("receive", receive); add("completion", completion);
  } else if (flight !== null) add("flight", flight);
  else { add("wire", wire); if (wire !== null) add("receive", receive); }
  return { pair, begin, end: at, parts, what: { queue, wire, receive, completion, flight, kind, psn, bytes, again } };
}).sort((a, b) => a.begin - b.begin);

// Messages that are under way together are on different rows of their pair.
const rows = data.pairs.map(() => []);
for (const message of messages) {
  const ends = rows[message.pair];
  let row = ends.findIndex((end) => end <= message.begin);
  if (row < 0) row = ends.length < MOST_ROWS ? ends.length : ends.length - 1;
  ends[row] = message.end;
  message.row = row;
}
let bottom = AXIS;
const tops = rows.map((ends) => { const own = bottom + GAP - 6; bottom += GAP + ends.length * ROW + 6; return own; });
const tall = bottom + 4;

const first = messages.reduce((least, { begin }) => Math.min(least, begin), Infinity);
const last = messages.reduce((most, { end }) => Math.max(most, end), -Infinity);
let width = 0, height = 0, left, scale, scroll = 0, colours, asked = false;
const x = (time) => (time - left) * scale;
function fit() {
  left = first - (last - first) * 0.01;
  scale = width / Math.max((last - first) * 1.02, 0.001);
}
function repaint() {
  if (!asked) { asked = true; requestAnimationFrame(paint); }
}
function step(room) { // a round distance of marks that are some 110 pixels apart
  const least = 110 / room, unit = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((times) => times * unit).find((size) => size >= least);
}
const time = (us) => Math.abs(us) >= 1e6 ? `${+(us / 1e6).toPrecision(9)} s` : Math.abs(us) >= 1e3 ? `${+(us / 1e3).toPrecision(9)} ms` : `${+us.toPrecision(9)} µs`;
// Messages that are too narrow for their parts share a column, in which each part is as tall as its share of the time.
function add(shares, parts) {
  for (const [name, start, end] of parts) shares[name] = (shares[name] ?? 0) + end - start;
}
function heights(shares, tall) {
  const all = Object.values(shares).reduce((sum, share) => sum + share, 0);
  if (!all) return [[Object.keys(shares).at(-1) ?? "faint", tall]];
  return [...PARTS, "flight"].filter((name) => shares[name]).map((name) => [name, tall * shares[name] / all]);
}
function paint() {
  asked = false;
  const ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "11px system-ui, sans-serif";
  const size = step(scale);
  for (let mark = Math.ceil(left / size); mark * size < left + width / scale; mark++) {
    const at = Math.round(x(mark * size)) + 0.5;
    context.fillStyle = colours.rule;
    context.fillRect(at, AXIS, 1, height);
    context.fillStyle = colours.faint;
    const label = time(mark * size), long = context.measureText(label).width;
    // What does not fit behind its mark stands before it.
    context.fillText(label, at + 3 + long > width ? Math.max(at - 3 - long, 0) : at + 3, 14);
  }
  context.save();
  context.beginPath();
  context.rect(0, AXIS, width, height - AXIS);
  context.clip();
  const columns = new Map();
  for (const message of messages) {
    const from = x(message.begin), to = x(message.end);
    const y = tops[message.pair] + message.row * ROW - scroll;
    if (to < 0 || from > width || y > height || y < AXIS - ROW) continue;
    if (to - from < NARROW || !message.parts.length) {
      const key = `${y} ${Math.floor(from)}`;
      if (!columns.has(key)) columns.set(key, { from: Math.floor(from), y, shares: {} });
      add(columns.get(key).shares, message.parts);
      continue;
    }
    for (const [name, start, end] of message.parts) {
      context.fillStyle = colours[name];
      context.fillRect(x(start), y, Math.max(x(end) - x(start), 0.5), ROW - 3);
    }
  }
  for (const { from, y, shares } of columns.values()) {
    let at = y;
    for (const [name, tall] of heights(shares, ROW - 3)) {
      context.fillStyle = colours[name];
      context.fillRect(from, at, NARROW, tall);
      at += tall;
    }
  }
  context.fillStyle = colours.ink;
  data.pairs.forEach((name, pair) => context.fillText(name, 6, tops[pair] - scroll - 5));
  context.restore();
}
function measure() {
  const style = getComputedStyle(document.documentElement);
  colours = Object.fromEntries(["queue", "wire", "receive", "completion", "flight", "rule", "faint", "ink"]
    .map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  const had = width;
  width = stage.clientWidth;
  height = stage.clientHeight;
  if (had && had !== width) scale *= width / had;
  else if (!had) fit();
  move(0, 0);
}
function move(dx, dy) {
  left -= dx / scale;
  scroll = Math.max(0, Math.min(scroll - dy, tall - height));
  repaint();
}
function zoom(factor, at = width / 2) {
  const kept = left + at / scale;
  scale = Math.min(Math.max(scale * factor, width / Math.max((last - first) * 4, 1)), 1e5);
  left = kept - at / scale;
  repaint();
}
function hit(px, py) {
  return messages.find(({ pair, row, begin, end }) => {
    const y = tops[pair] + row * ROW - scroll;
    return py >= y && py < y + ROW && px >= x(begin) - 3 && px <= Math.max(x(end), x(begin) + 2) + 3;
  });
}
function about({ pair, what }) {
  const known = (value) => value === null ? "unknown" : time(value);
  const again = what.again ? `, ${what.again} packets sent again` : "";
  return `${what.kind} of ${what.bytes.toLocaleString("en")} bytes, PSN ${what.psn}${again}\n${data.pairs[pair]}\n` +
    [...PARTS, "flight"].map((name) => `${name === "flight" ? "in flight" : name}: ${known(what[name])}`).join("\n");
}
let dragged;
stage.addEventListener("pointerdown", (event) => { dragged = [event.clientX, event.clientY]; stage.setPointerCapture(event.pointerId); });
stage.addEventListener("pointerup", () => { dragged = undefined; });
stage.addEventListener("pointermove", (event) => {
  const box = stage.getBoundingClientRect();
  const [px, py] = [event.clientX - box.left, event.clientY - box.top];
  if (dragged) {
    move(event.clientX - dragged[0], event.clientY - dragged[1]);
    dragged = [event.clientX, event.clientY];
  }
  const found = dragged ? undefined : hit(px, py);
  tip.hidden = !found;
  if (!found) return;
  tip.textContent = about(found);
  tip.style.left = `${Math.max(0, Math.min(px + 14, width - tip.offsetWidth - 4))}px`;
  tip.style.top = `${py + 18 + tip.offsetHeight < height ? py + 18 : Math.max(0, py - tip.offsetHeight - 10)}px`;
});
stage.addEventListener("pointerleave", () => { tip.hidden = true; });
stage.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return; // the page scrolls
  event.preventDefault();
  zoom(Math.exp(-(event.deltaY || event.deltaX) / 300), event.clientX - stage.getBoundingClientRect().left);
}, { passive: false });
stage.addEventListener("keydown", (event) => {
  const act = { "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), 0: () => { fit(); repaint(); },
    ArrowLeft: () => move(80, 0), ArrowRight: () => move(-80, 0), ArrowUp: () => move(0, 40), ArrowDown: () => move(0, -40) }[event.key];
  if (act) { event.preventDefault(); act(); }
});
byId("closer").addEventListener("click", () => zoom(2));
byId("wider").addEventListener("click", () => zoom(0.5));
byId("whole").addEventListener("click", () => { fit(); repaint(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", measure);
new ResizeObserver(measure).observe(stage);
measure();
