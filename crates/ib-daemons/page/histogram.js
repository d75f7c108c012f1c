// Bar chart of a histogram.

import { h, svg } from "./dom.js";
import { number } from "./format.js";

const WIDE = 360, HIGH = 110, BELOW = 22, ABOVE = 16, NARROWEST = 1.5, TICK = 46;

/**
 * Draws a histogram of `bars`, [lower bound, upper bound, count] in ascending order, on a logarithmic axis if `log`. `write`
 * formats a value. `marks` are [value, name], drawn as vertical lines. `label` is the title, `unit` the unit of the counts.
 */
export function histogram({ bars, log = false, write, marks = [], label, unit }) {
  const shown = bars.filter(([, , count]) => count > 0);
  if (!shown.length) return h("p", { class: "faint" }, `${label}: none so far.`);
  const least = shown[0][0], last = Math.max(shown.at(-1)[1], ...marks.map(([value]) => value));
  const scale = (value) => (log ? Math.log(Math.max(value, 0.5)) : value), from = scale(least), to = Math.max(scale(last), from + 1e-9);
  const x = (value) => (Math.max(0, Math.min(1, (scale(value) - from) / (to - from)))) * WIDE;
  const most = Math.max(...shown.map(([, , count]) => count)), total = shown.reduce((sum, [, , count]) => sum + count, 0), bottom = ABOVE + HIGH;
  const rects = shown.map(([lower, upper, count]) => {
    const left = x(lower), high = Math.max(1.5, (count / most) * HIGH);
    return svg("rect", { class: "bar", x: left, y: bottom - high, width: Math.max(NARROWEST, x(upper) - left - 0.7), height: high },
      svg("title", {}, `${write(lower)} to ${write(upper)}: ${number(count)}`));
  });
  let taken = -Infinity;
  const lines = [...marks].sort(([one], [other]) => one - other).map(([value, what]) => {
    const at = x(value), text = Math.min(Math.max(at, taken + 32, 14), WIDE - 14);
    taken = text;
    return svg("g", { class: "at" }, svg("line", { x1: at, x2: at, y1: ABOVE - 3, y2: bottom }), svg("text", { x: text, y: 10, "text-anchor": "middle" }, what));
  });
  const labels = ticks(least, last, log).map((value) => [x(value), value]).filter(([at], index, all) => !index || at - all[index - 1][0] > 0);
  let end = -TICK;
  const texts = labels.filter(([at]) => (at - end >= TICK && at > 8 && at < WIDE - 8 ? ((end = at), true) : false))
    .map(([at, value]) => svg("g", {}, svg("line", { class: "axis", x1: at, x2: at, y1: bottom, y2: bottom + 4 }), svg("text", { x: at, y: bottom + 15, "text-anchor": "middle" }, write(value))));
  const said = marks.map(([value, what]) => `${what} ${write(value)}`).join(", ");
  return h("figure", { class: "histogram" },
    svg("svg", { viewBox: `0 0 ${WIDE} ${bottom + BELOW}`, role: "img", "aria-label": `${label}: ${number(total)} ${unit}${said && `; ${said}`}` },
      svg("line", { class: "axis", x1: 0, x2: WIDE, y1: bottom + 0.5, y2: bottom + 0.5 }), rects, lines, texts),
    h("figcaption", {}, `${label}: ${number(total)} ${unit}`));
}

/** Sorts values into at most `most` bars of equal width. */
export function barsOf(values, most = 24) {
  const top = values.reduce((top, value) => Math.max(top, value), 0), step = Math.max(1, Math.ceil(top / most));
  const bars = Array.from({ length: Math.max(1, Math.ceil(top / step)) }, (_, index) => [index * step, (index + 1) * step, 0]);
  for (const value of values) bars[Math.max(0, Math.ceil(value / step) - 1)][2]++;
  return bars;
}

/**
 * Converts the server's buckets of microseconds, [upper bound, count], to bars. Empty buckets are omitted by the server.
 * A bucket begins at the upper bound of the one before. Its width is at most 25 % of its lower bound, or 1 µs.
 */
export function barsOfRanges(ranges) {
  return ranges.map(([upper, count], index) => {
    const lower = Math.max(index ? ranges[index - 1][0] : 0, Math.min(upper * 0.8, upper - 1));
    return [lower, upper, count];
  });
}

// Returns round values in a range, for the axis.
function ticks(from, to, log) {
  const values = [];
  if (log) {
    for (let power = 10 ** Math.floor(Math.log10(Math.max(from, 1))); power <= to; power *= 10) {
      for (const times of to / Math.max(from, 1) > 1000 ? [1] : [1, 2, 5]) if (times * power >= from && times * power <= to) values.push(times * power);
    }
    return values;
  }
  const rough = (to - from) / 5 || 1, unit = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].map((times) => times * unit).find((size) => size >= rough);
  for (let value = Math.ceil(from / step) * step; value <= to; value += step) values.push(value);
  return values;
}
