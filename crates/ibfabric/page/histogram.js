// Bars of how often something was how much.

import { h, svg } from "./dom.js";
import { number } from "./format.js";

const WIDE = 360, HIGH = 110, BELOW = 22, ABOVE = 16;

/**
 * Draws a histogram of `buckets`, [upper bound, count] in rising order. `write` writes a bound; `marks` are
 * [value, what it is], drawn as upright lines; `label` says what the whole is.
 */
export function histogram({ buckets, write, marks = [], label, unit }) {
  const first = buckets.findIndex(([, count]) => count > 0);
  if (first < 0) return h("p", { class: "faint" }, `${label}: none so far.`);
  const last = buckets.findLastIndex(([, count]) => count > 0), shown = buckets.slice(first, last + 1);
  const most = Math.max(...shown.map(([, count]) => count)), total = shown.reduce((sum, [, count]) => sum + count, 0);
  const wide = WIDE / shown.length, bottom = ABOVE + HIGH;
  const lower = (index) => (first + index ? buckets[first + index - 1][0] : 0);
  const bars = shown.map(([bound, count], index) => {
    const high = count ? Math.max(1.5, (count / most) * HIGH) : 0;
    return svg("rect", { class: "bar", x: index * wide + 0.5, y: bottom - high, width: Math.max(0.5, wide - 1), height: high },
      svg("title", {}, `${write(lower(index))} to ${write(bound)}: ${number(count)}`));
  });
  // Where a value is: within its bucket, by share.
  const at = (value) => {
    const index = shown.findIndex(([bound]) => value <= bound);
    if (index < 0) return WIDE;
    return (index + Math.max(0, Math.min(1, (value - lower(index)) / (shown[index][0] - lower(index) || 1)))) * wide;
  };
  let taken = -Infinity;
  const lines = marks.filter(([value]) => value > 0).sort(([one], [other]) => one - other).map(([value, what]) => {
    const x = at(value), text = Math.min(Math.max(x, taken + 34), WIDE - 14);
    taken = text;
    return svg("g", { class: "at" }, svg("line", { x1: x, x2: x, y1: ABOVE - 3, y2: bottom }), svg("text", { x: text, y: 10, "text-anchor": "middle" }, what));
  });
  const steps = Math.max(1, Math.ceil(shown.length / 6));
  const ticks = shown.flatMap(([bound], index) => (index % steps === steps - 1 ? [svg("text", { x: (index + 1) * wide, y: bottom + 14, "text-anchor": index === shown.length - 1 ? "end" : "middle" }, write(bound))] : []));
  return h("figure", { class: "histogram" },
    svg("svg", { viewBox: `0 0 ${WIDE} ${bottom + BELOW}`, role: "img", "aria-label": `${label}: ${number(total)} ${unit}; ${marks.map(([value, what]) => `${what} ${write(value)}`).join(", ")}` },
      svg("line", { class: "axis", x1: 0, x2: WIDE, y1: bottom + 0.5, y2: bottom + 0.5 }), bars, lines, ticks),
    h("figcaption", {}, `${label}: ${number(total)} ${unit}`));
}

/** Sorts values into at most `most` buckets of one width for `histogram`. */
export function bucketsOf(values, most = 24) {
  const top = values.reduce((top, value) => Math.max(top, value), 0), step = Math.max(1, Math.ceil(top / most));
  const buckets = Array.from({ length: Math.max(1, Math.ceil(top / step)) }, (_, index) => [(index + 1) * step, 0]);
  for (const value of values) buckets[Math.max(0, Math.ceil(value / step) - 1)][1]++;
  return buckets;
}
