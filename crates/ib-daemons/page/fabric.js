// The fabric: nodes, links, inactive links, and the traffic of links.

/** The fabric in arrays, which are indexed by the numbers of nodes and links. */
export class Fabric {
  constructor({ name, engine, socket, nodes, links }) {
    Object.assign(this, { name, engine, socket, nodes, links });
    this.ends = new Uint32Array(2 * links.length);
    links.forEach(({ a, b }, link) => this.ends.set([a[0], b[0]], 2 * link));
    this.down = new Uint8Array(links.length);
    this.downList = [];
    this.downSince = new Float64Array(links.length); // in seconds of the fabric's time
    this.missing = new Uint8Array(nodes.length);
    this.missingList = []; // [node, since]
    this.addresses = new Map(); // by node: [port, LID, IP addresses] of each end port
    this.labels = labelsOf(nodes);
    // Two numbers per link: traffic from a to b, and from b to a.
    this.load = new Float64Array(2 * links.length);
    this.loadMost = 0;
    this.traffic = new Float64Array(2 * links.length);
    this.lanes = lanes(this.ends);
    [this.first, this.linksOf] = incidence(this.ends, nodes.length);
    this.names = new Map(nodes.map((node) => [node.name, node.id]));
    this.hosts = nodes.filter((node) => node.kind === "host").length;
  }

  /** Returns the links of a node. */
  at(node) {
    return this.linksOf.subarray(this.first[node], this.first[node + 1]);
  }

  /** Returns the node at the other end of a link. */
  across(link, node) {
    return this.ends[2 * link] === node ? this.ends[2 * link + 1] : this.ends[2 * link];
  }

  /** Returns the link at a port of a node, or null. */
  linkAt(node, port) {
    for (const link of this.at(node)) {
      const { a, b } = this.links[link];
      if ((a[0] === node && a[1] === port) || (b[0] === node && b[1] === port)) return link;
    }
    return null;
  }

  /** Returns the end of a link at a node: 0 for end a, 1 for end b. The port decides if both ends are at the node. */
  side(link, node, port) {
    const { a } = this.links[link];
    return a[0] === node && (port === undefined || a[1] === port) ? 0 : 1;
  }

  /** Returns the title of a link: both of its ends. */
  title(link) {
    const { a, b } = this.links[link];
    return `${this.nodes[a[0]].name} port ${a[1]} – ${this.nodes[b[0]].name} port ${b[1]}`;
  }

  /** Returns the label of a node: its description, with its name if it differs. */
  label(node) {
    return this.labels[node];
  }

  /** Updates inactive links with their times; returns true if there was a change. */
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

  /** Updates unreached nodes, as [node, since]; returns true if there was a change. */
  setMissing(list) {
    const before = this.missingList;
    if (list.length === before.length && list.every(([node, since], index) => node === before[index][0] && since === before[index][1])) return false;
    for (const [node] of before) this.missing[node] = 0;
    for (const [node] of list) this.missing[node] = 1;
    this.missingList = list;
    return true;
  }

  /** Updates the LIDs and IP addresses of end ports, as [node, port, LID, addresses]. */
  setAddresses(list) {
    this.addresses.clear();
    for (const [node, ...port] of list) this.addresses.set(node, [...this.addresses.get(node) ?? [], port]);
  }

  /** Updates the traffic of links; returns true if there was a change. */
  setTraffic(list) {
    const before = this.busy ?? 0;
    this.traffic.fill(0);
    for (const [link, there, back] of list) this.traffic.set([there, back], 2 * link);
    this.busy = list.length;
    return before > 0 || list.length > 0;
  }

  /** Updates the number of host pairs that use each link. */
  setLoad({ load, max }) {
    load.forEach((both, link) => this.load.set(both, 2 * link));
    this.loadMost = max;
  }

  /**
   * Searches nodes by name, description, LID, IP address or GUID; returns at most `most` nodes. `hint` names the match if it
   * is not in the node's name. Order: exact matches, then names and descriptions that begin with the text, then substring
   * matches.
   */
  find(text, most = 20, kinds = null) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    const lid = /^(0x[0-9a-f]+|\d+)$/.test(wanted) ? Number(wanted) : null, found = [[], [], []];
    for (const node of this.nodes) {
      if (kinds && !kinds.includes(node.kind)) continue;
      const { rank, hint } = this.match(node, wanted, lid);
      // The number of inexact matches is limited; exact matches may follow them.
      if (rank === null || (rank > 0 && found[rank].length >= most)) continue;
      found[rank].push({ ...node, hint });
    }
    return found.flat().slice(0, most);
  }

  // Returns the rank of a node for a search text: 0 is best, null is no match.
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

// Returns the names of nodes with their descriptions, or names only.
function labelsOf(nodes) {
  return nodes.map(({ name, description }) => (description && description !== name ? `${description} (${name})` : name));
}

// Returns the links of all nodes, as one array grouped by node.
function incidence(ends, nodes) {
  const first = new Uint32Array(nodes + 1);
  for (const node of ends) first[node + 1]++;
  for (let node = 0; node < nodes; node++) first[node + 1] += first[node];
  const next = first.slice(), links = new Uint32Array(ends.length);
  for (let end = 0; end < ends.length; end++) links[next[ends[end]]++] = end >> 1;
  return [first, links];
}

// Returns the offset of a link from the line between its nodes, in half steps: parallel cables are drawn side by side.
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
