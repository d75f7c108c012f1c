// Force of many bodies on one body by the Barnes-Hut approximation: a group of distant bodies counts as one body.

// A cell is distant if its size is less than this fraction of its distance. Above √½ a body could be distant from its own cell.
const FAR = 0.7;
const NEAREST = 0.05; // lower limit of squared distances
const DEEPEST = 40;

/** Quadtree of bodies in a plane; each cell has the sum of the charges and their centre. */
export class Quadtree {
  constructor(x, y, charge) {
    Object.assign(this, { x, y, charge });
    const room = 4 * x.length + 64;
    this.child = new Int32Array(4 * room).fill(-1);
    this.body = new Int32Array(room).fill(-1); // first body of a leaf cell
    this.next = new Int32Array(x.length).fill(-1); // next body of the same cell
    this.cells = 0;
    let left = Infinity, top = Infinity, right = -Infinity, bottom = -Infinity;
    for (let body = 0; body < x.length; body++) {
      left = Math.min(left, x[body]); right = Math.max(right, x[body]);
      top = Math.min(top, y[body]); bottom = Math.max(bottom, y[body]);
    }
    this.left = left;
    this.top = top;
    this.size = Math.max(right - left, bottom - top, 1e-3) * 1.001;
    this.cell();
    for (let body = 0; body < x.length; body++) this.insert(body);
    this.sum = new Float64Array(this.cells);
    this.middleX = new Float64Array(this.cells);
    this.middleY = new Float64Array(this.cells);
    // Parent cells have smaller indices than their children.
    for (let cell = this.cells - 1; cell >= 0; cell--) this.gather(cell);
    this.stack = new Int32Array(4 * DEEPEST + 8);
    this.sizes = new Float64Array(4 * DEEPEST + 8);
  }

  /** Returns the repulsive force on a body: the sum of the other charges divided by their distances. */
  push(body) {
    const { x, y, stack, sizes, child } = this, px = x[body], py = y[body];
    let fx = 0, fy = 0, top = 1;
    stack[0] = 0;
    sizes[0] = this.size;
    while (top > 0) {
      const cell = stack[--top], size = sizes[top];
      const dx = px - this.middleX[cell], dy = py - this.middleY[cell], square = dx * dx + dy * dy;
      if (size * size < FAR * FAR * square) {
        const far = Math.max(square, NEAREST);
        fx += (dx * this.sum[cell]) / far;
        fy += (dy * this.sum[cell]) / far;
      } else if (this.body[cell] >= 0) {
        for (let other = this.body[cell]; other >= 0; other = this.next[other]) {
          if (other === body) continue;
          const ox = px - x[other], oy = py - y[other], near = Math.max(ox * ox + oy * oy, NEAREST);
          fx += (ox * this.charge[other]) / near;
          fy += (oy * this.charge[other]) / near;
        }
      } else {
        for (let quarter = 0; quarter < 4; quarter++) {
          const part = child[4 * cell + quarter];
          if (part < 0) continue;
          stack[top] = part;
          sizes[top++] = size / 2;
        }
      }
    }
    return [fx, fy];
  }

  cell() {
    if (4 * this.cells === this.child.length) this.grow();
    this.divided ??= [];
    this.divided[this.cells] = false;
    return this.cells++;
  }

  grow() {
    const child = new Int32Array(2 * this.child.length).fill(-1), body = new Int32Array(2 * this.body.length).fill(-1);
    child.set(this.child);
    body.set(this.body);
    Object.assign(this, { child, body });
  }

  insert(body) {
    let cell = 0, left = this.left, top = this.top, half = this.size / 2;
    for (let depth = 0; ; depth++, half /= 2) {
      if (!this.divided[cell]) {
        const other = this.body[cell];
        if (other < 0 || depth === DEEPEST) {
          this.next[body] = other;
          this.body[cell] = body;
          return;
        }
        // The former single body of the cell moves into a child cell.
        this.divided[cell] = true;
        this.body[cell] = -1;
        const part = this.cell();
        this.child[4 * cell + this.quarter(other, left, top, half)] = part;
        this.body[part] = other;
      }
      const quarter = this.quarter(body, left, top, half);
      if (this.child[4 * cell + quarter] < 0) {
        const part = this.cell();
        this.child[4 * cell + quarter] = part;
      }
      cell = this.child[4 * cell + quarter];
      if (quarter & 1) left += half;
      if (quarter & 2) top += half;
    }
  }

  quarter(body, left, top, half) {
    return (this.x[body] >= left + half ? 1 : 0) + (this.y[body] >= top + half ? 2 : 0);
  }

  gather(cell) {
    let sum = 0, mx = 0, my = 0;
    const add = (weight, x, y) => { sum += weight; mx += weight * x; my += weight * y; };
    for (let body = this.body[cell]; body >= 0; body = this.next[body]) add(this.charge[body], this.x[body], this.y[body]);
    for (let quarter = 0; quarter < 4; quarter++) {
      const part = this.child[4 * cell + quarter];
      if (part >= 0) add(this.sum[part], this.middleX[part], this.middleY[part]);
    }
    this.sum[cell] = sum;
    this.middleX[cell] = mx / (sum || 1);
    this.middleY[cell] = my / (sum || 1);
  }
}
