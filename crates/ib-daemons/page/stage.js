// The drawing: layouts, the camera, and the content of each frame.

import { Camera } from "./camera.js";
import { coloursOf } from "./colours.js";
import { FlatPainter } from "./flat.js";
import { GlPainter } from "./gl.js";
import { Overlay } from "./overlay.js";
import { Picking, lineOf } from "./picking.js";
import { Plates } from "./plates.js";
import { boundsOf, homesOf, rowsOf } from "./rows.js";
import { stylesOf } from "./styles.js";

const HOP = 180; // ms per hop of the animation of a new path
const PATIENCE = 1.5; // minimum time between two traffic updates, as a multiple of the time to draw all links

/** The drawing of the fabric on the elements of the page. */
export class Stage {
  constructor(element, state, { flat = false } = {}) {
    Object.assign(this, { element, state, fabric: state.fabric });
    const canvas = element.querySelector("#links");
    this.canvas = canvas;
    this.painter = (flat ? null : GlPainter.on(canvas)) ?? new FlatPainter(canvas);
    canvas.addEventListener("webglcontextlost", (event) => this.lost(event));
    canvas.addEventListener("webglcontextrestored", () => location.reload());
    this.camera = new Camera();
    this.whole = new Camera();
    this.overlay = new Overlay(element.querySelector("#marks"), state);
    this.picking = new Picking(this.fabric);
    this.plates = new Plates(this.painter, this.fabric);
    this.painter.setFabric(this.fabric);
    this.layouts = { rank: rowsOf(this.fabric) };
    this.theme();
    this.style();
    element.dataset.settled = "true";
    this.place(this.layouts.rank, true);
    if (state.layout !== "rank") this.lay();
    new ResizeObserver(() => this.resize()).observe(element);
    this.resize();
    state.on("layout", () => this.lay());
    state.on("colour links load", () => this.style());
    state.on("traffic", () => { if (state.colour === "traffic") this.restyle(); });
    state.on("theme", () => { this.theme(); this.repaint(); });
    state.on("selection pair links missing", () => this.repaint());
    state.on("path", () => this.walk());
  }

  /** Requests a frame. */
  repaint() {
    this.stale = true;
    if (!this.asked) {
      this.asked = true;
      requestAnimationFrame((time) => this.frame(time));
    }
  }

  frame(time) {
    this.asked = false;
    const interval = time - this.before;
    this.before = time;
    if (this.walking !== undefined) this.step(time);
    const more = this.plates.frame(this.camera, this.whole, this.continues ? interval : 0);
    if (this.stale || !this.seen?.same(this.camera)) {
      this.seen = this.camera.still();
      this.overlay.paint(this.layout, this.camera, this.look(), this.colours);
    }
    this.stale = false;
    this.continues = more || this.walking !== undefined;
    if (this.continues) {
      this.asked = true;
      requestAnimationFrame((next) => this.frame(next));
    }
    this.element.dataset.drawn = more ? "partly" : "all";
  }

  /** Returns the present sizes of nodes and links. */
  look() {
    if (!this.looked?.camera.same(this.camera) || this.looked.layout !== this.layout || this.looked.version !== this.layout.version) {
      const look = this.plates.look(this.camera, 0);
      look.sizes.lane = look.lane;
      this.looked = { camera: this.camera.still(), layout: this.layout, version: this.layout.version, look };
    }
    return this.looked.look;
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.element, scale = Math.min(devicePixelRatio || 1, 2);
    if (!width || !height) return;
    Object.assign(this.canvas, { width: Math.round(width * scale), height: Math.round(height * scale) });
    const { fitted } = this.camera;
    for (const camera of [this.camera, this.whole]) Object.assign(camera, { width, height });
    this.whole.fit(this.layout);
    if (fitted) this.camera.fit(this.layout);
    this.plates.resize(width, height, scale);
    this.overlay.resize(width, height, scale);
    this.repaint();
  }

  /** Shows the selected layout. The force-directed layout is shown while it is computed, and then cached. */
  lay() {
    this.worker?.terminate();
    this.worker = null;
    this.element.dataset.settled = "true";
    const { layout } = this.state;
    if (layout === "force" && !this.layouts.force?.settled) this.simulate();
    else this.place(this.layouts[layout], true);
  }

  simulate() {
    const { x, y, bounds } = this.layouts.rank, { ends } = this.fabric;
    this.element.dataset.settled = "false";
    this.worker = new Worker("force.js", { type: "module" });
    let first = true;
    this.worker.onmessage = ({ data }) => {
      this.layouts.force = { ...data, bounds: boundsOf(data), stretch: 1, aside: true };
      this.place(this.layouts.force, first || this.camera.fitted);
      first = false;
      if (data.settled) this.element.dataset.settled = "true";
    };
    this.worker.onerror = () => this.state.set("status", { status: "The force-directed layout cannot be computed." });
    this.worker.postMessage({ homes: homesOf(this.fabric), ends, x, y, wide: bounds[2] - bounds[0] });
  }

