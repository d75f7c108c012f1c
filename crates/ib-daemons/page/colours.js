// Colours of the drawing, for dark and light pages.
//
// Single colours are the palette of Okabe and Ito, which is distinguishable with any kind of colour vision. The lightness
// of the ramp is monotonic, so the ramp is readable without hues; it is computed in OKLab.

/** Indices of the palette. The ramp is between `LEAST` and `MOST`. */
export const IDLE = 0, LEAST = 1, MOST = 240, ACTIVE = 250, DOWN = 251;

const THEMES = {
  dark: {
    background: "#0e1318", ink: "#e6ebf0", faint: "#93a1af", halo: "#0e1318", idle: "#3a4653", active: "#6f8fae", down: "#ff7a33",
    host: "#a9b7c4", switch: "#dfe7ee", router: "#CC79A7", edge: "#0e1318",
    path: "#56B4E9", former: "#e59ac4", chosen: "#ffc145", hover: "#ffffff", from: "#009E73", to: "#E69F00",
    ramp: { light: [0.4, 0.95], hue: [300, 95], chroma: [0.13, 0.15] },
  },
  light: {
    background: "#fbfcfd", ink: "#18212a", faint: "#5a6672", halo: "#fbfcfd", idle: "#cfd7df", active: "#6b87a3", down: "#c04400",
    host: "#5d6f80", switch: "#22384d", router: "#9c3f75", edge: "#fbfcfd",
    path: "#0072B2", former: "#a64d83", chosen: "#d98200", hover: "#000000", from: "#00795a", to: "#b06f00",
    ramp: { light: [0.86, 0.3], hue: [95, 300], chroma: [0.13, 0.15] },
  },
};

/** Returns the colours of a theme and its `palette`: 256 colours of four bytes; the fourth byte is the weight, which limits fading. */
export function coloursOf(theme) {
  const named = THEMES[theme], palette = new Uint8Array(4 * 256);
  const set = (index, [red, green, blue], weight) => palette.set([red, green, blue, weight * 255], 4 * index);
  set(IDLE, parse(named.idle), 0);
  for (let index = LEAST; index <= MOST; index++) {
    const at = (index - LEAST) / (MOST - LEAST);
    set(index, ramp(named.ramp, at), 0.75 * at * at);
  }
  set(ACTIVE, parse(named.active), 0);
  set(DOWN, parse(named.down), 1);
  return { ...named, palette };
}

/** Formats a colour of the palette for CSS. */
export const css = (palette, index, alpha = 1) => `rgb(${palette[4 * index]} ${palette[4 * index + 1]} ${palette[4 * index + 2]} / ${alpha})`;

/** Returns the index of the ramp's colour for a share between 0 and 1; 0 is the idle colour. */
export const rampIndex = (share) => (share > 0 ? LEAST + Math.round(Math.min(1, share) * (MOST - LEAST)) : IDLE);

/** Returns the three bytes of a colour in the form #rrggbb. */
export const parse = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));

// Converts a colour of the ramp from OKLab lightness, hue and chroma to sRGB bytes. Chroma outside of sRGB is reduced.
function ramp({ light, hue, chroma }, at) {
  const mix = ([from, to]) => from + (to - from) * at;
  const lightness = mix(light), angle = (mix(hue) * Math.PI) / 180;
  for (let strength = mix(chroma); ; strength *= 0.95) {
    const rgb = linear(lightness, strength * Math.cos(angle), strength * Math.sin(angle));
    if (strength > 0.001 && rgb.some((part) => part < -0.0005 || part > 1.0005)) continue;
    return rgb.map((part) => Math.round(255 * gamma(Math.min(1, Math.max(0, part)))));
  }
}
function linear(lightness, a, b) {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
}
const gamma = (part) => (part <= 0.0031308 ? 12.92 * part : 1.055 * part ** (1 / 2.4) - 0.055);
