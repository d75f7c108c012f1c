// Measures the first drawing of a fabric: node first.mjs FABRIC [RUNS]
//
// Prints one line of JSON: the times in ms from the navigation to the first complete drawing, their median, and the load of
// the machine. Each run has a browser context of its own, so nothing is cached. A drawing is complete when the renderer has
// executed all commands for it, which the browser shows by returning a pixel of it.

import { loadavg } from "node:os";
import { browser, open, up } from "./browser.mjs";

const [file, runs = "5"] = process.argv.slice(2);
if (!file) {
  console.error("usage: node first.mjs FABRIC [RUNS]");
  process.exit(2);
}

/** Runs in the page, before its own scripts: marks the times at which the page has its data, and is drawn. */
function watch() {
  const seen = new Set();
  const mark = (name) => { if (!seen.has(name)) { seen.add(name); performance.mark(name); } };
  new MutationObserver(() => {
    if (document.documentElement.dataset.ready) mark("ready");
    if (seen.has("drawn") || document.querySelector("#stage")?.dataset.drawn !== "all") return;
    const canvas = document.querySelector("#links"), gl = canvas.getContext("webgl2");
    if (gl) gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
    else canvas.getContext("2d").getImageData(0, 0, 1, 1);
    requestAnimationFrame(() => mark("drawn"));
  }).observe(document, { subtree: true, attributes: true, attributeFilter: ["data-ready", "data-drawn"] });
}

const fabric = await up(file);
const chrome = await browser();
try {
  const drawn = [], steps = [];
  let facts;
  for (let run = 0; run < Number(runs); run++) {
    const { page, faults, close } = await open(chrome, fabric.url, { query: process.env.QUERY ?? "", before: watch });
    await page.waitForFunction(() => performance.getEntriesByName("drawn").length, null, { timeout: 120_000 });
    const seen = await page.evaluate(() => ({
      marks: performance.getEntriesByType("mark").map(({ name, startTime }) => [name, Math.round(startTime)]),
      facts: { renderer: ibfabric.renderer, nodes: ibfabric.nodes().length },
    }));
    if (faults.length) throw new Error(faults.join("\n"));
    const marks = Object.fromEntries(seen.marks);
    drawn.push(marks.drawn);
    steps.push(marks.ready);
    facts = seen.facts;
    await close();
  }
  const median = (list) => [...list].sort((one, other) => one - other)[Math.floor(list.length / 2)];
  console.log(JSON.stringify({ fabric: file, ...facts, ready_ms: median(steps), drawn_ms: median(drawn), runs_ms: drawn, load: +loadavg()[0].toFixed(2) }));
} finally {
  await chrome.close();
  await fabric.stop();
}
