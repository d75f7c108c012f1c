// What the reader has chosen and what is known of it. Parts of the page listen to the topics that they show.

/**
 * Holds the choices of the reader and tells whoever listens when they change.
 *
 * Topics: "fabric" (all is there), "layout", "colour", "theme", "links" (down or up), "missing" (nodes that are not reached), "traffic",
 * "load", "routes", "manager", "log", "selection", "pair", "path", "connection", "tab".
 */
export class State {
  fabric = null;
  layout = "rank"; // or "force"
  colour = "state"; // or "load" or "traffic"
  node = null; // chosen
  port = null; // of it
  link = null; // chosen
  pair = [null, null];
  picking = null; // which end of the pair the next click on a host sets: 0, 1 or null
  path = null; // the way of the pair now, as the server tells it
  former = null; // the way that it went before the tables changed
  routes = null; // the number of the tables
  manager = null; // what the subnet manager is at
  time = 0; // of the fabric's clock, in seconds
  now = [0, Date.now()]; // the fabric's clock in seconds, and the time of day in ms, when the server was heard last
  heard = false; // whether it was
  log = []; // [time, line]
  connected = null; // false while there is no connection: nothing is asked for then by itself
  tab = "problems";
  #listeners = new Map();

  /** Calls `act` after every change of any of the topics. */
  on(topics, act) {
    for (const topic of topics.split(" ")) {
      if (!this.#listeners.has(topic)) this.#listeners.set(topic, []);
      this.#listeners.get(topic).push(act);
    }
  }

  /** Says that something has changed. */
  tell(...topics) {
    const acts = new Set(topics.flatMap((topic) => this.#listeners.get(topic) ?? []));
    for (const act of acts) act(topics);
  }

  /** Sets what is named, if it differs, and says so. */
  set(topic, values) {
    const news = Object.entries(values).filter(([key, value]) => this[key] !== value);
    if (!news.length) return;
    Object.assign(this, values);
    this.tell(topic);
  }

  /** Chooses a node, with or without one of its ports, and the link at that port. */
  choose(node, port = null) {
    const link = node === null || port === null ? null : this.fabric.linkAt(node, port);
    this.set("selection", { node, port, link });
  }

  /** Chooses a link, and leaves the chosen node if the link is one of its. */
  chooseLink(link) {
    const ends = link === null ? [] : [this.fabric.links[link].a, this.fabric.links[link].b];
    const own = ends.find(([node]) => node === this.node);
    this.set("selection", { link, node: own ? this.node : null, port: own ? own[1] : null });
  }

  /** Sets one end of the pair whose path is shown, or both. */
  setPair(from, to) {
    if (from === this.pair[0] && to === this.pair[1]) return;
    this.pair = [from, to];
    this.path = this.former = null;
    this.tell("pair", "path");
  }
}
