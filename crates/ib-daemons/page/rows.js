// Layered layout: switches in rows by rank, hosts beneath their switches.

const LEAF_GAP = 0.9, POD_GAP = 1.6, DROP = 1.4; // unit of all lengths: the distance of two hosts
const SWEEPS = 6;

/**
 * Returns the layout: `x`, `y`; `room`, the distance of each node from its neighbours; `bounds` [left, top, right, bottom];
 * and `aside`, true if hosts are in several rows. Vertical distances have no meaning, so the drawing may stretch them.
 */
export function rowsOf(fabric) {
  const tree = new Tree(fabric);
  tree.order();
  const count = fabric.nodes.length;
  const at = { x: new Float32Array(count), y: new Float32Array(count), room: new Float32Array(count).fill(1) };
  const wide = placeLeaves(tree, at);
  placeRows(tree, at, wide);
  placeHosts(tree, at, wide);
  const aside = tree.rows.some((row) => row.some((leaf) => tree.hosts[leaf].length > tree.columns));
  return { ...at, bounds: boundsOf(at), stretch: 4, aside };
}

/** Returns true if rows are unsuitable for a fabric, because too many cables connect switches of the same rank. */
export function levelled({ nodes, links }) {
  let within = 0, between = 0;
  for (const { a, b } of links) {
    const [above, below] = [nodes[a[0]].rank, nodes[b[0]].rank];
    if (above === 0 || below === 0) continue;
    if (above === below) within++;
    else between++;
  }
  return within > between / 2;
}

/** Returns the first switch of each host; -1 for all other nodes. */
export function homesOf(fabric) {
  return Int32Array.from(fabric.nodes, ({ id, rank }) => {
    if (rank !== 0) return -1;
    for (const link of fabric.at(id)) {
      const other = fabric.across(link, id);
      if (fabric.nodes[other].rank > 0) return other;
    }
    return -1;
  });
}

/** Returns the bounds [left, top, right, bottom] of positions. */
export function boundsOf({ x, y }) {
  const bounds = [Infinity, Infinity, -Infinity, -Infinity];
  for (let node = 0; node < x.length; node++) {
    bounds[0] = Math.min(bounds[0], x[node]);
    bounds[1] = Math.min(bounds[1], y[node]);
    bounds[2] = Math.max(bounds[2], x[node]);
    bounds[3] = Math.max(bounds[3], y[node]);
  }
  return x.length ? bounds : [0, 0, 1, 1];
}

// Returns switches by rank, and the components that remain without the ranks above: pods, and parts of pods.
class Tree {
  constructor(fabric) {
    this.fabric = fabric;
    this.homes = homesOf(fabric);
    this.hosts = fabric.nodes.map(() => []);
    this.rows = [];
    for (const { id, rank } of fabric.nodes) {
      if (this.homes[id] >= 0) this.hosts[this.homes[id]].push(id);
      // Hosts without a switch, and switches that no host can reach, are placed in a row, too.
      else (this.rows[Math.max(rank ?? 0, 1)] ??= []).push(id);
    }
    this.rows = this.rows.filter((row) => row?.length);
    this.row = new Int32Array(fabric.nodes.length).fill(-1);
    this.place = new Float64Array(fabric.nodes.length);
    this.rows.forEach((row, index) => row.forEach((node, place) => {
      this.row[node] = index;
      this.place[node] = place / row.length;
    }));
    this.parts = this.rows.map((_, level) => this.partsUpTo(level));
  }

  // Returns a component number per node: nodes have the same number if rows up to a level connect them.
  partsUpTo(level) {
    const part = Int32Array.from(this.row, (_, node) => node);
    const root = (node) => {
      while (part[node] !== node) node = part[node] = part[part[node]];
      return node;
    };
    const { ends } = this.fabric;
    for (let link = 0; 2 * link < ends.length; link++) {
      const [a, b] = [ends[2 * link], ends[2 * link + 1]];
      if (Math.max(this.row[a], this.row[b]) > level || this.row[a] < 0 || this.row[b] < 0) continue;
      const [one, other] = [root(a), root(b)];
      part[Math.max(one, other)] = Math.min(one, other);
    }
    return part.map((_, node) => root(node));
  }

  // Orders the rows to reduce crossings: sweeps up and down move each switch to the mean of its neighbours. Components are
  // kept together. The best order of all sweeps is used.
  order() {
    this.sortAll();
    let best = this.rows.map((row) => [...row]), least = this.crossings();
    for (let sweep = 0; sweep < SWEEPS && least > 0; sweep++) {
      const up = sweep % 2 === 0;
      for (let step = 1; step < this.rows.length; step++) {
        const row = up ? step : this.rows.length - 1 - step;
        this.sort(row, up ? -1 : 1);
      }
      const crossings = this.crossings();
      if (crossings < least) [best, least] = [this.rows.map((row) => [...row]), crossings];
    }
    this.rows = best;
    best.forEach((_, row) => this.number(row));
  }

  sortAll() {
    for (let row = 0; row < this.rows.length; row++) this.sort(row, row ? -1 : 0);
  }

