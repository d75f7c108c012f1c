// Takes the screenshot of the page for README: node picture.mjs FILE.png
//
// On the example fabric, while its device is exercised: a pair is chosen, and a link of its path is cut.

import { browser, drawn, open, up } from "./browser.mjs";

const [file] = process.argv.slice(2);
if (!file) {
  console.error("usage: node picture.mjs FILE.png");
  process.exit(2);
}
const fabric = await up();
const chrome = await browser();
try {
  const { page } = await open(chrome, fabric.url, { colorScheme: "light", viewport: { width: 1280, height: 760 } });
  await page.evaluate(() => fetch("api/exercise", { method: "POST", headers: { "Content-Type": "application/json" }, body: '{"seconds":30}' }));
  const hosts = await page.evaluate(() => ibfabric.nodes().filter(({ kind }) => kind === "host").map(({ id }) => id));
  await page.keyboard.down("Shift");
  for (const id of [hosts[1], hosts.at(-2)]) {
    const { x, y } = await page.evaluate((own) => ibfabric.nodeAt(own), id);
    await page.mouse.click(x, y);
  }
  await page.keyboard.up("Shift");
  await page.waitForSelector("#path-now tbody tr");
  const link = await page.evaluate(() => ibfabric.path().path.hops[1].link);
  await page.evaluate((id) => fetch("api/link", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ link: id, up: false }) }), link);
  await page.waitForSelector("#path-before", { state: "attached", timeout: 60_000 });
  await page.evaluate(() => ibfabric.open("path"));
  await page.check("[name=colour][value=traffic]");
  await page.mouse.move(1, 1); // nothing is pointed at
  await page.waitForTimeout(3000); // the figures of a few states
  await drawn(page);
  await page.screenshot({ path: file });
} finally {
  await chrome.close();
  await fabric.stop();
}
