// Drawing above the links: names, the selection, inactive links, and the path of a pair.

import { lineOf } from "./picking.js";
import { homesOf } from "./rows.js";
import { linkWidth } from "./styles.js";
import { drawPath } from "./path.js";

const FONT = "11px system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const CELL = 4; // pixels; also the distance of names from nodes
const MOST_LABELS = 300, MOST_CROSSES = 600, MOST_MISSING = 4000, MOST_AROUND = 256;
const LONG = 14; // letters; longer names are shortened if possible

/** Draws onto the canvas above the stage. */
export class Overlay {
  constructor(canvas, state) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.state = state;
    this.hover = {};
    this.progress = Infinity; // number of path hops that are drawn
    this.homes = homesOf(state.fabric);
    this.names = shortNames(state.fabric.nodes);
    this.empty = true;
  }

  resize(width, height, scale) {
    Object.assign(this, { width, height, scale });
    Object.assign(this.canvas, { width: Math.round(width * scale), height: Math.round(height * scale) });
    this.empty = true;
  }

  /** Redraws everything. An empty canvas is hidden, which makes frames cheaper. */
  paint(layout, camera, look, colours) {
    Object.assign(this, { layout, camera, look, colours });
    const { context, scale, state } = this;
    if (!this.empty) {
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    }
    context.setTransform(scale, 0, 0, scale, 0, 0);
    this.drawn = 0;
    this.around();
    if (state.link !== null) this.link(state.link, colours.chosen, 3);
    if (this.hover.link !== undefined && this.hover.link !== state.link) this.link(this.hover.link, colours.hover, 1.5);
    this.drawn += drawPath(this, state.former, state.path);
    this.crosses();
    this.absent();
    this.rings();
    this.labels();
    this.empty = this.drawn === 0;
    this.canvas.style.visibility = this.empty ? "hidden" : "visible";
  }

  x(node) { return this.camera.x(this.layout.x[node]); }
  y(node) { return this.camera.y(this.layout.y[node]); }

  // Returns the line of a link, from the edge of one node to the edge of the other.
  line(link) {
    const { fabric } = this.state, line = lineOf(fabric, this.layout, this.camera, link, this.look.lane), [ax, ay, bx, by] = line;
    const length = Math.hypot(bx - ax, by - ay), [a, b] = [0, 1].map((end) => this.look.sizes[fabric.ends[2 * link + end]] / 2 + 1);
    if (length < a + b + 4) return line;
    const ux = (bx - ax) / length, uy = (by - ay) / length;
    return [ax + ux * a, ay + uy * a, bx - ux * b, by - uy * b];
  }

  link(link, colour, more) {
    const { context } = this, [ax, ay, bx, by] = this.line(link), wide = linkWidth(Math.min(this.camera.kx, this.camera.ky)) + more;
    for (const [style, width] of [[this.colours.halo, wide + 2.5], [colour, wide]]) {
      context.strokeStyle = style;
      context.lineWidth = width;
      context.setLineDash(this.state.fabric.down[link] && style === colour ? [7, 5] : []);
      context.beginPath();
      context.moveTo(ax, ay);
      context.lineTo(bx, by);
      context.stroke();
    }
    context.setLineDash([]);
    this.drawn++;
  }

  // Draws the links of the selected or hovered node above all others.
  around() {
    const { state: { node, fabric }, hover } = this;
    for (const [own, colour] of [[node, this.colours.chosen], [hover.node ?? null, this.colours.hover]]) {
      if (own === null || own === undefined) continue;
      for (const link of fabric.at(own).subarray(0, MOST_AROUND)) if (!fabric.down[link]) this.link(link, colour, 0);
    }
  }

  // Draws a cross in the middle of inactive links, so that they are recognisable without colours.
  crosses() {
    const { context, state: { fabric }, colours } = this;
    if (!fabric.downList.length || fabric.downList.length > MOST_CROSSES) return;
    for (const [style, width] of [[colours.halo, 5], [colours.down, 2.2]]) {
      context.strokeStyle = style;
      context.lineWidth = width;
      context.beginPath();
      for (const link of fabric.downList) {
        const [ax, ay, bx, by] = this.line(link), x = (ax + bx) / 2, y = (ay + by) / 2, arm = 4;
        context.moveTo(x - arm, y - arm); context.lineTo(x + arm, y + arm);
        context.moveTo(x - arm, y + arm); context.lineTo(x + arm, y - arm);
      }
      context.stroke();
    }
    this.drawn++;
  }

  // Draws unreached nodes as empty frames.
  absent() {
    const { context, colours, width, height, state: { fabric: { missingList, nodes } } } = this;
    let drawn = 0;
    context.fillStyle = colours.halo;
    context.strokeStyle = colours.down;
    context.lineWidth = 1.6;
    context.beginPath();
    for (const [node] of missingList) {
      const x = this.x(node), y = this.y(node), half = Math.max(1.5, this.look.sizes[node] / 2);
      if (x < 0 || y < 0 || x > width || y > height) continue;
      if (nodes[node].kind === "host") { context.moveTo(x + half, y); context.arc(x, y, half, 0, 7); }
      else context.rect(x - half, y - half, 2 * half, 2 * half);
      if (++drawn >= MOST_MISSING) break;
    }
    if (!drawn) return;
    context.fill();
    context.stroke();
    this.drawn++;
  }

  rings() {
    const { state, colours } = this, [from, to] = state.pair;
    if (from !== null) this.ring(from, colours.from, 4, "A");
    if (to !== null) this.ring(to, colours.to, 4, "B");
    if (state.node !== null) this.ring(state.node, colours.chosen, 2.5);
    if (this.hover.node !== undefined) this.ring(this.hover.node, colours.hover, 2);
  }

  ring(node, colour, off, letter) {
    const { context } = this, x = this.x(node), y = this.y(node), radius = this.look.sizes[node] / 2 + off;
    const host = this.state.fabric.nodes[node].kind === "host";
    for (const [style, width] of [[this.colours.halo, 4.5], [colour, 2.2]]) {
      context.strokeStyle = style;
      context.lineWidth = width;
      context.beginPath();
      if (host) context.arc(x, y, radius, 0, 7);
      else context.roundRect(x - radius, y - radius, 2 * radius, 2 * radius, 3);
      context.stroke();
    }
    if (letter) this.badge(x - radius - 7, y - radius - 5, letter, colour);
    this.drawn++;
  }

  /** Draws a letter or a number in a disc. */
  badge(x, y, text, colour) {
    const { context, colours } = this;
    context.fillStyle = colours.halo;
    context.beginPath();
    context.arc(x, y, 9, 0, 7);
    context.fill();
    context.fillStyle = colour;
    context.beginPath();
    context.arc(x, y, 7.5, 0, 7);
    context.fill();
    context.fillStyle = colours.halo;
    context.font = `bold ${FONT}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(text, x, y + 0.5);
  }

  // Draws names that do not overlap others, by priority: selection, switches, hosts.
  labels() {
    const { context, state, look: { sizes }, width, height } = this, { nodes } = state.fabric;
    const first = new Set([this.hover.node, state.node, ...state.pair].filter((node) => node !== null && node !== undefined));
    state.path?.hops.forEach(({ node }) => first.add(node));
    const across = Math.ceil(width / CELL + 1), taken = new Uint8Array(across * Math.ceil(height / CELL + 1));
    // Names that would be clipped at the edge are omitted.
    const free = (x, y, wide, high, take) => {
      const [left, right, top, bottom] = [x, x + wide, y, y + high].map((edge) => Math.floor(edge / CELL));
      if (x < 0 || y < 0 || x + wide > width || y + high > height) return false;
      for (let r = top; r <= bottom; r++) for (let c = left; c <= right; c++) if (taken[r * across + c] && !take) return false;
      for (let r = top; r <= bottom; r++) for (let c = left; c <= right; c++) taken[r * across + c] = 1;
      return true;
    };
    const inSight = (node) => { const x = this.x(node), y = this.y(node); return x > 0 && y > 0 && x < width && y < height; };
    const wanted = [...first].filter(inSight), rest = [];
    nodes.forEach(({ kind }, node) => {
      if (sizes[node] < (kind === "host" ? 7 : 7.5) || first.has(node) || !inSight(node)) return;
      (kind === "host" ? rest : wanted).push(node);
    });
    wanted.push(...rest);
    for (const node of wanted) {
      const half = sizes[node] / 2, [x, y] = [this.x(node), this.y(node)];
      const [left, top] = [Math.max(0, x - half), Math.max(0, y - half)];
      free(left, top, Math.min(width, x + half) - left, Math.min(height, y + half) - top, true);
    }
    context.font = FONT;
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.lineWidth = 3.5;
    context.strokeStyle = this.colours.halo;
    let labels = 0;
    for (const node of wanted) {
      if (labels >= MOST_LABELS) break;
      const text = first.has(node) ? this.state.fabric.label(node) : this.names[node], wide = context.measureText(text).width;
      const x = this.x(node), y = this.y(node), half = sizes[node] / 2, host = nodes[node].kind === "host";
      const below = [x - wide / 2, y + half + 4], right = [x + half + 5, y - 6], above = [x - wide / 2, y - half - 17];
      const left = [x - half - 5 - wide, y - 6];
      // In layouts with several rows of hosts, names are placed on the side away from the switch.
      const aside = host && this.layout.aside && this.homes[node] >= 0 ? (x < this.x(this.homes[node]) ? [left, below] : [right, below]) : [below, right];
      const place = (host ? aside : [above, right, below]).find(([lx, ly]) => free(lx, ly, wide, 12)) ?? (first.has(node) ? [right[0] + wide > width ? left[0] : right[0], right[1]] : null);
      if (!place) continue;
      context.textAlign = "left";
      context.strokeText(text, place[0], place[1] + 6.5);
      context.fillStyle = host && !first.has(node) ? this.colours.faint : this.colours.ink;
      context.fillText(text, place[0], place[1] + 6.5);
      labels++;
    }
    this.drawn += labels;
  }
}

/**
 * Returns the names of nodes on the drawing: descriptions, or names without their common prefix if these are long. Names are
 * unique.
 */
export function shortNames(nodes) {
  const count = new Map();
  for (const { description } of nodes) if (description) count.set(description, (count.get(description) ?? 0) + 1);
  const names = nodes.map(({ name, description }) => (description && count.get(description) === 1 ? description : name));
  const shortest = Math.min(...names.map((name) => name.length)), longest = Math.max(...names.map((name) => name.length));
  if (longest <= LONG) return names;
  let common = 0;
  while (common < shortest && names.every((name) => name[common] === names[0][common])) common++;
  return common >= 6 && common < shortest ? names.map((name) => `…${name.slice(common)}`) : names;
}