  sort(row, towards) {
    const wanted = new Map(this.rows[row].map((node) => [node, this.mean(node, row + towards)]));
    // Desired positions of the components of the row's nodes, by level from the top.
    const levels = [];
    for (let level = this.rows.length - 1; level >= row; level--) {
      const sums = new Map();
      for (const node of this.rows[row]) {
        const sum = sums.get(this.parts[level][node]) ?? [0, 0];
        sums.set(this.parts[level][node], [sum[0] + wanted.get(node), sum[1] + 1]);
      }
      if (sums.size > 1 && sums.size < this.rows[row].length) levels.push([this.parts[level], sums]);
    }
    const middle = ([total, nodes]) => total / nodes;
    this.rows[row].sort((one, other) => {
      for (const [part, sums] of levels) {
        if (part[one] === part[other]) continue;
        return middle(sums.get(part[one])) - middle(sums.get(part[other])) || part[one] - part[other];
      }
      return wanted.get(one) - wanted.get(other) || this.place[one] - this.place[other] || one - other;
    });
    this.number(row);
  }

  number(row) {
    this.rows[row].forEach((node, place) => { this.place[node] = (place + 0.5) / this.rows[row].length; });
  }

  mean(node, row) {
    let sum = 0, count = 0;
    for (const link of this.fabric.at(node)) {
      const other = this.fabric.across(link, node);
      if (this.row[other] !== row || other === node) continue;
      sum += this.place[other];
      count++;
    }
    return count ? sum / count : this.place[node];
  }

  // Returns the number of crossings of cables between neighbouring rows.
  crossings() {
    let crossings = 0;
    for (let row = 1; row < this.rows.length; row++) {
      const below = this.rows[row - 1].length;
      const tree = new Uint32Array(below + 1); // Fenwick tree of sums
      let seen = 0;
      for (const node of this.rows[row]) {
        const places = [];
        for (const link of this.fabric.at(node)) {
          const other = this.fabric.across(link, node);
          if (this.row[other] === row - 1) places.push(Math.round(this.place[other] * below - 0.5));
        }
        for (const place of places) {
          let before = 0;
          for (let at = place + 1; at > 0; at -= at & -at) before += tree[at];
          crossings += seen - before;
        }
        for (const place of places) for (let at = place + 1; at <= below; at += at & -at) tree[at]++;
        seen += places.length;
      }
    }
    return crossings;
  }
}

// Places the lowest row, with the width that the hosts beneath it need; returns the total width.
function placeLeaves(tree, at) {
  const [leaves = []] = tree.rows;
  const most = leaves.reduce((most, leaf) => Math.max(most, tree.hosts[leaf].length), 1);
  const part = tree.parts[Math.max(0, tree.rows.length - 2)] ?? [];
  const width = (columns) => leaves.reduce((sum, leaf) => sum + Math.max(1, Math.min(columns, tree.hosts[leaf].length)) + LEAF_GAP, 0);
  tree.columns = most;
  // Hosts are placed in one row, or in several if the fabric would be too wide.
  while (tree.columns > 2 && width(tree.columns) > 60 && Math.ceil(most / tree.columns) < width(tree.columns) * 0.022) {
    tree.columns = tree.columns % 2 ? tree.columns - 1 : tree.columns - 2;
  }
  let x = 0, before = null;
  for (const leaf of leaves) {
    if (before !== null && part[leaf] !== part[before]) x += POD_GAP;
    const own = Math.max(1, Math.min(tree.columns, tree.hosts[leaf].length)) + LEAF_GAP;
    at.x[leaf] = x + own / 2;
    at.room[leaf] = own;
    x += own;
    before = leaf;
  }
  return Math.max(x, 4);
}

// Places the rows above: the switches of a component are spread over the component's part of the lowest row.
function placeRows(tree, at, wide) {
  const gap = Math.max(5, (wide * 0.42) / Math.max(1, tree.rows.length - 1));
  tree.rows.forEach((row, level) => {
    const part = tree.parts[level], spans = new Map();
    for (const node of tree.rows[0]) {
      const [left, right] = spans.get(part[node]) ?? [Infinity, -Infinity], half = at.room[node] / 2;
      spans.set(part[node], [Math.min(left, at.x[node] - half), Math.max(right, at.x[node] + half)]);
    }
    const members = new Map();
    if (level > 0) for (const node of row) {
      if (!members.has(part[node])) members.set(part[node], []);
      members.get(part[node]).push(node);
    }
    for (const [own, nodes] of members) {
      const [left, right] = spans.get(own) ?? [0, wide], room = (right - left) / nodes.length;
      nodes.forEach((node, index) => {
        at.x[node] = left + (index + 0.5) * room;
        at.room[node] = room;
      });
    }
    // Rows are curved, because cables within a straight row would overlap.
    const within = row.some((node) => tree.fabric.at(node).some((link) => {
      const other = tree.fabric.across(link, node);
      return other !== node && tree.row[other] === level;
    }));
    const bulge = within ? (tree.rows.length > 1 ? gap * 0.7 : wide * 0.4) : 0;
    for (const node of row) {
      const off = (2 * at.x[node]) / wide - 1;
      at.y[node] = -level * gap - bulge * (1 - off * off);
    }
  });
}

function placeHosts(tree, at, wide) {
  const rows = tree.rows[0]?.reduce((most, leaf) => Math.max(most, Math.ceil(tree.hosts[leaf].length / tree.columns)), 1) ?? 1;
  const drop = Math.max(DROP, rows > 1 ? 0 : wide * (tree.rows.length > 1 ? 0.06 : 0.02));
  for (const row of tree.rows) {
    for (const leaf of row) {
      const hosts = tree.hosts[leaf], columns = Math.min(tree.columns, hosts.length);
      hosts.forEach((host, index) => {
        const column = index % columns, line = Math.floor(index / columns);
        at.x[host] = at.x[leaf] + column - (columns - 1) / 2;
        at.y[host] = at.y[leaf] + drop + line;
      });
    }
  }
}
