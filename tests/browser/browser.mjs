// Starts `ibfabric up` and a browser for the tests.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const FLAGS = [
  "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
  "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist",
];
const PATIENCE = 120_000; // ms until the fabric is up

/** Starts `ibfabric up` with arguments, returns `{ url, stop, signal }`. IBFABRIC names the program. */
export async function up(...args) {
  const program = process.env.IBFABRIC;
  if (!program) throw new Error("IBFABRIC has to name the program, for example target/release/ibfabric");
  const place = await mkdtemp(join(tmpdir(), "ibfabric-page-"));
  const socket = `page-${process.pid}-${Math.floor(performance.now())}`;
  const child = spawn(program, ["up", "--name", socket, "--nbd", join(place, "nbd"), ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  child.stderr.on("data", (text) => { said += text; });
  const ended = new Promise((resolve) => { child.on("close", resolve); });
  const stop = async () => {
    child.kill("SIGCONT"); // a stopped process does not handle other signals
    child.kill("SIGTERM");
    const late = setTimeout(() => child.kill("SIGKILL"), 10_000);
    const status = await ended;
    clearTimeout(late);
    await rm(place, { recursive: true, force: true });
    return status;
  };
  const url = await new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`no "page:" line in ${PATIENCE / 1000} s\n${said}`)), PATIENCE);
    createInterface(child.stdout).on("line", (line) => {
      said += `${line}\n`;
      const found = /^page: (http:\S+)$/.exec(line);
      if (found) { clearTimeout(late); resolve(found[1]); }
    });
    ended.then((status) => reject(new Error(`ibfabric up ended with status ${status}\n${said}`)));
  }).catch(async (error) => { await stop(); throw error; });
  return { url, stop, signal: (name) => child.kill(name) };
}

/** Starts the browser that CHROMIUM names, or Debian's. */
export const browser = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });

/**
 * Opens the page in a context of its own. `faults` collects what must not be: errors on the console, exceptions, requests
 * to any other place. `before` runs in the page, before its own scripts.
 */
export async function open(chrome, url, { query = "", before = null, ...options } = {}) {
  const context = await chrome.newContext({ viewport: { width: 1400, height: 860 }, reducedMotion: "reduce", ...options });
  const page = await context.newPage(), faults = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) faults.push(`console: ${message.text()}`); });
  page.on("pageerror", (error) => faults.push(`exception: ${error.stack}`));
  page.on("request", (request) => { if (!request.url().startsWith(url)) faults.push(`request to ${request.url()}`); });
  page.on("response", (response) => { if (response.status() >= 400 && !response.url().includes("/api/")) faults.push(`${response.status()} for ${response.url()}`); });
  if (before) await page.addInitScript(before);
  await page.goto(url + query);
  await ready(page);
  return { page, faults, close: () => context.close() };
}

/** Waits until the page has the fabric and its state. */
export async function ready(page) {
  await page.waitForSelector("html[data-ready=true][data-routes]", { timeout: 60_000 });
  await drawn(page);
}

/** Waits until all is drawn. */
export const drawn = (page) => page.waitForSelector("#stage[data-drawn=all]", { timeout: 60_000 });
