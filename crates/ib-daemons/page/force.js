// Force-directed layout in a worker: switches repel each other, cables attract them.
//
// A host with links to one switch only is not simulated: it is placed on an arc around its switch.

import { Quadtree } from "./quadtree.js";

const COOLING = 0.985, COLD = 0.004, FRICTION = 0.6, EVERY = 40; // EVERY: ms between two reports of positions
const SPAN = (5 / 3) * Math.PI; // maximum angle of the arc of hosts around their switch

let running = 0;

/**
 * Receives `{ homes, ends, x, y, wide }`: the switch of each host or -1, the ends of links, initial positions and their
 * width. Sends `{ x, y, room, settled }` repeatedly until the layout is stable.
 */
onmessage = ({ data }) => {
  running++;
  if (data) settle(new Bodies(data), running);
};

function settle(bodies, run) {
  let heat = 1, reported = 0;
  const work = () => {
    if (run !== running) return; // a newer layout was requested, or the layout was cancelled
    const until = performance.now() + 12;
    do {
      bodies.step(heat);
      heat *= COOLING;
    } while (heat > COLD && performance.now() < until);
    const settled = heat <= COLD;
    if (settled || performance.now() - reported > EVERY) {
      reported = performance.now();
      const { x, y, room } = bodies.places();
      postMessage({ x, y, room, settled }, [x.buffer, y.buffer, room.buffer]);
    }
    if (!settled) setTimeout(work, 0);
  };
  work();
}

class Bodies {
  constructor({ homes, ends, x, y, wide }) {
    this.homes = homes;
    this.hosts = Array.from(homes, () => []);
    const several = new Set(); // hosts with links to several switches
    for (let end = 0; end < ends.length; end++) {
      const node = ends[end], other = ends[end ^ 1];
      if (homes[node] >= 0 && other !== homes[node]) several.add(node);
    }
    this.body = new Int32Array(homes.length).fill(-1);
    this.nodes = [];
    homes.forEach((home, node) => {
      if (home >= 0 && !several.has(node)) this.hosts[home].push(node);
      else this.body[node] = this.nodes.push(node) - 1;
    });
    const count = this.nodes.length;
    this.radius = Float64Array.from(this.nodes, (node) => arc(this.hosts[node].length).radius + 1);
    this.charge = this.radius.map((radius) => 2 + 1.2 * radius * radius);
    const mean = this.radius.reduce((sum, radius) => sum + radius, 0) / Math.max(1, count);
    const scale = (3 * mean * Math.sqrt(count)) / Math.max(wide, 1);
    // Bodies at the same position, or on one line, would never separate.
    const jitter = (index, salt) => ((Math.imul(index + salt, 2654435761) >>> 8) / 2 ** 24 - 0.5) * mean;
    this.x = Float64Array.from(this.nodes, (node, index) => x[node] * scale + jitter(index, 1));
    this.y = Float64Array.from(this.nodes, (node, index) => y[node] * scale * 1.5 + jitter(index, 77));
    this.vx = new Float64Array(count);
    this.vy = new Float64Array(count);
    this.springs(ends);
  }

  springs(ends) {
    const pairs = new Map();
    for (let link = 0; 2 * link < ends.length; link++) {
      const a = this.body[ends[2 * link]], b = this.body[ends[2 * link + 1]];
      if (a >= 0 && b >= 0 && a !== b) pairs.set(Math.min(a, b) * 2 ** 26 + Math.max(a, b), [a, b]);
    }
    this.pairs = Int32Array.from([...pairs.values()].flat());
    const degree = new Float64Array(this.nodes.length);
    for (const body of this.pairs) degree[body]++;
    this.stiffness = Float64Array.from({ length: this.pairs.length / 2 }, (_, pair) =>
      1 / Math.max(1, Math.min(degree[this.pairs[2 * pair]], degree[this.pairs[2 * pair + 1]])));
    this.degree = degree;
  }

  step(heat) {
    const { x, y, vx, vy, radius, pairs, stiffness, degree } = this;
    for (let pair = 0; pair < stiffness.length; pair++) {
      const a = pairs[2 * pair], b = pairs[2 * pair + 1];
      const dx = x[b] + vx[b] - x[a] - vx[a], dy = y[b] + vy[b] - y[a] - vy[a];
      const length = Math.hypot(dx, dy) || 1e-6;
      const pull = ((length - radius[a] - radius[b] - 3) / length) * stiffness[pair] * heat;
      const share = degree[b] / (degree[a] + degree[b]);
      vx[a] += dx * pull * share; vy[a] += dy * pull * share;
      vx[b] -= dx * pull * (1 - share); vy[b] -= dy * pull * (1 - share);
    }
    const tree = new Quadtree(x, y, this.charge);
    for (let body = 0; body < x.length; body++) {
      const [fx, fy] = tree.push(body);
      // A weak force to the centre keeps disconnected parts visible.
      vx[body] = (vx[body] + (fx - x[body] * 0.012) * heat) * FRICTION;
      vy[body] = (vy[body] + (fy - y[body] * 0.012) * heat) * FRICTION;
    }
    for (let body = 0; body < x.length; body++) {
      x[body] += vx[body];
      y[body] += vy[body];
    }
  }

  // Returns the positions of all nodes: simulated bodies, and hosts around their switches on the side without cables.
  places() {
    const x = new Float32Array(this.homes.length), y = new Float32Array(this.homes.length);
    const room = new Float32Array(this.homes.length).fill(1);
    const towards = this.cables();
    this.nodes.forEach((node, body) => {
      x[node] = this.x[body];
      y[node] = this.y[body];
      room[node] = this.radius[body] * 0.9;
      const hosts = this.hosts[node];
      if (!hosts.length) return;
      const { radius, span } = arc(hosts.length);
      const away = Math.atan2(-towards[2 * body + 1], -towards[2 * body]);
      hosts.forEach((host, index) => {
        const angle = away + (hosts.length > 1 ? (index / (hosts.length - 1) - 0.5) * span : 0);
        x[host] = x[node] + radius * Math.cos(angle);
        y[host] = y[node] + radius * Math.sin(angle);
      });
    });
    return { x, y, room };
  }

  cables() {
    const towards = new Float64Array(2 * this.nodes.length);
    for (let pair = 0; pair < this.stiffness.length; pair++) {
      const a = this.pairs[2 * pair], b = this.pairs[2 * pair + 1];
      const dx = this.x[b] - this.x[a], dy = this.y[b] - this.y[a], length = Math.hypot(dx, dy) || 1;
      towards[2 * a] += dx / length; towards[2 * a + 1] += dy / length;
      towards[2 * b] -= dx / length; towards[2 * b + 1] -= dy / length;
    }
    return towards;
  }
}

// Returns the arc of the hosts around their switch, with a distance of one unit between hosts.
function arc(hosts) {
  if (!hosts) return { radius: 0, span: 0 };
  const span = Math.min(SPAN, (hosts - 1) * 0.5);
  return { radius: Math.max(2, span ? (hosts - 1) / span : 0), span };
}
