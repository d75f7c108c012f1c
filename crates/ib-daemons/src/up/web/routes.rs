//! The HTTP paths and methods of the server.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::sse::Sse;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::timeout;

use super::File;
use super::feed::{Feed, MOST_LISTENERS};
use super::guard::{self, Token};
use super::request::{ApiCall, Json, Link, PathQuery, Refusal, RequestQueue, Resolve, Start};

/// Maximum size in bytes of the body of a request.
pub(super) const LONGEST_BODY: usize = 4096;
/// The body of a request must be complete within this time.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Media type of the responses of the API.
const JSON: &str = "application/json";

/// The data that all HTTP handlers share.
#[derive(Clone)]
pub(super) struct Context {
    token: Token,
    files: &'static [File],
    queue: RequestQueue,
    feed: Arc<Feed>,
    states: watch::Receiver<Arc<str>>,
}

/// The query string of a request about one node.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Node {
    id: u32,
}

/// Result of a call of the API.
type ApiResult = Result<Json, Refusal>;

impl Context {
    pub(super) fn new(
        token: Token,
        files: &'static [File],
        queue: RequestQueue,
        feed: Arc<Feed>,
        states: &watch::Sender<Arc<str>>,
    ) -> Self {
        Self { token, files, queue, feed, states: states.subscribe() }
    }

    /// Returns the router for all paths of the server.
    pub(super) fn router(self) -> Router {
        let token = self.token.clone();
        Router::new()
            .route("/{token}", get(redirect_to_page))
            .route("/{token}/", get(page))
            .route("/{token}/{file}", get(file))
            .route("/{token}/api/events", get(events))
            .route(
                "/{token}/api/fabric",
                get(async |at: Shared| respond(at.0.queue.call(ApiCall::Fabric).await)),
            )
            .route(
                "/{token}/api/addresses",
                get(async |at: Shared| respond(at.0.queue.call(ApiCall::Addresses).await)),
            )
            .route(
                "/{token}/api/load",
                get(async |at: Shared| respond(at.0.queue.call(ApiCall::Load).await)),
            )
            .route(
                "/{token}/api/rtrs",
                get(async |at: Shared| respond(at.0.queue.call(ApiCall::Device).await)),
            )
            .route("/{token}/api/node", get(node))
            .route("/{token}/api/acm", get(names))
            .route("/{token}/api/path", get(path))
            .route("/{token}/api/link", post(link))
            .route("/{token}/api/resolve", post(resolve))
            .route("/{token}/api/exercise", get(exercise).post(start))
            .method_not_allowed_fallback(wrong_method)
            .fallback(async || unknown_path())
            .layer(from_fn_with_state(token, guard::check))
            .with_state(self)
    }
}

type Shared = State<Context>;

/// Redirects to the path with a final slash, since the page's links are relative to it.
async fn redirect_to_page(State(context): Shared) -> Redirect {
    Redirect::permanent(&format!("/{}/", context.token.as_str()))
}

async fn page(State(context): Shared) -> Response {
    embedded(context.files, "")
}

async fn file(State(context): Shared, Path((_, name)): Path<(String, String)>) -> Response {
    embedded(context.files, &name)
}

/// Returns an embedded file of the page.
fn embedded(files: &'static [File], name: &str) -> Response {
    match files.iter().find(|file| file.name == name) {
        Some(file) => ([(CONTENT_TYPE, file.kind)], Body::from(file.content)).into_response(),
        None => unknown_path(),
    }
}

/// Returns the response for an unknown path.
fn unknown_path() -> Response {
    respond(Err(Refusal::not_found(
        "no such path; the document about `ibfabric up` lists the paths of the API",
    )))
}

async fn events(State(context): Shared) -> Response {
    match context.feed.listen(context.states) {
        Some(events) => Sse::new(events).into_response(),
        None => {
            let error = format!("{MOST_LISTENERS} pages are connected already: close one of them");
            respond(Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error)))
        }
    }
}

async fn node(State(context): Shared, query: Result<Query<Node>, QueryRejection>) -> Response {
    respond_to_query(&context, query.map(|Query(Node { id })| ApiCall::Node(id))).await
}

async fn names(State(context): Shared, query: Result<Query<Node>, QueryRejection>) -> Response {
    respond_to_query(&context, query.map(|Query(Node { id })| ApiCall::Names(id))).await
}

async fn path(State(context): Shared, query: Result<Query<PathQuery>, QueryRejection>) -> Response {
    respond_to_query(&context, query.map(|Query(path)| ApiCall::Path(path))).await
}

async fn exercise(State(context): Shared) -> Response {
    respond(context.queue.call(ApiCall::Exercise).await)
}

async fn link(State(context): Shared, request: Request) -> Response {
    respond(call_with_body(&context, request, |link: Link| ApiCall::Link(link)).await)
}

async fn resolve(State(context): Shared, request: Request) -> Response {
    respond(call_with_body(&context, request, |resolve: Resolve| ApiCall::Resolve(resolve)).await)
}

async fn start(State(context): Shared, request: Request) -> Response {
    respond(call_with_body(&context, request, |start: Start| ApiCall::Start(start)).await)
}

async fn wrong_method() -> Response {
    respond(Err(Refusal::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "the path does not support this method",
    )))
}

async fn respond_to_query(context: &Context, call: Result<ApiCall, QueryRejection>) -> Response {
    respond(match call {
        Ok(call) => context.queue.call(call).await,
        Err(error) => {
            let text = error.body_text();
            // The error text of axum ends with the cause, such as a missing field. The text before it is removed.
            let why = text.rsplit_once("query string: ").map_or(&*text, |(_, why)| why);
            Err(Refusal::bad(format!("invalid query string: {why}")))
        }
    })
}

/// Parses the JSON body of a request and makes the API call.
async fn call_with_body<T: DeserializeOwned>(
    context: &Context,
    request: Request,
    make: impl FnOnce(T) -> ApiCall,
) -> ApiResult {
    let (head, body) = request.into_parts();
    if !is_json(&head.headers) {
        let error = format!("expected Content-Type: {JSON}");
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, error));
    }
    let late = |_| {
        let seconds = BODY_TIMEOUT.as_secs();
        let error = format!("the body of the request is incomplete after {seconds} s");
        Refusal::new(StatusCode::REQUEST_TIMEOUT, error)
    };
    let long = |_| {
        let error =
            format!("the body of the request is too long: expected at most {LONGEST_BODY} bytes");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, error)
    };
    let body = timeout(BODY_TIMEOUT, to_bytes(body, LONGEST_BODY)).await.map_err(late)?;
    let value = serde_json::from_slice(&body.map_err(long)?).map_err(Refusal::bad)?;
    context.queue.call(make(value)).await
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    kind.trim().eq_ignore_ascii_case(JSON)
}

fn respond(value: ApiResult) -> Response {
    let (status, json) = match value {
        Ok(json) => (StatusCode::OK, json),
        Err(Refusal { status, error }) => {
            let json = serde_json::json!({ "error": error }).to_string();
            (status, json.into())
        }
    };
    (status, [(CONTENT_TYPE, JSON)], json).into_response()
}
