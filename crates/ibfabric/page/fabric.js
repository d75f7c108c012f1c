// The fabric: nodes, links, which of them are down, and what goes over them.

/** A fabric as the server describes it, in arrays that are indexed by the ids of nodes and links. */
export class Fabric {
  constructor({ name, engine, socket, nodes, links }) {
    Object.assign(this, { name, engine, socket, nodes, links });
    this.ends = new Uint32Array(2 * links.length);
    links.forEach(({ a, b }, link) => this.ends.set([a[0], b[0]], 2 * link));
    this.down = new Uint8Array(links.length);
    this.downList = [];
    // Two numbers for each link: what goes from a to b, and from b to a.
    this.load = new Float64Array(2 * links.length);
    this.loadMost = 0;
    this.traffic = new Float64Array(2 * links.length);
    this.lanes = lanes(this.ends);
    [this.first, this.linksOf] = incidence(this.ends, nodes.length);
    this.names = new Map(nodes.map((node) => [node.name, node.id]));
    this.hosts = nodes.filter((node) => node.kind === "host").length;
  }

  /** Returns the links of a node, by id. */
  at(node) {
    return this.linksOf.subarray(this.first[node], this.first[node + 1]);
  }

  /** Returns the node at the other end of a link. */
  across(link, node) {
    return this.ends[2 * link] === node ? this.ends[2 * link + 1] : this.ends[2 * link];
  }

  /** Returns the id of the link at a port of a node, or null. */
  linkAt(node, port) {
    for (const link of this.at(node)) {
      const { a, b } = this.links[link];
      if ((a[0] === node && a[1] === port) || (b[0] === node && b[1] === port)) return link;
    }
    return null;
  }

  /** Returns 0 if a link is left from its end a, 1 if from b. A link from a node to itself tells by the port. */
  side(link, node, port) {
    const { a } = this.links[link];
    return a[0] === node && (port === undefined || a[1] === port) ? 0 : 1;
  }

  /** Says what a link joins. */
  title(link) {
    const { a, b } = this.links[link];
    return `${this.nodes[a[0]].name} port ${a[1]} – ${this.nodes[b[0]].name} port ${b[1]}`;
  }

  /** Takes over which links are down; returns whether that is news. */
  setDown(list) {
    const same = list.length === this.downList.length && list.every((link) => this.down[link]);
    if (same) return false;
    for (const link of this.downList) this.down[link] = 0;
    for (const link of list) this.down[link] = 1;
    this.downList = list;
    return true;
  }

  /** Takes over what goes over the links now; returns whether that is news. */
  setTraffic(list) {
    const before = this.busy ?? 0;
    this.traffic.fill(0);
    for (const [link, there, back] of list) this.traffic.set([there, back], 2 * link);
    this.busy = list.length;
    return before > 0 || list.length > 0;
  }

  /** Takes over how many pairs of hosts go over each link. */
  setLoad({ load, max }) {
    load.forEach((both, link) => this.load.set(both, 2 * link));
    this.loadMost = max;
  }

  /**
   * Returns up to `most` nodes whose name or GUID contains a text: names that are the text come first, then those that
   * begin with it.
   */
  find(text, most = 20, kinds = null) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    const found = [[], [], []];
    for (const node of this.nodes) {
      if (kinds && !kinds.includes(node.kind)) continue;
      const name = node.name.toLowerCase(), at = name.indexOf(wanted);
      if (name === wanted) found[0].push(node);
      // Of these there may be too many; the one whose name is the text may be behind them.
      else if (found[1].length >= most) continue;
      else if (at === 0) found[1].push(node);
      else if (at > 0 || node.guid.toLowerCase().includes(wanted)) found[2].push(node);
    }
    return found.flat().slice(0, most);
  }
}

// The links of each node, one node's after the other's.
function incidence(ends, nodes) {
  const first = new Uint32Array(nodes + 1);
  for (const node of ends) first[node + 1]++;
  for (let node = 0; node < nodes; node++) first[node + 1] += first[node];
  const next = first.slice(), links = new Uint32Array(ends.length);
  for (let end = 0; end < ends.length; end++) links[next[ends[end]]++] = end >> 1;
  return [first, links];
}

// How far a link is drawn beside the line between its nodes, in half steps: cables between the same two lie side by side.
function lanes(ends) {
  const cables = new Map();
  for (let link = 0; 2 * link < ends.length; link++) {
    const [a, b] = [ends[2 * link], ends[2 * link + 1]];
    const pair = Math.min(a, b) * 2 ** 26 + Math.max(a, b);
    if (cables.has(pair)) cables.get(pair).push(link);
    else cables.set(pair, [link]);
  }
  const lanes = new Int8Array(ends.length / 2);
  for (const links of cables.values()) {
    if (links.length < 2) continue;
    links.forEach((link, index) => {
      const side = ends[2 * link] < ends[2 * link + 1] ? 1 : -1;
      lanes[link] = Math.max(-100, Math.min(100, side * (2 * index - links.length + 1)));
    });
  }
  return lanes;
}
