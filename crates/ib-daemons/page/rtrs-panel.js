// Tab of RTRS: the block device, its paths and the latency of its requests.

import { get, post } from "./api.js";
import { h, jump, mark, terms, unhurried } from "./dom.js";
import { bytes, many, micros, number, size } from "./format.js";
import { barsOfRanges, histogram } from "./histogram.js";

const EVERY = 1000; // ms between two updates

/** Creates the panel. */
export function rtrsPanel(state, { report }) {
  const panel = new RtrsPanel(state, report);
  state.on("tab links", () => panel.fetch());
  setInterval(() => panel.fetch(), EVERY);
  return panel;
}

class RtrsPanel {
  constructor(state, report) {
    Object.assign(this, { state, report });
    this.device = h("div", { id: "device" });
    this.seconds = h("input", { type: "number", id: "seconds", min: "1", max: "600", value: "5" });
    this.run = h("button", { id: "exercise" }, "Run the load generator");
    this.progress = h("p", { id: "progress", "aria-live": "polite" });
    this.form = h("form", { class: "buttons", submit: (event) => { event.preventDefault(); this.exercise(); } },
      this.run, h("label", {}, " for ", this.seconds, " seconds"));
    this.paths = h("div", { id: "rtrs-paths" });
    this.showPaths = unhurried(this.paths, (paths) => this.cards(paths));
    this.element = h("div", {}, this.device, this.form, this.progress, this.paths);
    this.form.hidden = true;
  }

  async fetch() {
    if (this.state.tab !== "rtrs" || this.state.connected === false || document.hidden || this.asking) return;
    this.asking = true;
    try {
      const [session, run] = await Promise.all([get("rtrs"), get("exercise")]);
      this.paint(session, run);
    } catch (error) {
      this.report(error.message, true);
    } finally {
      this.asking = false;
    }
  }

  async exercise() {
    const seconds = Number(this.seconds.value);
    if (!(seconds >= 1 && seconds <= 600)) return this.report("Expected 1 to 600 seconds.");
    try {
      await post("exercise", { seconds });
      this.report(`The load generator runs for ${seconds} s. “Link color: traffic” shows the packets.`);
    } catch (error) {
      this.report(error.message, true);
    }
    return this.fetch();
  }

  paint(session, { running, done, errors }) {
    if (!session.device) {
      this.device.replaceChildren(h("p", { class: "faint" }, "This fabric has no block device, because a block device needs two hosts."));
      this.form.hidden = true;
      return;
    }
    const { device, nbd, paths, programs } = session;
    this.form.hidden = false;
    this.run.disabled = running;
    this.device.replaceChildren(h("h2", {}, device), terms([
      ["size", size(session.size)], ["NBD", h("code", {}, nbd ?? "none")], ["NBD clients", number(programs)],
    ]));
    this.progress.textContent = running || done ? `${running ? "Running: " : ""}${bytes(done)} written and compared${errors ? `, ${many(errors, "error")}` : ", no errors"}` : "";
    this.progress.classList.toggle("problem", errors > 0);
    this.showPaths(paths);
  }

  cards(paths) {
    const focused = this.paths.contains(document.activeElement) && document.activeElement.dataset.path;
    this.paths.replaceChildren(...paths.map((path) => this.path(path)));
    if (focused) this.paths.querySelector(`[data-path="${focused}"]`)?.focus();
  }

  path(path) {
    const { state } = this, name = (node) => state.fabric.nodes[node].name, { latency } = path;
    const show = jump("show the path", () => { state.setPair(path.from, path.to); });
    show.dataset.path = String(path.index);
    return h("section", { class: "card" },
      h("h3", {}, `Path ${path.index} `, mark(String(path.state))),
      h("p", {}, `${name(path.from)} → ${name(path.to)} `, show),
      terms([
        ["in flight", number(path.in_flight)],
        ["read", `${number(path.reads)} requests, ${bytes(path.read_bytes)}`],
        ["written", `${number(path.writes)} requests, ${bytes(path.write_bytes)}`],
        ["failovers", number(path.failovers)], ["reconnects", number(path.reconnects)],
        ["latency", latency?.p50 ? `median ${micros(latency.p50)}, 99 % within ${micros(latency.p99)}, at most ${micros(latency.max)}` : null],
      ]),
      latency ? histogram({
        bars: barsOfRanges(latency.buckets), log: true, write: micros, label: "Latency", unit: "requests",
        marks: [[latency.p50, "p50"], [latency.p99, "p99"], [latency.max, "max"]],
      }) : null);
  }
}
