// Appearance of links: colours of both directions, dashes, and drawing order.

import { ACTIVE, DOWN, rampIndex } from "./colours.js";

/** Range of rates with colours of the ramp, in bytes per second. */
export const RATES = [1e3, 1e10];

/** Returns the position of a rate in the logarithmic ramp. The lowest rate differs from idle. */
export const rateShare = (rate) => (rate > 0 ? Math.max(0.001, Math.log(rate / RATES[0]) / Math.log(RATES[1] / RATES[0])) : 0);

/**
 * Returns `bytes`, four per link (colours of both halves, 1 if dashed, offset + 128), and `order`, the drawing order of the
 * links: links with the highest priority are last.
 */
export function stylesOf(fabric, colour) {
  const count = fabric.links.length, bytes = new Uint8Array(4 * count), weight = new Uint8Array(count);
  const share = {
    state: () => 0,
    load: (end) => (fabric.loadMost ? fabric.load[end] / fabric.loadMost : 0),
    traffic: (end) => rateShare(fabric.traffic[end]),
  }[colour];
  for (let link = 0; link < count; link++) {
    const at = 4 * link;
    if (fabric.down[link]) {
      bytes[at] = bytes[at + 1] = DOWN;
      bytes[at + 2] = 1;
      weight[link] = 255;
    } else if (colour === "state") {
      bytes[at] = bytes[at + 1] = ACTIVE;
    } else {
      bytes[at] = rampIndex(share(2 * link));
      bytes[at + 1] = rampIndex(share(2 * link + 1));
      weight[link] = Math.max(bytes[at], bytes[at + 1]);
    }
    bytes[at + 3] = fabric.lanes[link] + 128;
  }
  return { bytes, order: sorted(weight) };
}

// Returns the indices of bytes sorted by value; the sort is stable.
function sorted(weight) {
  const starts = new Uint32Array(257), order = new Uint32Array(weight.length);
  for (const value of weight) starts[value + 1]++;
  for (let value = 0; value < 256; value++) starts[value + 1] += starts[value];
  weight.forEach((value, index) => { order[starts[value]++] = index; });
  return order;
}

/** Returns the width of a node in pixels if hosts are `pitch` pixels apart. */
export function nodeSize(kind, room, pitch) {
  const size = room * pitch * (kind === "host" ? 0.5 : 0.55);
  return kind === "host" ? Math.max(1.6, Math.min(size, 15)) : Math.max(3.2, Math.min(size, 26));
}

/** Returns the width of links in pixels. */
export const linkWidth = (pitch) => Math.max(1, Math.min(3, pitch / 14));

/** Returns the distance of parallel cables in pixels. */
export const laneStep = (pitch) => Math.min(2.5, Math.max(0.5, pitch / 12));

/**
 * Returns the opacity of links without priority if their lines would cover the stage `layers` times. It is low enough to
 * keep differences visible in the densest part of a fabric.
 */
export const plainAlpha = (layers) => Math.max(0.07, Math.min(0.9, 0.25 / Math.max(0.01, layers)));
