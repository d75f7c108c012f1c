// The self-contained HTML pages of `route --html` and `capture correlate --html`.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { browser } from "./browser.mjs";
import { SCREENS, check, tabStops } from "./checks.mjs";

const program = process.env.IBFABRIC, run = promisify(execFile);
const EXAMPLES = new URL("../../examples/", import.meta.url).pathname;

let chrome, place;
before(async () => {
  chrome = await browser();
  place = await mkdtemp(join(tmpdir(), "ibfabric-reports-"));
});
after(async () => {
  await chrome?.close();
  await rm(place, { recursive: true, force: true });
});

/** Opens a file on all screens, light and dark, checks it, and calls `act` with the page. */
async function onAll(file, act) {
  const html = await readFile(file, "utf8");
  assert.match(html, /http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"/);
  assert.deepEqual(html.match(/\b(https?|wss?):\/\/[\w.-]+/g)?.filter((host) => host !== "http://www.w3.org") ?? [], []);
  for (const [screen, options] of Object.entries(SCREENS)) {
    for (const colorScheme of ["light", "dark"]) {
      const context = await chrome.newContext({ ...options, colorScheme, reducedMotion: "reduce" });
      const page = await context.newPage(), faults = [];
      page.on("console", (message) => { if (["error", "warning"].includes(message.type())) faults.push(message.text()); });
      page.on("pageerror", (error) => faults.push(error.stack));
      page.on("request", (request) => { if (request.url() !== `file://${file}`) faults.push(`request to ${request.url()}`); });
      await page.goto(`file://${file}`);
      await act(page);
      await check(page, file, screen);
      assert.deepEqual(faults, []);
      await context.close();
    }
  }
}

test("the report of routes is accessible, fits, and requests nothing", async () => {
  const file = join(place, "routes.html");
  // The routes have a credit loop, so the exit status is 1.
  await assert.rejects(run(program, ["route", join(EXAMPLES, "torus.net"), "-R", "minhop", "--html", file]), ({ code }) => code === 1);
  await onAll(file, async (page) => {
    await page.waitForSelector("figure.scripted #overlay");
    assert.match(await page.innerText("body"), /1 credit loop/);
  });
  const page = await chrome.newPage();
  await page.goto(`file://${file}`);
  const { reached, unseen } = await tabStops(page);
  assert.deepEqual(unseen, []);
  for (const id of ["find", "show-hot", "show-loops", "overlay"]) assert.ok(reached.includes(id), `${id} is not in ${reached}`);
  await page.close();
});

test("the page of correlated captures is accessible, fits, and requests nothing", async () => {
  const [client, server, file] = ["client.pcapng", "server.pcapng", "times.html"].map((name) => join(place, name));
  const udp = String(20_000 + (process.pid % 20_000));
  const serve = spawn(program, ["rdma", "serve", "--listen", "127.0.0.1", "--udp-port", udp, "--pcap", server, "--exit-after", "1"], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => { serve.on("close", resolve); });
  try {
    await new Promise((resolve, reject) => {
      serve.stdout.once("data", resolve);
      ended.then((status) => reject(new Error(`rdma serve has exited with status ${status}`)));
    });
    await run(program, ["rdma", "lat", "127.0.0.1", "--from", "127.0.0.2", "--op", "send", "--udp-port", udp, "--pcap", client]);
    assert.equal(await ended, 0);
  } finally {
    serve.kill();
  }
  await run(program, ["capture", "correlate", client, server, "--udp-port", udp, "--html", file]);
  await onAll(file, (page) => page.waitForSelector("#stage canvas"));
});
