// Requests to the server. Addresses are relative, so the page does not need its own address.

// Timeouts of requests in ms. The server itself responds with an error after 60 s.
const PATIENCE = 20_000, LONG = 65_000, OPENING = 10_000;
const SILENCE = 20_000; // ms without an event until the connection is lost; the server sends an event every 5 s
const LONG_ONES = ["fabric", "addresses", "load", "resolve"]; // calls with the long timeout
const CROWD = "Close some windows of this page: a browser opens at most six connections to a server.";
const FIRST_PAUSE = 1000, MOST_PAUSE = 30_000; // ms between two connection attempts
const AGAIN = 1000, TRIES = 10; // ms until a retry, and maximum number of retries

/**
 * An error response of the server, or a missing response. `message` is one line for the user. `status` is the HTTP status,
 * or null if there was no response; `refused` is true if there was no connection.
 */
export class ApiError extends Error {
  constructor(message, status = null, refused = false) {
    super(message);
    Object.assign(this, { status, refused });
  }
}

/** Sends a GET request to `api/WHAT` with parameters; returns the parsed JSON or throws an `ApiError`. */
export const get = (what, parameters = {}, patience = LONG_ONES.includes(what) ? LONG : PATIENCE) =>
  ask(`api/${what}?${new URLSearchParams(parameters)}`.replace(/\?$/, ""), {}, patience);

/** Posts JSON to `api/WHAT`; returns the parsed JSON or throws an `ApiError`. */
export const post = (what, body) => ask(`api/${what}`, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
}, LONG_ONES.includes(what) ? LONG : PATIENCE);

async function ask(address, options, patience) {
  const signal = AbortSignal.timeout(patience);
  const late = () => new ApiError(`The server has not answered for ${patience / 1000} s. ${CROWD}`);
  let response;
  try {
    response = await fetch(address, { ...options, signal });
  } catch {
    throw signal.aborted ? late() : new ApiError("The server does not accept connections.", null, true);
  }
  const answer = await response.json().catch(() => null);
  if (answer === null && signal.aborted) throw late();
  if (!response.ok) throw new ApiError(answer?.error ?? `${address}: the server answers with status ${response.status}.`, response.status);
  if (answer === null) throw new ApiError(`${address}: the answer is not JSON.`, response.status);
  return answer;
}

/** Retries a failed function after a second, a limited number of times. */
export class Retry {
  #failures = 0;
  #timer = null;

  /** Resets the number of retries: after a success, or before another request. */
  reset() {
    clearTimeout(this.#timer);
    this.#failures = 0;
  }

  /** Reports that `act` has failed; calls it again unless the number of retries is exhausted. */
  later(act) {
    clearTimeout(this.#timer);
    if (this.#failures++ < TRIES) this.#timer = setTimeout(act, AGAIN);
  }
}

/**
 * Receives the fabric's state while the page is visible. Hidden pages disconnect, because a browser limits the number of
 * connections to a server.
 *
 * Calls `changed` with each event and with true for the first event of a connection. Calls `told` with the state of the
 * connection ("connecting", "live", "lost", "exited" or "ended") and a line for the user, if any. After a disconnect it reconnects
 * with growing pauses, until the server responds that the address is unknown.
 */
export function listen(changed, told) {
  let source = null, timer = null, failures = 0, ended = false;
  const open = () => {
    const own = source = new EventSource("api/events");
    let first = true;
    timer = setTimeout(() => lost(own, CROWD), OPENING);
    own.addEventListener("open", () => {
      failures = 0;
      told("live");
      listening(own);
    });
    own.addEventListener("state", (event) => {
      listening(own);
      changed(JSON.parse(event.data), first);
      first = false;
    });
    own.addEventListener("error", () => lost(own, own.readyState === EventSource.CLOSED ? "Too many pages may be open: close some of them." : ""));
  };
  const listening = (own) => {
    clearTimeout(timer);
    timer = setTimeout(() => lost(own, ""), SILENCE);
  };
  const close = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const lost = async (own, why) => {
    clearTimeout(timer);
    own.close();
    told("lost");
    const { status, refused } = await get("exercise", {}, OPENING).then(() => ({ status: 200 }), (error) => error);
    if (own !== source) return; // the page was hidden in the meantime
    if (status === 404) {
      ended = true;
      close();
      told("ended", "This fabric was stopped. A new one has another address, which `ibfabric up` prints after “page:”.");
      return;
    }
    const pause = Math.min(MOST_PAUSE, FIRST_PAUSE * 2 ** failures++);
    const words = status === null ? "The connection was lost, and the server does not respond." : ["The connection was lost.", why].filter(Boolean).join(" ");
    told(refused ? "exited" : "lost", `${words} The next try is in ${pause / 1000} s.`);
    timer = setTimeout(open, pause);
  };
  document.addEventListener("visibilitychange", () => {
    if (ended) return;
    close();
    if (document.hidden) return;
    failures = 0;
    told("connecting");
    open();
  });
  if (!document.hidden) open();
}
