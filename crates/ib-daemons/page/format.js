// How numbers are written.

const grouped = new Intl.NumberFormat("en");

/** Writes a whole number with its thousands apart. */
export const number = (value) => grouped.format(value);

/** Writes a count of things, as "1 link", "2 links". */
export const many = (count, one, more = `${one}s`) => `${number(count)} ${count === 1 ? one : more}`;

/** Writes a number with at most `digits` significant digits and no exponent. */
export function short(value, digits = 3) {
  if (!value) return "0";
  const whole = Math.abs(value) >= 10 ** (digits - 1);
  return whole ? grouped.format(Math.round(value)) : String(+value.toPrecision(digits));
}

/** Writes bytes in units of 1,000, as rates of links are. */
export const bytes = (value) => scaled(value, 1000, ["B", "kB", "MB", "GB", "TB", "PB"]);

/** Writes bytes in units of 1,024, as sizes of memory and devices are. */
export const size = (value) => scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);

/** Writes bytes per second. */
export const rate = (value) => `${bytes(value)}/s`;

/** Writes a time of microseconds in the unit that suits it. */
export const micros = (value) => (value >= 1e6 ? `${short(value / 1e6)} s` : value >= 1e3 ? `${short(value / 1e3)} ms` : `${short(value)} µs`);

function scaled(value, base, units) {
  let unit = 0;
  for (; Math.abs(value) >= base && unit + 1 < units.length; unit++) value /= base;
  return `${unit ? short(value) : number(Math.round(value))} ${units[unit]}`;
}

/** Compares names as people do: numbers within them by their value. */
export const byName = new Intl.Collator("en", { numeric: true }).compare;
