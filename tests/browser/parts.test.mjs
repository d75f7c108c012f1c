// Tests of computing parts of the page, run in the browser: layouts, forces, colors, selection by the pointer.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { browser, open, up } from "./browser.mjs";

let fabric, chrome, view;
before(async () => {
  [fabric, chrome] = await Promise.all([up(), browser()]);
  view = await open(chrome, fabric.url);
});
after(async () => {
  await chrome?.close();
  await fabric?.stop();
});

/** Runs a function in the page with modules of it, by their names, and a value. */
const within = (names, act, value) => view.page.evaluate(
  `(async () => { const modules = await Promise.all(${JSON.stringify(names)}.map((name) => import(new URL(name, location.href).href)));
    return (${act})(Object.assign({}, ...modules), ${JSON.stringify(value ?? null)}); })()`);

/** A fat tree of three levels: pods of `half` leaves and `half` switches above them; the order of the cables is mixed. */
function tree(half) {
  const nodes = [], links = [];
  const add = (kind, rank) => nodes.push({ id: nodes.length, name: `${kind}-${nodes.length}`, guid: "0x0", kind, rank, ports: 2 * half }) - 1;
  const join = (a, b) => links.push({ a: [a, links.length + 1], b: [b, links.length + 1], width: "4X", speed: "25", gbit: 100 });
  const cores = Array.from({ length: half * half }, () => add("switch", 3));
  const pods = Array.from({ length: 2 * half }, () => ({ leaves: [], above: [] }));
  // Pods take turns, so that neighbours in the file are in different pods.
  for (let index = 0; index < half; index++) for (const pod of pods) { pod.leaves.push(add("switch", 1)); pod.above.push(add("switch", 2)); }
  for (const { leaves, above } of pods) {
    for (const leaf of leaves) {
      for (let host = 0; host < half; host++) join(add("host", 0), leaf);
      for (const own of above) join(leaf, own);
    }
    above.forEach((own, index) => { for (let core = 0; core < half; core++) join(own, cores[index * half + core]); });
  }
  return { name: "tree", engine: "minhop", socket: "up", nodes, links };
}

test("a name that is the text is found first, wherever it is", async () => {
  const names = [...Array.from({ length: 30 }, (_, at) => `node${10 + at}`), "node1", "xnode1"];
  const nodes = names.map((name, id) => ({ id, name, guid: `0x${id}`, kind: "host", rank: 0, ports: 1 }));
  const description = { name: "many", engine: "minhop", socket: "up", nodes, links: [] };
  const found = await within(["fabric.js"], ({ Fabric }, data) => {
    const fabric = new Fabric(data);
    return [fabric.find("node1", 12), fabric.find("NODE1", 2), fabric.find("xnode1")].map((list) => list.map(({ name }) => name));
  }, description);
  assert.equal(found[0].length, 12);
  assert.equal(found[0][0], "node1");
  assert.deepEqual(found[1], ["node1", "node10"]);
  assert.deepEqual(found[2], ["xnode1"]);
});

test("no two nodes have the same label on the drawing", async () => {
  const named = (id, name, kind, description) => ({ id, name, guid: `0x${id}`, kind, rank: 0, ports: 1, description });
  const nodes = [
    named(0, "H-0002c90000100010", "host", ""), named(1, "S-0002c90000200010", "switch", ""),
    named(2, "H-0002c90000100012", "host", "same"), named(3, "H-0002c90000100014", "host", "same"), named(4, "H-0002c90000100016", "host", "mail-server"),
  ];
  const labels = await within(["overlay.js"], ({ shortNames }, list) => shortNames(list), nodes);
  assert.equal(new Set(labels).size, nodes.length, labels.join());
  assert.equal(labels[4], "mail-server");
  const alike = await within(["overlay.js"], ({ shortNames }, list) => shortNames(list), nodes.filter(({ kind }) => kind === "host").map((node) => ({ ...node, description: "" })));
  assert.deepEqual(alike, ["…0", "…2", "…4", "…6"]);
});

