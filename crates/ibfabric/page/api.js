// Questions to the server. Addresses are relative, so that the page needs to know nothing of its own.

/** An answer of the server that is an error, or none at all; `message` is a line for the reader. */
export class ApiError extends Error {}

/** Asks for `api/WHAT` with parameters and returns what the answer's JSON says, or throws an `ApiError`. */
export const get = (what, parameters = {}) => ask(`api/${what}?${new URLSearchParams(parameters)}`.replace(/\?$/, ""), {});

/** Sends JSON to `api/WHAT` and returns what the answer's JSON says, or throws an `ApiError`. */
export const post = (what, body) => ask(`api/${what}`, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
});

async function ask(address, options) {
  let response;
  try {
    response = await fetch(address, options);
  } catch {
    throw new ApiError("The server does not answer.");
  }
  const answer = await response.json().catch(() => null);
  if (!response.ok) throw new ApiError(answer?.error ?? `${address}: the server answers with status ${response.status}.`);
  if (answer === null) throw new ApiError(`${address}: the answer is not JSON.`);
  return answer;
}

/**
 * Listens to the fabric's state: calls `changed` with each event, and `connected` with whether there is a connection.
 *
 * A connection that was lost is opened again by the browser; one that the server has refused is opened again here.
 */
export function listen(changed, connected) {
  const source = new EventSource("api/events");
  source.addEventListener("open", () => connected(true));
  source.addEventListener("state", (event) => changed(JSON.parse(event.data)));
  source.addEventListener("error", () => {
    connected(false);
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(() => listen(changed, connected), 2000);
  });
}
