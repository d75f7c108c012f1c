// Draws links and nodes on a 2D canvas, without WebGL2 or with `?gl=0`.
//
// The canvases are in the memory of the processor (`willReadFrequently`): without WebGL2 there is no graphics processor, and
// its emulation takes 20 times as long.

import { IDLE, LEAST, MOST, css } from "./colours.js";

const STEPS = 24; // colours of the ramp

/** Draws plates on a 2D canvas, with the same interface as `GlPainter`. */
export class FlatPainter {
  name = "2D canvas";

  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false, willReadFrequently: true });
  }

  setFabric(fabric) {
    this.fabric = fabric;
    this.order = fabric.nodes.map(({ id }) => id).sort((a, b) => this.isHost(b) - this.isHost(a));
  }
  isHost(node) { return this.fabric.nodes[node].kind === "host" ? 1 : 0; }
  setPlaces(layout) { this.layout = layout; }
  setStyles({ bytes }) { this.styles = bytes; }
  setColours(colours) { this.colours = colours; }
  resize() {}

  plate(width, height) {
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width, height });
    return { width, height, canvas, context: canvas.getContext("2d", { alpha: false, willReadFrequently: true }), free: () => { canvas.width = canvas.height = 0; } };
  }

  begin(plate, camera, links, look) {
    plate.scene = { camera, links, look };
    const { context } = plate;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = this.colours.background;
    context.fillRect(0, 0, plate.width, plate.height);
    context.setTransform(look.scale, 0, 0, look.scale, 0, 0);
  }

  links(plate, from, to) {
    const { context, scene: { links, look } } = plate;
    context.lineWidth = look.width;
    let style = -1;
    const change = (next) => {
      if (next === style) return;
      if (style >= 0) context.stroke();
      style = next;
      if (next < 0) return;
      const index = next >> 1, weight = this.colours.palette[4 * index + 3] / 255;
      context.strokeStyle = css(this.colours.palette, index, look.plain + (1 - look.plain) * weight);
      context.setLineDash(next & 1 ? [5.5, 4.5] : []);
      context.beginPath();
    };
    for (let at = from; at < to; at++) {
      const link = links[at], [ax, ay, bx, by] = this.line(plate, link);
      const [near, far] = [coarse(this.styles[4 * link]), coarse(this.styles[4 * link + 1])], dashed = this.styles[4 * link + 2];
      const mx = (ax + bx) / 2, my = (ay + by) / 2;
      change((near << 1) | dashed);
      context.moveTo(ax, ay);
      if (near === far) context.lineTo(bx, by);
      else {
        context.lineTo(mx, my);
        change((far << 1) | dashed);
        context.moveTo(mx, my);
        context.lineTo(bx, by);
      }
    }
    change(-1);
    context.setLineDash([]);
  }

  line({ scene: { camera, look } }, link) {
    const { layout: { x, y }, fabric: { ends }, styles } = this, a = ends[2 * link], b = ends[2 * link + 1];
    const ax = camera.x(x[a]), ay = camera.y(y[a]), bx = camera.x(x[b]), by = camera.y(y[b]);
    const beside = ((styles[4 * link + 3] - 128) * look.lane) / 2 / (Math.hypot(bx - ax, by - ay) || 1);
    const ox = (ay - by) * beside, oy = (bx - ax) * beside;
    return [ax + ox, ay + oy, bx + ox, by + oy];
  }

  nodes(plate) {
    const { context, scene: { camera, look } } = plate, { layout: { x, y }, colours, fabric } = this;
    context.strokeStyle = colours.edge;
    context.lineWidth = 1;
    for (const node of this.order) {
      const { kind } = fabric.nodes[node], size = look.sizes[node], cx = camera.x(x[node]), cy = camera.y(y[node]);
      if (cx < -30 || cy < -30 || cx > plate.width + 30 || cy > plate.height + 30) continue;
      context.fillStyle = colours[kind] ?? colours.switch;
      context.beginPath();
      if (kind === "host") context.arc(cx, cy, size / 2, 0, 7);
      else if (kind === "router") {
        const half = size * 0.62;
        context.moveTo(cx, cy - half); context.lineTo(cx + half, cy); context.lineTo(cx, cy + half); context.lineTo(cx - half, cy);
        context.closePath();
      } else context.roundRect(cx - size / 2, cy - size / 2, size, size, size * 0.14);
      if (size > 4) context.stroke();
      context.fill();
    }
  }

  show(list) {
    const { context, canvas, colours } = this;
    context.fillStyle = colours.background;
    context.fillRect(0, 0, canvas.width, canvas.height);
    for (const [plate, [left, top, right, bottom]] of list) context.drawImage(plate.canvas, left, top, right - left, bottom - top);
  }
}

// Quantises colours, so that many links can be drawn with one call.
function coarse(index) {
  if (index === IDLE || index > MOST) return index;
  return LEAST + Math.round((Math.round(((index - LEAST) * (STEPS - 1)) / (MOST - LEAST)) * (MOST - LEAST)) / (STEPS - 1));
}
