// Transformation from the fabric's coordinates to the screen: x · kx + tx, y · ky + ty, in CSS pixels.

const MARGIN = 46, CLOSEST = 110; // pixels; maximum pixels between two hosts

/** The visible part of the fabric. Both axes have the same zoom, except if the whole fabric is stretched to the stage. */
export class Camera {
  kx = 1;
  ky = 1;
  tx = 0;
  ty = 0;
  width = 1;
  height = 1;
  fitted = true; // true until the user moves the camera

  x(x) { return x * this.kx + this.tx; }
  y(y) { return y * this.ky + this.ty; }

  /** Returns a copy. */
  still() {
    return Object.assign(new Camera(), this);
  }

  /** Returns true if another camera has the same transformation. */
  same(other) {
    return ["kx", "ky", "tx", "ty", "width", "height"].every((key) => this[key] === other[key]);
  }

  /** Fits a whole layout into the stage. */
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

  /** Moves the visible part by pixels. */
  pan(dx, dy) {
    this.tx += dx;
    this.ty += dy;
    this.fitted = false;
  }

  /** Zooms around a point of the screen. */
  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const by = Math.max(this.least / Math.min(this.kx, this.ky), Math.min(factor, CLOSEST / Math.max(this.kx, this.ky)));
    this.kx *= by;
    this.ky *= by;
    this.tx = x - (x - this.tx) * by;
    this.ty = y - (y - this.ty) * by;
    this.fitted = false;
  }

  /** Centres a position, with at least `pitch` pixels between hosts. */
  goTo(x, y, pitch = 0) {
    const by = Math.max(1, pitch / Math.min(this.kx, this.ky));
    this.kx *= by;
    this.ky *= by;
    this.tx = this.width / 2 - x * this.kx;
    this.ty = this.height / 2 - y * this.ky;
    this.fitted = false;
  }
}
