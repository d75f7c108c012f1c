// The user's selection and its data. Parts of the page subscribe to topics.

/**
 * Holds the user's selection and the state of the fabric; notifies subscribers of changes.
 *
 * Topics: "fabric" (loaded), "layout", "colour", "theme", "links" (inactive or active), "missing" (unreached nodes), "traffic",
 * "load", "routes", "manager", "log", "selection", "pair", "path", "connection", "tab".
 */
export class State {
  fabric = null;
  layout = "rank"; // or "force"
  colour = "state"; // or "load" or "traffic"
  node = null; // selected node
  port = null; // selected port of the node
  link = null; // selected link
  pair = [null, null];
  picking = null; // end of the pair that the next click on a host sets: 0, 1 or null
  path = null; // present path of the pair, as the server returned it
  former = null; // path before the last change of the routes
  routes = null; // version of the routes
  manager = null; // state of the SM
  time = 0; // the fabric's time in seconds
  now = [0, Date.now()]; // the fabric's time in seconds, and the time of day in ms, at the last event
  heard = false; // true after the first event
  log = []; // [time, line]
  connected = null; // false while disconnected: no automatic requests
  connection = "connecting"; // or "live", "lost" (no response), "exited" (connection refused), "ended" (unknown address)
  tab = "problems";
  #listeners = new Map();

  /** Calls `act` after every change of any of the topics. */
  on(topics, act) {
    for (const topic of topics.split(" ")) {
      if (!this.#listeners.has(topic)) this.#listeners.set(topic, []);
      this.#listeners.get(topic).push(act);
    }
  }

  /** Notifies subscribers of a topic. */
  tell(...topics) {
    const acts = new Set(topics.flatMap((topic) => this.#listeners.get(topic) ?? []));
    for (const act of acts) act(topics);
  }

  /** Sets fields and notifies subscribers if a value has changed. */
  set(topic, values) {
    const news = Object.entries(values).filter(([key, value]) => this[key] !== value);
    if (!news.length) return;
    Object.assign(this, values);
    this.tell(topic);
  }

  /** Selects a node, optionally with one of its ports and the link at that port. */
  choose(node, port = null) {
    const link = node === null || port === null ? null : this.fabric.linkAt(node, port);
    this.set("selection", { node, port, link });
  }

  /** Selects a link; keeps the selected node if it is an end of the link. */
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
