// Where the fabric's coordinates are on the screen: x · kx + tx, y · ky + ty, in CSS pixels.

const MARGIN = 46, CLOSEST = 110; // pixels between two hosts at most

/** What of the fabric is in sight. Both directions zoom together; only the whole fabric is stretched to fill the stage. */
export class Camera {
  kx = 1;
  ky = 1;
  tx = 0;
  ty = 0;
  width = 1;
  height = 1;
  fitted = true; // nobody has moved it since it showed the whole fabric

  x(x) { return x * this.kx + this.tx; }
  y(y) { return y * this.ky + this.ty; }

  /** Returns a copy that stays as it is. */
  still() {
    return Object.assign(new Camera(), this);
  }

  /** Returns whether another camera shows the same. */
  same(other) {
    return ["kx", "ky", "tx", "ty", "width", "height"].every((key) => this[key] === other[key]);
  }

  /** Shows the whole of a layout. */
  fit({ bounds: [left, top, right, bottom], stretch = 1 }) {
    const wide = Math.max(right - left, 1e-3), high = Math.max(bottom - top, 1e-3);
    const kx = Math.max(this.width - 2 * MARGIN, 50) / wide, ky = Math.max(this.height - 2 * MARGIN, 50) / high;
    this.kx = Math.min(kx, ky * stretch, CLOSEST);
    this.ky = Math.min(ky, kx * stretch, CLOSEST);
    this.tx = this.width / 2 - ((left + right) / 2) * this.kx;
    this.ty = this.height / 2 - ((top + bottom) / 2) * this.ky;
    this.least = Math.min(this.kx, this.ky) / 2;
    this.fitted = true;
  }

  /** Moves what is in sight by pixels. */
  pan(dx, dy) {
    this.tx += dx;
    this.ty += dy;
    this.fitted = false;
  }

  /** Zooms about a point of the screen. */
  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const by = Math.max(this.least / Math.min(this.kx, this.ky), Math.min(factor, CLOSEST / Math.max(this.kx, this.ky)));
    this.kx *= by;
    this.ky *= by;
    this.tx = x - (x - this.tx) * by;
    this.ty = y - (y - this.ty) * by;
    this.fitted = false;
  }

  /** Shows a place in the middle, at least so large that hosts are `pitch` pixels apart. */
  goTo(x, y, pitch = 0) {
    const by = Math.max(1, pitch / Math.min(this.kx, this.ky));
    this.kx *= by;
    this.ky *= by;
    this.tx = this.width / 2 - x * this.kx;
    this.ty = this.height / 2 - y * this.ky;
    this.fitted = false;
  }
}