test("rows put hosts beneath their switch, the switches of a pod beside each other, and higher ranks above", async () => {
  const description = tree(4);
  const { x, y } = await within(["fabric.js", "rows.js"], ({ Fabric, rowsOf }, data) => {
    const { x, y } = rowsOf(new Fabric(data));
    return { x: [...x], y: [...y] };
  }, description);
  const { nodes, links } = description;
  for (const { a, b } of links) {
    const [low, high] = nodes[a[0]].rank < nodes[b[0]].rank ? [a[0], b[0]] : [b[0], a[0]];
    assert.ok(y[low] > y[high], `${low} is beneath ${high}`);
  }
  const pod = new Map(); // a leaf's pod, by the switches above it
  for (const { a, b } of links) if (nodes[a[0]].rank === 1) pod.set(a[0], Math.min(pod.get(a[0]) ?? Infinity, b[0]));
  const order = [...pod.keys()].sort((one, other) => x[one] - x[other]).map((leaf) => pod.get(leaf));
  assert.equal(order.filter((own, index) => own !== order[index - 1]).length, 8, `pods stay together: ${order}`);
  const places = new Set(nodes.map(({ id }) => `${x[id]} ${y[id]}`));
  assert.equal(places.size, nodes.length, "no two nodes are in one place");
  for (const { a, b } of links) {
    if (nodes[a[0]].rank !== 0) continue;
    const others = [...pod.keys()].filter((leaf) => Math.abs(x[leaf] - x[a[0]]) < Math.abs(x[b[0]] - x[a[0]]));
    assert.deepEqual(others, [], "no other leaf is nearer to a host than its own");
  }
});

test("the force of many bodies is nearly that of each of them", async () => {
  const worst = await within(["quadtree.js"], ({ Quadtree }) => {
    let seed = 1;
    const random = () => (seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff) / 2 ** 31;
    const x = Float64Array.from({ length: 600 }, () => 100 * random()), y = x.map(() => 100 * random()), charge = x.map(() => 1 + random());
    x[1] = x[0]; // two bodies in one place
    y[1] = y[0];
    const quadtree = new Quadtree(x, y, charge);
    let worst = 0, mean = 0;
    const exact = Array.from(x, (_, body) => {
      let fx = 0, fy = 0;
      x.forEach((_, other) => {
        if (other === body) return;
        const dx = x[body] - x[other], dy = y[body] - y[other], square = Math.max(dx * dx + dy * dy, 0.05);
        fx += (dx * charge[other]) / square;
        fy += (dy * charge[other]) / square;
      });
      mean += Math.hypot(fx, fy) / x.length;
      return [fx, fy];
    });
    exact.forEach(([fx, fy], body) => {
      const [gx, gy] = quadtree.push(body);
      worst = Math.max(worst, Math.hypot(gx - fx, gy - fy) / mean);
    });
    return worst;
  });
  assert.ok(worst < 0.05, `off by ${worst} of the mean force`);
  assert.ok(worst > 0, "far bodies are taken together");
});

test("the ramp gets steadily lighter in the dark and darker in the light, by enough to be told apart", async () => {
  for (const [theme, sign] of [["dark", 1], ["light", -1]]) {
    const lights = await within(["colours.js"], ({ coloursOf, LEAST, MOST }, theme) => {
      const { palette } = coloursOf(theme), linear = (byte) => (byte / 255 <= 0.04045 ? byte / 255 / 12.92 : ((byte / 255 + 0.055) / 1.055) ** 2.4);
      const list = [];
      for (let index = LEAST; index <= MOST; index += 12) {
        const [red, green, blue] = palette.subarray(4 * index, 4 * index + 3);
        list.push(0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue));
      }
      return list;
    }, theme);
    lights.slice(1).forEach((light, index) => assert.ok(sign * (light - lights[index]) > 0, `${theme}: step ${index}: ${lights}`));
    const [least, most] = [lights[0], lights.at(-1)].sort((a, b) => a - b);
    assert.ok((most + 0.05) / (least + 0.05) > 4.5, `${theme}: from ${least} to ${most}`);
  }
});

test("links that are down are dashed, and lie above those that are busy, which lie above idle ones", async () => {
  const { order, dashed, ends } = await within(["fabric.js", "styles.js"], ({ Fabric, stylesOf }, data) => {
    const fabric = new Fabric(data);
    fabric.setDown([3]);
    fabric.setTraffic([[5, 1e9, 0], [7, 1e4, 0]]);
    const { order, bytes } = stylesOf(fabric, "traffic");
    return { order: [...order], dashed: [...order].filter((link) => bytes[4 * link + 2]), ends: [bytes[20], bytes[21]] };
  }, tree(2));
  assert.deepEqual(order.slice(-3), [7, 5, 3]);
  assert.equal(new Set(order).size, order.length);
  assert.deepEqual(dashed, [3]);
  assert.ok(ends[0] > 100 && ends[1] === 0, "each direction has its colour");
});

