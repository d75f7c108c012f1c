// Questions to the server. Addresses are relative, so that the page needs to know nothing of its own.

// How long answers are waited for, in ms. The server itself gives up after 60 s, and says so.
const PATIENCE = 20_000, LONG = 65_000, OPENING = 10_000;
const LONG_ONES = ["fabric", "addresses", "load", "resolve"]; // what may take the server so long
const CROWD = "If many windows show this page, close some: a browser has six connections to a server at most.";
const FIRST_PAUSE = 1000, MOST_PAUSE = 30_000; // ms between two tries to listen
const AGAIN = 1000, TRIES = 10; // ms until what has failed is asked again, and how often in a row

/**
 * An answer of the server that is an error, or none at all. `message` is a line for the reader, `status` that of the
 * answer, or null if there was none.
 */
export class ApiError extends Error {
  constructor(message, status = null) {
    super(message);
    this.status = status;
  }
}

/** Asks for `api/WHAT` with parameters and returns what the answer's JSON says, or throws an `ApiError`. */
export const get = (what, parameters = {}, patience = LONG_ONES.includes(what) ? LONG : PATIENCE) =>
  ask(`api/${what}?${new URLSearchParams(parameters)}`.replace(/\?$/, ""), {}, patience);

/** Sends JSON to `api/WHAT` and returns what the answer's JSON says, or throws an `ApiError`. */
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
    throw signal.aborted ? late() : new ApiError("The server does not answer.");
  }
  const answer = await response.json().catch(() => null);
  if (answer === null && signal.aborted) throw late();
  if (!response.ok) throw new ApiError(answer?.error ?? `${address}: the server answers with status ${response.status}.`, response.status);
  if (answer === null) throw new ApiError(`${address}: the answer is not JSON.`, response.status);
  return answer;
}

/** Has what has failed done again after a second, a limited number of times in a row. */
export class Retry {
  #failures = 0;
  #timer = null;

  /** Forgets former failures: what follows is another question, or one that was answered. */
  reset() {
    clearTimeout(this.#timer);
    this.#failures = 0;
  }

  /** Says that `act` has failed and has it called again, unless that was done often enough. */
  later(act) {
    clearTimeout(this.#timer);
    if (this.#failures++ < TRIES) this.#timer = setTimeout(act, AGAIN);
  }
}

/**
 * Listens to the fabric's state while the page is visible: a connection that nobody looks at would be one less for other
 * windows.
 *
 * Calls `changed` with each event and whether it is the first one of its connection, and `told` with what the connection
 * is ("connecting", "live", "lost" or "ended") and a line for the reader, if there is something to say. A connection that
 * was lost is opened again after pauses that grow, until the server says that it does not know this address any more.
 */
export function listen(changed, told) {
  let source = null, timer = null, failures = 0, ended = false;
  const open = () => {
    const own = source = new EventSource("api/events");
    let first = true;
    timer = setTimeout(() => lost(own, CROWD), OPENING);
    own.addEventListener("open", () => {
      clearTimeout(timer);
      failures = 0;
      told("live");
    });
    own.addEventListener("state", (event) => {
      changed(JSON.parse(event.data), first);
      first = false;
    });
    own.addEventListener("error", () => lost(own, own.readyState === EventSource.CLOSED ? "Too many pages may be open: close some." : ""));
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
    const status = await get("exercise", {}, OPENING).then(() => 200, (error) => error.status);
    if (own !== source) return; // the page has been hidden meanwhile
    if (status === 404) {
      ended = true;
      close();
      told("ended", "This fabric has ended. The next one has another address, which ibfabric up prints behind “page:”.");
      return;
    }
    const pause = Math.min(MOST_PAUSE, FIRST_PAUSE * 2 ** failures++);
    const words = status === null ? "The connection is lost, and the server does not answer." : ["The connection is lost.", why].filter(Boolean).join(" ");
    told("lost", `${words} The next try is in ${pause / 1000} s.`);
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
