// Checks of a screen: accessibility, and its fit on a phone and on a desktop.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

const AXE = await readFile(new URL("./node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const LEAST = 44; // CSS pixels: minimum size of a control for fingers

/** The screens on which the page is checked. */
export const SCREENS = {
  phone: { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true },
  desktop: { viewport: { width: 1280, height: 800 } },
};

/** Checks that axe-core reports no violation, that nothing scrolls sideways, and that controls are large enough for fingers. */
export async function check(page, name, screen) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
  const found = await page.evaluate(() => axe.run().then(({ violations, passes }) => ({
    passes: passes.length, violations: violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(" ")).join(", ")}`),
  })));
  assert.deepEqual(found.violations, [], `${name}, ${screen}`);
  assert.ok(found.passes > 10, `${name}, ${screen}: axe-core has checked only ${found.passes} rules`);
  const { width } = SCREENS[screen].viewport;
  const size = await page.evaluate(() => ({ document: document.documentElement.scrollWidth, window: innerWidth }));
  assert.deepEqual(size, { document: width, window: width }, `${name}, ${screen}`);
  if (screen === "phone") assert.deepEqual(await small(page), [], `${name}: controls that are too small`);
}

// Returns the controls that are smaller than a finger. The label of a radio button or a checkbox is its control.
const small = (page) => page.evaluate((least) => [...document.querySelectorAll("button, input, select, summary, a[href]")]
  .filter((control) => control.checkVisibility() && !control.matches(".skip"))
  .map((control) => (control.matches("[type=radio], [type=checkbox]") ? control.closest("label") : control))
  .map((control) => [control.outerHTML.slice(0, 100), control.getBoundingClientRect()])
  .filter(([, { width, height }]) => Math.min(width, height) < least - 0.5)
  .map(([html, { width, height }]) => `${width} x ${height}: ${html}`), LEAST);

/** Returns the controls that the Tab key reaches, and the reached controls without a visible focus. */
export async function tabStops(page) {
  await page.evaluate(() => { document.activeElement?.blur(); window.getSelection().removeAllRanges(); });
  const reached = [], unseen = [];
  for (let stops = 0; stops < 200; stops++) {
    await page.keyboard.press("Tab");
    const stop = await page.evaluate(() => {
      const element = document.activeElement;
      if (!element || element === document.body) return null;
      window.stops ??= new Map();
      const again = window.stops.has(element);
      window.stops.set(element, true);
      const shown = element.matches("[type=radio]") ? element.nextElementSibling : element, { outlineStyle, outlineWidth } = getComputedStyle(shown);
      return { again, name: element.id || element.textContent.trim().slice(0, 30), seen: outlineStyle !== "none" && parseFloat(outlineWidth) >= 1 };
    });
    if (!stop || stop.again) break;
    reached.push(stop.name);
    if (!stop.seen) unseen.push(stop.name);
  }
  return { reached, unseen };
}
