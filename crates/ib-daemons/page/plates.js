// Frame scheduling. Drawing all links of a large fabric takes longer than one frame, above all without a GPU.
//
// Links and nodes are drawn onto off-screen plates, a part of them in each frame. Every frame shows the plates,
// transformed to the present camera. The front plate is somewhat larger than the stage. Where it does not reach, a plate
// of the whole fabric behind it is visible. If one frame is enough for everything, every frame draws everything.
//
// The first plate is drawn in one frame: until it is complete, there is nothing else to show.

import { laneStep, linkWidth, nodeSize, plainAlpha } from "./styles.js";

const MARGIN = 0.12; // fraction of the stage around it
const QUICK = 21, SLOW = 36; // ms between two frames
const FEWEST = 300; // minimum number of links per frame

/** Keeps the plates up to date and shows them. */
export class Plates {
  constructor(painter, fabric) {
    this.painter = painter;
    this.fabric = fabric;
    this.version = 0; // of positions and colours
    this.batch = Infinity;
    this.free = [];
    this.all = Uint32Array.from(fabric.links.keys());
    this.pitch = () => 1;
  }

  /** Reports changed positions, colours or styles. `order` is the drawing order of links. */
  changed({ layout = this.layout, order = this.order }) {
    this.version++;
    Object.assign(this, { layout, order });
  }

  /** Sets the size of the stage in CSS pixels, and the number of screen pixels per CSS pixel. */
  resize(width, height, scale) {
    Object.assign(this, { width, height, scale });
    for (const plate of [this.front, this.whole, this.making, ...this.free]) plate?.free();
    this.front = this.whole = this.making = null;
    this.free = [];
  }

  /** Runs one frame: draws for a while, then shows. Returns true if there is more to draw. */
  frame(camera, whole, interval) {
    this.adapt(interval);
    const wanted = this.wanted(camera, whole);
    if (!this.making && wanted) this.start(wanted);
    const made = this.making;
    if (made) this.draw(made);
    const view = camera.still();
    if (made || !this.shown?.same(view)) this.show(view);
    return Boolean(this.making || this.wanted(camera, whole));
  }

  // Adapts the number of links per frame to the measured frame rate.
  adapt(interval) {
    if (!this.drew || !(interval > 0) || interval > 1000) return;
    this.batch = Math.min(this.batch, this.all.length + 1);
    if (interval < QUICK) this.batch = Math.min(this.batch * 1.6, this.all.length + 1);
    else if (interval > SLOW) this.batch = Math.max(FEWEST, this.batch * (interval > 2 * SLOW ? 0.45 : 0.7));
  }

  // Returns the next part to draw, visible plates first, if any.
  wanted(camera, whole) {
    if (!this.front || this.front.version !== this.version || !same(this.front.seen, camera)) return { camera, margin: MARGIN, kind: "front" };
    const fits = same(camera, whole);
    if (!fits && (!this.whole || this.whole.version !== this.version || !same(this.whole.seen, whole))) return { camera: whole, margin: 0, kind: "whole" };
    return null;
  }

  start({ camera, margin, kind }) {
    const edge = [Math.ceil(this.width * margin), Math.ceil(this.height * margin)];
    const wide = Math.round((this.width + 2 * edge[0]) * this.scale), high = Math.round((this.height + 2 * edge[1]) * this.scale);
    const at = this.free.findIndex(({ width, height }) => width === wide && height === high);
    const plate = at >= 0 ? this.free.splice(at, 1)[0] : this.painter.plate(wide, high);
    const seen = camera.still(), inner = camera.still();
    inner.tx += edge[0];
    inner.ty += edge[1];
    const { list, layers } = visible(this.fabric.ends, this.layout, this.order, inner, wide / this.scale, high / this.scale);
    const look = this.look(camera, layers);
    Object.assign(plate, { seen, edge, kind, list, look, inner, done: 0, version: this.version, begun: performance.now() });
    this.painter.begin(plate, inner, list, look);
    this.making = plate;
  }

  look(camera, layers) {
    const pitch = Math.min(camera.kx, camera.ky), { room } = this.layout;
    const sizes = new Float32Array(room.length);
    this.fabric.nodes.forEach(({ kind }, node) => { sizes[node] = nodeSize(kind, room[node], pitch); });
    return { scale: this.scale, width: linkWidth(pitch), lane: laneStep(pitch), plain: plainAlpha(layers), sizes };
  }

  draw(plate) {
    const to = this.front ? Math.min(plate.list.length, plate.done + Math.ceil(this.batch)) : plate.list.length;
    this.painter.links(plate, plate.done, to);
    plate.done = to;
    this.drew = true;
    if (to < plate.list.length) return;
    this.painter.nodes(plate);
    this.making = null;
    this.took = performance.now() - plate.begun;
    if (this[plate.kind]) this.free.push(this[plate.kind]);
    this[plate.kind] = plate;
  }

  show(view) {
    const list = [];
    const front = this.front && this.rectangle(this.front, view);
    const { width, height } = this.painter.canvas;
    const covers = front && front[0] <= 0 && front[1] <= 0 && front[2] >= width && front[3] >= height;
    if (this.whole && !covers) list.push([this.whole, this.rectangle(this.whole, view)]);
    if (front) list.push([this.front, front]);
    this.painter.show(list);
    this.shown = view;
  }

  // Returns the rectangle of a plate on the canvas.
  rectangle({ seen, edge, width, height }, view) {
    const sx = view.kx / seen.kx, sy = view.ky / seen.ky, { scale } = this;
    const left = (view.tx - (seen.tx + edge[0]) * sx) * scale, top = (view.ty - (seen.ty + edge[1]) * sy) * scale;
    return [left, top, left + width * sx, top + height * sy];
  }
}

const same = (one, other) => one.kx === other.kx && one.ky === other.ky && one.tx === other.tx && one.ty === other.ty;

// Returns the links that may be visible to a camera, in order, and the total length of their lines in stage sizes.
function visible(ends, { x, y }, order, camera, width, height) {
  const list = new Uint32Array(order.length), edge = 16;
  let count = 0, length = 0;
  for (const link of order) {
    const a = ends[2 * link], b = ends[2 * link + 1];
    const ax = camera.x(x[a]), bx = camera.x(x[b]);
    if ((ax < -edge && bx < -edge) || (ax > width + edge && bx > width + edge)) continue;
    const ay = camera.y(y[a]), by = camera.y(y[b]);
    if ((ay < -edge && by < -edge) || (ay > height + edge && by > height + edge)) continue;
    if (!crosses(ax, ay, bx, by, width, height)) continue;
    list[count++] = link;
    length += Math.hypot(Math.min(Math.abs(bx - ax), width), Math.min(Math.abs(by - ay), height));
  }
  return { list: list.subarray(0, count), layers: length / (width * height) };
}

// Returns true if a line passes the centre of the stage at most as far away as the corners.
function crosses(ax, ay, bx, by, width, height) {
  const dx = bx - ax, dy = by - ay, reach = Math.abs(dx) * (height / 2 + 16) + Math.abs(dy) * (width / 2 + 16);
  return Math.abs(dx * (height / 2 - ay) - dy * (width / 2 - ax)) <= reach;
}
