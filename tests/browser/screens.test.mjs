// The screens of the page: every tab, and the states of a fabric that is empty, broken or no longer served.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { browser, open, up } from "./browser.mjs";
import { SCREENS, check, tabStops } from "./checks.mjs";

const PATIENCE = 60_000; // ms
const TABS = ["problems", "node", "path", "load", "acm", "rtrs", "fabric", "log"];
const TORUS = new URL("../../examples/torus.net", import.meta.url).pathname;
const SWITCHES = 'Switch\t4 "S-0002c90000200000"\n[1]\t"S-0002c90000200001"[1]\n\nSwitch\t4 "S-0002c90000200001"\n[1]\t"S-0002c90000200000"[1]\n';

let chrome, place;
const opened = [];
before(async () => {
  chrome = await browser();
  place = await mkdtemp(join(tmpdir(), "ibfabric-screens-"));
});
afterEach(async () => { for (const close of opened.splice(0).reverse()) await close(); });
after(async () => {
  await chrome?.close();
  await rm(place, { recursive: true, force: true });
});

/** Starts `ibfabric up`, which is stopped after the test. */
async function start(...args) {
  const fabric = await up(...args);
  opened.push(() => fabric.stop());
  return fabric;
}

/** Opens the page on a screen with a color scheme. */
async function show(url, screen = "desktop", colorScheme = "light") {
  const view = await open(chrome, url, { ...SCREENS[screen], colorScheme });
  opened.push(() => view.close());
  return view;
}

const notice = (page, kind) => page.waitForSelector(`#notice[data-kind=${kind}]:not([hidden])`, { timeout: PATIENCE });
const text = (page, selector) => page.innerText(selector);
const setLink = (page, link, isUp) => page.evaluate((body) => fetch("api/link", { method: "POST", headers: { "Content-Type": "application/json" }, body }), JSON.stringify({ link, up: isUp }));
/** The link of the host with a position in the list of hosts. */
const hostLink = (page, position) => page.evaluate(async (at) => {
  const host = ibfabric.nodes().filter(({ kind }) => kind === "host").at(at);
  return (await (await fetch(`api/node?id=${host.id}`)).json()).ports.find(({ link }) => link !== null).link;
}, position);

/** Calls `act` with a page for every screen and color scheme. */
async function onAll(url, act) {
  for (const screen of Object.keys(SCREENS)) {
    for (const colorScheme of ["light", "dark"]) {
      const { page, faults } = await show(url, screen, colorScheme);
      await act(page, screen);
      assert.deepEqual(faults, [], screen);
    }
  }
}

test("every tab is accessible and fits, on a phone and on a desktop, light and dark", async () => {
  const { url } = await start();
  await onAll(url, async (page, screen) => {
    await page.waitForSelector("#health[data-kind=good]", { timeout: PATIENCE });
    const hash = await page.evaluate(() => {
      const hosts = ibfabric.nodes().filter(({ kind }) => kind === "host");
      return `#${new URLSearchParams({ node: hosts[3].name, from: hosts[1].name, to: hosts.at(-2).name })}`;
    });
    await page.evaluate((own) => { location.hash = own; }, hash);
    for (const tab of TABS) {
      await page.evaluate((own) => ibfabric.open(own), tab);
      await page.waitForSelector(`#panel-${tab}:not([hidden])`);
      await page.waitForTimeout(500); // the panel requests its data
      await check(page, tab, screen);
    }
    await page.click("#help-open");
    await check(page, "help", screen);
  });
});

test("the Tab key reaches all controls, and the focus is visible", async () => {
  const { url } = await start(), { page } = await show(url);
  await page.evaluate(() => ibfabric.open("fabric"));
  await page.waitForSelector("#node-count");
  const { reached, unseen } = await tabStops(page);
  assert.deepEqual(unseen, []);
  for (const id of ["health", "theme", "help-open", "find", "zoom-in", "zoom-out", "zoom-fit", "stage", "tab-fabric", "filter"]) assert.ok(reached.includes(id), `${id} is not in ${reached}`);
});

test("the tab Fabric has all nodes and links of the drawing with their states, and filters them", async () => {
  const { url } = await start(), { page } = await show(url);
  const count = await page.evaluate(async () => { const { nodes, links } = await (await fetch("api/fabric")).json(); return [nodes.length, links.length]; });
  await page.evaluate(() => ibfabric.open("fabric"));
  const rows = (label) => page.$$eval(`[aria-label=${label}] tbody tr`, (list) => list.map((row) => row.innerText));
  assert.deepEqual([(await rows("Nodes")).length, (await rows("Links")).length], count);
  const link = await hostLink(page, 3), name = await page.evaluate(() => ibfabric.nodes().filter(({ kind }) => kind === "host")[3].name);
  await setLink(page, link, false);
  await page.fill("#filter", name);
  await page.waitForFunction(() => /not reached/.test(document.querySelector("[aria-label=Nodes] tbody").innerText), null, { timeout: PATIENCE });
  assert.equal((await rows("Nodes")).length, 1);
  assert.match((await rows("Links")).join(), /down/);
  await page.click("[aria-label=Nodes] tbody button");
  await page.waitForFunction((own) => location.hash.includes(own), name);
});

