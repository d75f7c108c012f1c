// Measures frame rates while a fabric is moved and zoomed: node frames.mjs FABRIC [SECONDS]
//
// Prints one line of JSON. The page is moved by a script for some seconds, with all links in every frame, and the times
// between frames are taken by requestAnimationFrame.

import { browser, open, up } from "./browser.mjs";

const [file, seconds = "10"] = process.argv.slice(2);
if (!file) {
  console.error("usage: node frames.mjs FABRIC [SECONDS]");
  process.exit(2);
}
const fabric = await up(file);
const chrome = await browser();
try {
  const { page, faults } = await open(chrome, fabric.url, { query: process.env.QUERY ?? "" });
  const facts = await page.evaluate(() => ({
    renderer: ibfabric.renderer, hosts: ibfabric.nodes().filter(({ kind }) => kind === "host").length, nodes: ibfabric.nodes().length,
  }));
  const results = {};
  for (const layout of ["rank", "force"]) {
    await page.check(`[name=layout][value=${layout}]`);
    await page.waitForSelector("#stage[data-settled=true]", { timeout: 300_000 });
    await page.click("#zoom-fit");
    await page.waitForSelector("#stage[data-drawn=all]", { timeout: 300_000 });
    const times = (await page.evaluate((ms) => ibfabric.tour(ms), 1000 * Number(seconds))).sort((a, b) => a - b);
    const at = (share) => +times[Math.min(times.length - 1, Math.floor(times.length * share))].toFixed(1);
    const all = times.reduce((sum, time) => sum + time, 0);
    results[layout] = { fps: +((1000 * times.length) / all).toFixed(1), median_ms: at(0.5), p95_ms: at(0.95), max_ms: at(1), frames: times.length };
  }
  console.log(JSON.stringify({ fabric: file, ...facts, ...results, faults }));
} finally {
  await chrome.close();
  await fabric.stop();
}