test("what is picked is what is nearest", async () => {
  const wrong = await within(["fabric.js", "rows.js", "camera.js", "picking.js"], ({ Fabric, rowsOf, Camera, Picking, lineOf }, data) => {
    const fabric = new Fabric(data), layout = rowsOf(fabric), camera = new Camera(), picking = new Picking(fabric);
    Object.assign(camera, { width: 900, height: 600 });
    camera.fit(layout);
    const sizes = Object.assign(new Float32Array(fabric.nodes.length).fill(4), { lane: 0 }), wrong = [];
    for (let node = 0; node < fabric.nodes.length; node++) {
      const found = picking.at(camera.x(layout.x[node]), camera.y(layout.y[node]), layout, camera, sizes);
      if (found.node !== node) wrong.push({ node, found });
    }
    for (let link = 0; link < fabric.links.length; link++) {
      const [ax, ay, bx, by] = lineOf(fabric, layout, camera, link, 0), found = picking.at(ax + (bx - ax) * 0.31, ay + (by - ay) * 0.31, layout, camera, sizes);
      // Where links cross, either may be meant; another one has to be as near.
      if (found.node !== undefined || found.link === undefined) { wrong.push({ link, found }); continue; }
      const [cx, cy, dx, dy] = lineOf(fabric, layout, camera, found.link, 0), px = ax + (bx - ax) * 0.31, py = ay + (by - ay) * 0.31;
      if (Math.abs((dx - cx) * (cy - py) - (cx - px) * (dy - cy)) / Math.hypot(dx - cx, dy - cy) > 0.01) wrong.push({ link, found });
    }
    return wrong;
  }, tree(2));
  assert.deepEqual(wrong, []);
});

test("of the lines that a connection begins with, those are news that former ones did not bring", async () => {
  const lines = Array.from({ length: 130 }, (_, index) => [Math.floor(index / 3), index % 2 ? "a sweep" : `line ${index}`]);
  const all = await within(["log-panel.js"], ({ news }, { lines }) => ({
    none: news([], lines.slice(0, 5)), same: news(lines.slice(0, 100), lines.slice(0, 100)),
    some: news(lines.slice(0, 100), lines.slice(30)), few: news(lines.slice(0, 5), lines.slice(0, 8)),
    twice: news([[1, "x"], [1, "x"]], [[1, "x"], [1, "x"], [1, "y"]]), missed: news(lines.slice(0, 20), lines.slice(30)),
  }), { lines });
  assert.deepEqual(all.none, lines.slice(0, 5));
  assert.deepEqual(all.same, []);
  assert.deepEqual(all.some, lines.slice(100));
  assert.deepEqual(all.few, lines.slice(5, 8));
  assert.deepEqual(all.twice, [[1, "y"]]);
  assert.match(all.missed[0][1], /may be missing/);
  assert.deepEqual(all.missed.slice(1), lines.slice(30));
});

test("rows of a table stay while they are shown, with the focus, and do not move beneath a pressed pointer", async () => {
  const seen = await within(["table.js"], async ({ Table }) => {
    const table = new Table({ label: "x", key: ({ id }) => id, choose: () => {}, columns: [{ title: "Id", value: ({ id }) => id }, { title: "Value", value: ({ value }) => value }] });
    const show = (text) => table.show([...text].map((id, index) => ({ id, value: index })));
    const ids = () => [...table.body.rows].map(({ innerText }) => innerText.replace(/\s/g, "")).join(" ");
    document.body.append(table.element);
    show("abca");
    const [a, b] = table.body.rows, seen = {};
    a.querySelector("button").focus();
    show("bca");
    Object.assign(seen, { moved: ids(), same: table.body.rows[0] === b && table.body.rows[2] === a, focus: document.activeElement === a.querySelector("button") });
    a.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }));
    show("ab");
    show("cb");
    seen.pressed = ids();
    a.dispatchEvent(new PointerEvent("pointerup", { bubbles: true }));
    seen.click = ids();
    await new Promise((later) => { setTimeout(later, 20); });
    seen.released = ids();
    table.element.remove();
    return seen;
  });
  assert.deepEqual(seen, { moved: "b0 c1 a2", same: true, focus: true, pressed: "b0 c1 a2", click: "b0 c1 a2", released: "c0 b1" });
});

test("names from fabric files are text, whatever is in them", async () => {
  const shown = await within(["dom.js"], ({ h, terms }) => {
    const name = "<img src=x onerror=alert(1)>", element = h("p", {}, name, terms([["name", name]]));
    return [element.querySelectorAll("img").length, element.firstChild.textContent];
  });
  assert.deepEqual(shown, [0, "<img src=x onerror=alert(1)>"]);
  assert.deepEqual(view.faults, []);
});