test("no request leaves the server of the page: the policy forbids it, and no file names another host", async () => {
  const { url } = await start(), { page } = await show(url);
  const response = await page.request.get(url), policy = Object.fromEntries(response.headers()["content-security-policy"].split("; ").map((rule) => [rule.split(" ")[0], rule.split(" ").slice(1).join(" ")]));
  assert.equal(policy["default-src"], "'none'");
  for (const [rule, sources] of Object.entries(policy)) assert.ok(["'none'", "'self'"].includes(sources), `${rule} ${sources}`);
  const files = await page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name));
  assert.ok(files.length > 20, "the page has loaded its files");
  for (const file of files) {
    const { hostname } = new URL(file);
    assert.equal(hostname, "127.0.0.1", file);
    if (!/\.(js|css|svg)$/.test(file)) continue;
    const hosts = (await (await page.request.get(file)).text()).match(/\b(https?|wss?):\/\/[\w.-]+/g) ?? [];
    assert.deepEqual(hosts.filter((host) => host !== "http://www.w3.org"), [], file); // the name of the SVG namespace
  }
  const blocked = await page.evaluate(() => new Promise((resolve) => {
    document.addEventListener("securitypolicyviolation", ({ effectiveDirective }) => resolve(effectiveDirective), { once: true });
    fetch("http://127.0.0.2:9/").catch(() => {});
  }));
  assert.equal(blocked, "connect-src");
});

describe("a notice says what has happened and what to do", () => {
  test("in a fabric without hosts", async () => {
    const file = join(place, "switches.net");
    await writeFile(file, SWITCHES);
    const { url } = await start(file);
    await onAll(url, async (page, screen) => {
      await notice(page, "empty");
      assert.match(await text(page, "#notice"), /no hosts[^]*2 switches[^]*Ca/);
      await check(page, "empty", screen);
    });
  });

  test("when the routes have a credit loop", async () => {
    const { url } = await start("-R", "minhop", TORUS);
    await onAll(url, async (page, screen) => {
      await notice(page, "broken");
      assert.match(await text(page, "#notice"), /1 credit loop[^]*minhop[^]*-R lash/);
      await page.click("#notice button");
      assert.match(await text(page, "#alarms"), /credit loop/);
      await check(page, "credit loop", screen);
    });
  });

  test("when hosts are not reached, with a button that restores the link", async () => {
    const { url } = await start(), { page, faults } = await show(url), link = await hostLink(page, 5);
    await setLink(page, link, false);
    await onAll(url, async (own, screen) => {
      await notice(own, "broken");
      assert.match(await text(own, "#notice"), /1 of 44 nodes not reached/);
      await check(own, "not reached", screen);
    });
    await page.click(`#notice button:has-text("Restore link ${link}")`);
    await page.waitForSelector("#notice", { state: "hidden", timeout: PATIENCE });
    await page.waitForSelector("#health[data-kind=good]", { timeout: PATIENCE });
    assert.deepEqual(faults, []);
  });

  test("when the subnet manager is cut off, with its node", async () => {
    const { url } = await start(), { page } = await show(url), link = await hostLink(page, 0);
    await setLink(page, link, false);
    await onAll(url, async (own, screen) => {
      await own.waitForFunction(() => /subnet manager reaches no other node/.test(document.querySelector("#notice").innerText), null, { timeout: PATIENCE });
      const host = await own.evaluate(() => ibfabric.nodes().find(({ kind }) => kind === "host").name);
      assert.ok((await text(own, "#notice")).includes(host));
      await check(own, "SM cut off", screen);
    });
  });

  test("when the program exits while the page is open", async () => {
    const fabric = await start(), views = [];
    for (const screen of Object.keys(SCREENS)) for (const scheme of ["light", "dark"]) views.push([screen, await show(fabric.url, screen, scheme)]);
    assert.equal(await fabric.stop(), 0);
    for (const [screen, { page }] of views) {
      await notice(page, "ended");
      assert.match(await text(page, "#notice"), /ibfabric up has exited[^]*last state, of \d[^]*Run ibfabric up again/);
      assert.equal(await page.getAttribute("#health", "data-kind"), "unknown");
      await check(page, "exited", screen);
    }
  });

  test("when the process is stopped by its shell, until it continues", async () => {
    const fabric = await start(), { page } = await show(fabric.url);
    fabric.signal("SIGSTOP");
    await notice(page, "lost");
    assert.match(await text(page, "#notice"), /does not respond[^]*fg/);
    fabric.signal("SIGCONT");
    await page.waitForSelector("#notice", { state: "hidden", timeout: PATIENCE });
  });

  test("when the fabric cannot be loaded", async () => {
    const { url } = await start(), context = await chrome.newContext({ ...SCREENS.phone });
    opened.push(() => context.close());
    const page = await context.newPage();
    await page.route("**/api/fabric", (route) => route.fulfill({ status: 503, contentType: "application/json", body: '{"error":"the fabric is being stopped"}' }));
    await page.goto(url);
    await notice(page, "broken");
    assert.match(await text(page, "#notice"), /cannot be loaded[^]*the fabric is being stopped/);
    await check(page, "not loaded", "phone");
    await page.unroute("**/api/fabric");
    await page.click('#notice button:has-text("Load again")');
    await page.waitForSelector("html[data-ready=true]");
  });
});
