// Summary of the state of the fabric: number of problems, and since when.

import { number } from "./format.js";

/** Converts the fabric's time to the time of day; `now` is [fabric's seconds, ms since 1970] of the same time. */
export function clock(seconds, [time, date]) {
  if (seconds <= 0) return "the start";
  const at = new Date(date - (time - seconds) * 1000), days = new Date(date).toDateString() === at.toDateString();
  return days ? at.toLocaleTimeString() : at.toLocaleString();
}

/**
 * Returns the summary: `kind` is "good", "busy", "bad" or "unknown", `parts` has one text for each kind of problem. Inactive
 * links alone are "busy", because all nodes are reached over other links.
 */
export function healthOf({ fabric, manager, connected, now, heard }) {
  if (!manager && !heard) return { kind: "unknown", parts: ["state not known yet"] };
  const parts = [], problems = { bad: false, busy: false };
  const add = (kind, text, since) => {
    problems[kind] = true;
    parts.push(since === null ? text : `${text} since ${clock(since, now)}`);
  };
  const earliest = (list) => list.reduce((least, [, since]) => Math.min(least, since), Infinity);
  const alarms = manager?.alarms ?? [], { missingList: missing, downList: down, downSince } = fabric;
  if (manager && !manager.up) add("bad", "subnet not up", null);
  if (alarms.length) {
    // The SM reports times of day.
    const since = new Date(Math.min(...alarms.map(({ since: own }) => own)) * 1000).toLocaleTimeString();
    add("bad", `${number(alarms.length)} ${alarms.length === 1 ? "alarm" : "alarms"} since ${since}`, null);
  }
  if (missing.length) add("bad", `${number(missing.length)} of ${number(fabric.nodes.length)} nodes not reached`, earliest(missing));
  if (down.length) add("busy", `${number(down.length)} of ${number(fabric.links.length)} links down`, down.reduce((least, link) => Math.min(least, downSince[link]), Infinity));
  const kind = problems.bad ? "bad" : problems.busy ? "busy" : "good";
  if (!parts.length) parts.push(manager ? "subnet up, no problems" : "no problems");
  if (connected) return { kind, parts };
  return { kind: "unknown", parts: [`not known since ${new Date(now[1]).toLocaleTimeString()}`, `before: ${parts.join(", ")}`] };
}
