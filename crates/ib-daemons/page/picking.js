// Finds nodes and links below the pointer: a grid of cells with their nodes and links.

const CELL = 40, NEAR_NODE = 5, NEAR_LINK = 5; // pixels

/** Visible nodes and links by cells of the stage. The index is built at the first query after a move of the camera. */
export class Picking {
  constructor(fabric) {
    this.fabric = fabric;
  }

  /** Returns `{ node }`, `{ link }` or `{}` for a point of the stage. */
  at(px, py, layout, camera, sizes) {
    if (this.layout !== layout || this.version !== layout.version || !this.camera?.same(camera)) this.sort(layout, camera);
    const column = Math.floor(px / CELL), row = Math.floor(py / CELL);
    let least = Infinity, best = {};
    for (let r = row - 1; r <= row + 1; r++) {
      for (let c = column - 1; c <= column + 1; c++) {
        for (const node of this.list(this.nodes, c, r)) {
          const distance = Math.hypot(camera.x(layout.x[node]) - px, camera.y(layout.y[node]) - py) - sizes[node] / 2;
          if (distance < NEAR_NODE && distance < least) [least, best] = [distance, { node }];
        }
      }
    }
    if (best.node !== undefined) return best;
    least = NEAR_LINK;
    const seen = new Set();
    for (const [dx, dy] of [[0, 0], [-NEAR_LINK, 0], [NEAR_LINK, 0], [0, -NEAR_LINK], [0, NEAR_LINK]]) {
      for (const link of this.list(this.links, Math.floor((px + dx) / CELL), Math.floor((py + dy) / CELL))) {
        if (seen.has(link)) continue;
        seen.add(link);
        const distance = toLine(px, py, ...lineOf(this.fabric, layout, camera, link, sizes.lane));
        if (distance < least) [least, best] = [distance, { link }];
      }
    }
    return best;
  }

  list(cells, column, row) {
    if (column < 0 || row < 0 || column >= this.columns || row >= this.rows) return [];
    const cell = row * this.columns + column;
    return cells.items.subarray(cells.first[cell], cells.first[cell + 1]);
  }

  sort(layout, camera) {
    Object.assign(this, { layout, version: layout.version, camera: camera.still() });
    this.columns = Math.ceil(camera.width / CELL);
    this.rows = Math.ceil(camera.height / CELL);
    this.nodes = this.cells((add) => {
      for (let node = 0; node < layout.x.length; node++) {
        add(Math.floor(camera.x(layout.x[node]) / CELL), Math.floor(camera.y(layout.y[node]) / CELL), node);
      }
    });
    const links = this.fabric.links.length;
    this.links = this.cells((add) => {
      for (let link = 0; link < links; link++) this.trace(lineOf(this.fabric, layout, camera, link, 0), (c, r) => add(c, r, link));
    });
  }

  // Counts the items of each cell, then stores them.
  cells(fill) {
    const first = new Uint32Array(this.columns * this.rows + 1);
    const inside = (c, r) => c >= 0 && r >= 0 && c < this.columns && r < this.rows;
    fill((c, r) => { if (inside(c, r)) first[r * this.columns + c + 1]++; });
    for (let cell = 1; cell < first.length; cell++) first[cell] += first[cell - 1];
    const items = new Uint32Array(first[first.length - 1]), next = first.slice();
    fill((c, r, item) => { if (inside(c, r)) items[next[r * this.columns + c]++] = item; });
    return { first, items };
  }

  // Yields the cells that a line crosses, column by column.
  trace([ax, ay, bx, by], add) {
    if (ax > bx) [ax, ay, bx, by] = [bx, by, ax, ay];
    const from = Math.max(0, Math.floor(ax / CELL)), to = Math.min(this.columns - 1, Math.floor(bx / CELL));
    const slope = bx > ax ? (by - ay) / (bx - ax) : 0;
    for (let column = from; column <= to; column++) {
      const y1 = bx > ax ? ay + (Math.max(ax, column * CELL) - ax) * slope : ay;
      const y2 = bx > ax ? ay + (Math.min(bx, (column + 1) * CELL) - ax) * slope : by;
      const top = Math.max(0, Math.floor(Math.min(y1, y2) / CELL)), bottom = Math.min(this.rows - 1, Math.floor(Math.max(y1, y2) / CELL));
      for (let row = top; row <= bottom; row++) add(column, row);
    }
  }
}

/** Returns the line of a link, [x, y, x, y] in CSS pixels; parallel cables are `lane` apart. */
export function lineOf(fabric, { x, y }, camera, link, lane) {
  const a = fabric.ends[2 * link], b = fabric.ends[2 * link + 1];
  const ax = camera.x(x[a]), ay = camera.y(y[a]), bx = camera.x(x[b]), by = camera.y(y[b]);
  if (!lane || !fabric.lanes[link]) return [ax, ay, bx, by];
  const beside = (fabric.lanes[link] * lane) / 2 / (Math.hypot(bx - ax, by - ay) || 1);
  const ox = (ay - by) * beside, oy = (bx - ax) * beside;
  return [ax + ox, ay + oy, bx + ox, by + oy];
}

function toLine(x, y, ax, ay, bx, by) {
  const along = ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / ((bx - ax) ** 2 + (by - ay) ** 2 || 1);
  const at = Math.max(0, Math.min(1, along));
  return Math.hypot(ax + at * (bx - ax) - x, ay + at * (by - ay) - y);
}