  place(layout, fit) {
    layout.version = this.versions = (this.versions ?? 0) + 1;
    this.layout = layout;
    this.painter.setPlaces(layout);
    this.plates.changed({ layout });
    this.whole.fit(layout);
    if (fit) this.camera.fit(layout);
    this.repaint();
  }

  theme() {
    this.colours = coloursOf(this.state.theme);
    this.painter.setColours(this.colours);
    this.plates.changed({});
    this.repaint();
  }

  style() {
    clearTimeout(this.later);
    this.later = null;
    const styles = stylesOf(this.fabric, this.state.colour);
    this.painter.setStyles(styles);
    this.plates.changed({ order: styles.order });
    this.styled = performance.now();
    this.repaint();
  }

  // Traffic changes continuously. If drawing is slow, updates are delayed to leave time for user input.
  restyle() {
    if (this.later) return;
    const rest = this.styled + PATIENCE * (this.plates.took ?? 0) - performance.now();
    this.later = setTimeout(() => this.style(), Math.max(0, rest));
  }

  // A new path is animated hop by hop, unless the user prefers reduced motion.
  walk() {
    const { path } = this.state, still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.walking = path && !still ? null : undefined;
    this.overlay.progress = path && !still ? 0 : Infinity;
    this.repaint();
  }

  step(time) {
    this.walking ??= time;
    this.overlay.progress = (time - this.walking) / HOP;
    this.stale = true;
    if (this.overlay.progress <= (this.state.path?.hops.length ?? 0)) return;
    this.walking = undefined;
    this.overlay.progress = Infinity;
  }

  lost(event) {
    event.preventDefault();
    this.state.set("status", { status: "The GPU context was lost; the page waits until it is restored. With ?gl=0 the page does not use WebGL." });
  }

  /** Returns the item at a point of the stage: `{ node }`, `{ link }` or `{}`. */
  at(x, y) {
    return this.picking.at(x, y, this.layout, this.camera, this.look().sizes);
  }

  /** Highlights the item below the pointer. */
  point(target) {
    const { hover } = this.overlay;
    if (hover.node === target.node && hover.link === target.link) return;
    this.overlay.hover = target;
    this.repaint();
  }

  pan(dx, dy) { this.camera.pan(dx, dy); this.repaint(); }
  zoom(factor, x, y) { this.camera.zoom(factor, x, y); this.repaint(); }
  fit() { this.camera.fit(this.layout); this.repaint(); }

  /** Centres a node and zooms until its neighbours are distinguishable. */
  goTo(node, pitch = 24) {
    this.camera.goTo(this.layout.x[node], this.layout.y[node], pitch);
    this.repaint();
  }

  /** Moves the camera to a node if it is not visible. */
  reveal(node) {
    const x = this.camera.x(this.layout.x[node]), y = this.camera.y(this.layout.y[node]);
    if (x < 20 || y < 20 || x > this.camera.width - 20 || y > this.camera.height - 20) this.goTo(node, 0);
  }

  /** Returns the neighbour of a node in a direction of the screen, by active links if there are any. */
  neighbour(node, dx, dy) {
    let best = null, least = Infinity;
    for (const link of this.fabric.at(node)) {
      const other = this.fabric.across(link, node);
      const ox = (this.layout.x[other] - this.layout.x[node]) * this.camera.kx, oy = (this.layout.y[other] - this.layout.y[node]) * this.camera.ky;
      const length = Math.hypot(ox, oy), along = ox * dx + oy * dy;
      if (!length || along / length < 0.2) continue;
      const cost = length * (2 - along / length);
      if (cost < least) [best, least] = [other, cost];
    }
    return best;
  }

  /** Returns the position of a node, in coordinates of the window. */
  nodeAt(node) {
    const { left, top } = this.element.getBoundingClientRect();
    return { x: left + this.camera.x(this.layout.x[node]), y: top + this.camera.y(this.layout.y[node]) };
  }

  /** Returns a position on a link, in coordinates of the window; `part` 0 is at its end a. */
  linkAt(link, part = 0.5) {
    const { left, top } = this.element.getBoundingClientRect();
    const [ax, ay, bx, by] = lineOf(this.fabric, this.layout, this.camera, link, this.look().lane);
    return { x: left + ax + (bx - ax) * part, y: top + ay + (by - ay) * part };
  }
}
