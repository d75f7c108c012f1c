// The fabric: nodes, links, which of them are down, and what goes over them.

/** A fabric as the server describes it, in arrays that are indexed by the ids of nodes and links. */
export class Fabric {
  constructor({ name, engine, socket, nodes, links }) {
    Object.assign(this, { name, engine, socket, nodes, links });
    this.ends = new Uint32Array(2 * links.length);
    links.forEach(({ a, b }, link) => this.ends.set([a[0], b[0]], 2 * link));
    this.down = new Uint8Array(links.length);
    this.downList = [];
    this.downSince = new Float64Array(links.length); // in seconds of the fabric's clock
    this.missing = new Uint8Array(nodes.length);
    this.missingList = []; // [node, since]
    this.addresses = new Map(); // by node: [port, LID, IP addresses] of each end port
    this.labels = labelsOf(nodes);
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

  /** Returns how a node is called for people: its description with its name, if they differ. */
  label(node) {
    return this.labels[node];
  }

  /** Takes over which links are down, and since when; returns whether that is news. */
  setDown(list, since = []) {
    const same = list.length === this.downList.length && list.every((link, index) => this.down[link] && this.downSince[link] === (since[index] ?? 0));
    if (same) return false;
    for (const link of this.downList) this.down[link] = 0;
    list.forEach((link, index) => {
      this.down[link] = 1;
      this.downSince[link] = since[index] ?? 0;
    });
    this.downList = list;
    return true;
  }

  /** Takes over which nodes are not reached, as [node, since]; returns whether that is news. */
  setMissing(list) {
    const before = this.missingList;
    if (list.length === before.length && list.every(([node, since], index) => node === before[index][0] && since === before[index][1])) return false;
    for (const [node] of before) this.missing[node] = 0;
    for (const [node] of list) this.missing[node] = 1;
    this.missingList = list;
    return true;
  }

  /** Takes over the LIDs and IP addresses of end ports, as [node, port, LID, addresses]. */
  setAddresses(list) {
    this.addresses.clear();
    for (const [node, ...port] of list) this.addresses.set(node, [...this.addresses.get(node) ?? [], port]);
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
   * Returns up to `most` nodes that a text means, with a `hint` of why where their name does not tell: a name, description,
   * LID or IP address that is the text comes first, then names and descriptions that begin with it, then whatever
   * contains it, GUIDs included.
   */
  find(text, most = 20, kinds = null) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    const lid = /^(0x[0-9a-f]+|\d+)$/.test(wanted) ? Number(wanted) : null, found = [[], [], []];
    for (const node of this.nodes) {
      if (kinds && !kinds.includes(node.kind)) continue;
      const { rank, hint } = this.match(node, wanted, lid);
      // What contains it may be too many; what is the text may be behind them.
      if (rank === null || (rank > 0 && found[rank].length >= most)) continue;
      found[rank].push({ ...node, hint });
    }
    return found.flat().slice(0, most);
  }

  // How well a node fits a text: 0 is best, null not at all.
  match(node, wanted, lid) {
    let best = { rank: null, hint: null };
    const take = (rank, hint) => { if (best.rank === null || rank < best.rank) best = { rank, hint }; };
    const text = (own, hint) => {
      const at = own.toLowerCase().indexOf(wanted);
      if (at >= 0) take(own.length === wanted.length ? 0 : at === 0 ? 1 : 2, hint);
    };
    text(node.name, node.description && node.description !== node.name ? node.description : null);
    if (node.description) text(node.description, node.description);
    if (node.guid.toLowerCase().includes(wanted)) take(2, `GUID ${node.guid}`);
    for (const [, own, addresses] of this.addresses.get(node.id) ?? []) {
      if (lid !== null && own === lid && own) take(0, `LID ${own}`);
      for (const address of addresses) text(address, address);
    }
    return best;
  }
}

// Descriptions of nodes with their names, or names alone.
function labelsOf(nodes) {
  return nodes.map(({ name, description }) => (description && description !== name ? `${description} (${name})` : name));
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
