// Formats numbers.

const grouped = new Intl.NumberFormat("en");

/** Formats an integer with grouped thousands. */
export const number = (value) => grouped.format(value);

/** Formats a count with its noun: "1 link", "2 links". */
export const many = (count, one, more = `${one}s`) => `${number(count)} ${count === 1 ? one : more}`;

/** Formats a number with at most `digits` significant digits and no exponent. */
export function short(value, digits = 3) {
  if (!value) return "0";
  const whole = Math.abs(value) >= 10 ** (digits - 1);
  return whole ? grouped.format(Math.round(value)) : String(+value.toPrecision(digits));
}

/** Formats bytes in decimal units, like the rates of links. */
export const bytes = (value) => scaled(value, 1000, ["B", "kB", "MB", "GB", "TB", "PB"]);

/** Formats bytes in binary units, like the sizes of memory and devices. */
export const size = (value) => scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);

/** Formats bytes per second. */
export const rate = (value) => `${bytes(value)}/s`;

/** Formats microseconds in a suitable unit. */
export const micros = (value) => (value >= 1e6 ? `${short(value / 1e6)} s` : value >= 1e3 ? `${short(value / 1e3)} ms` : `${short(value)} µs`);

function scaled(value, base, units) {
  let unit = 0;
  for (; Math.abs(value) >= base && unit + 1 < units.length; unit++) value /= base;
  return `${unit ? short(value) : number(Math.round(value))} ${units[unit]}`;
}

/** Compares names in natural order: digits by their numeric value. */
export const byName = new Intl.Collator("en", { numeric: true }).compare;
