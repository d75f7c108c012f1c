//! Paths and methods.

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
use super::ask::{Asked, Desk, Json, Link, Refusal, Resolve, Start, Way};
use super::feed::{Feed, MOST_LISTENERS};
use super::guard::{self, Token};

/// The longest body of a request in bytes, and how long it may take to come.
pub(super) const LONGEST_BODY: usize = 4096;
const BODY_PATIENCE: Duration = Duration::from_secs(10);

const JSON: &str = "application/json";

/// What answers are made of.
#[derive(Clone)]
pub(super) struct Place {
    token: Token,
    files: &'static [File],
    desk: Desk,
    feed: Arc<Feed>,
    states: watch::Receiver<Arc<str>>,
}

/// A node.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Node {
    id: u32,
}

type Said = Result<Json, Refusal>;

impl Place {
    pub(super) fn new(
        token: Token,
        files: &'static [File],
        desk: Desk,
        feed: Arc<Feed>,
        states: &watch::Sender<Arc<str>>,
    ) -> Self {
        Self { token, files, desk, feed, states: states.subscribe() }
    }

    /// Returns the function that answers requests.
    pub(super) fn router(self) -> Router {
        let token = self.token.clone();
        Router::new()
            .route("/{token}", get(whole))
            .route("/{token}/", get(page))
            .route("/{token}/{file}", get(file))
            .route("/{token}/api/events", get(events))
            .route(
                "/{token}/api/fabric",
                get(async |at: At| told(at.0.desk.ask(Asked::Fabric).await)),
            )
            .route(
                "/{token}/api/addresses",
                get(async |at: At| told(at.0.desk.ask(Asked::Addresses).await)),
            )
            .route("/{token}/api/load", get(async |at: At| told(at.0.desk.ask(Asked::Load).await)))
            .route(
                "/{token}/api/rtrs",
                get(async |at: At| told(at.0.desk.ask(Asked::Device).await)),
            )
            .route("/{token}/api/node", get(node))
            .route("/{token}/api/acm", get(names))
            .route("/{token}/api/path", get(way))
            .route("/{token}/api/link", post(link))
            .route("/{token}/api/resolve", post(resolve))
            .route("/{token}/api/exercise", get(exercise).post(start))
            .method_not_allowed_fallback(wrong_method)
            .fallback(async || nothing())
            .layer(from_fn_with_state(token, guard::enter))
            .with_state(self)
    }
}

type At = State<Place>;

/// Names that of the page is relative to, so its path has to end like a directory.
async fn whole(State(place): At) -> Redirect {
    Redirect::permanent(&format!("/{}/", place.token.as_str()))
}

async fn page(State(place): At) -> Response {
    embedded(place.files, "")
}

async fn file(State(place): At, Path((_, name)): Path<(String, String)>) -> Response {
    embedded(place.files, &name)
}

/// Returns a file of the page.
fn embedded(files: &'static [File], name: &str) -> Response {
    match files.iter().find(|file| file.name == name) {
        Some(file) => ([(CONTENT_TYPE, file.kind)], Body::from(file.content)).into_response(),
        None => nothing(),
    }
}

/// Answers who asks for what there is not.
fn nothing() -> Response {
    told(Err(Refusal::not_found(
        "there is no such path; the document about `ibfabric up` has those that there are",
    )))
}

async fn events(State(place): At) -> Response {
    match place.feed.listen(place.states) {
        Some(events) => Sse::new(events).into_response(),
        None => {
            let error = format!("{MOST_LISTENERS} pages listen already: close one of them");
            told(Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error)))
        }
    }
}

async fn node(State(place): At, query: Result<Query<Node>, QueryRejection>) -> Response {
    asked(&place, query.map(|Query(Node { id })| Asked::Node(id))).await
}

async fn names(State(place): At, query: Result<Query<Node>, QueryRejection>) -> Response {
    asked(&place, query.map(|Query(Node { id })| Asked::Names(id))).await
}

async fn way(State(place): At, query: Result<Query<Way>, QueryRejection>) -> Response {
    asked(&place, query.map(|Query(way)| Asked::Path(way))).await
}

async fn exercise(State(place): At) -> Response {
    told(place.desk.ask(Asked::Exercise).await)
}

async fn link(State(place): At, request: Request) -> Response {
    told(posted(&place, request, |link: Link| Asked::Link(link)).await)
}

async fn resolve(State(place): At, request: Request) -> Response {
    told(posted(&place, request, |resolve: Resolve| Asked::Resolve(resolve)).await)
}

async fn start(State(place): At, request: Request) -> Response {
    told(posted(&place, request, |start: Start| Asked::Start(start)).await)
}

async fn wrong_method() -> Response {
    told(Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "another method is expected here")))
}

async fn asked(place: &Place, asked: Result<Asked, QueryRejection>) -> Response {
    told(match asked {
        Ok(asked) => place.desk.ask(asked).await,
        Err(error) => {
            let text = error.body_text();
            // What is behind the words of the library tells what is missing, or too much.
            let why = text.rsplit_once("query string: ").map_or(&*text, |(_, why)| why);
            Err(Refusal::bad(format!("the query behind the path: {why}")))
        }
    })
}

/// Asks what the body of a request says.
async fn posted<T: DeserializeOwned>(
    place: &Place,
    request: Request,
    make: impl FnOnce(T) -> Asked,
) -> Said {
    let (head, body) = request.into_parts();
    if !is_json(&head.headers) {
        let error = format!("expected Content-Type: {JSON}");
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, error));
    }
    let late = |_| Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body does not come");
    let long = |_| {
        let error = format!("expected a body of {LONGEST_BODY} bytes at most");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, error)
    };
    let body = timeout(BODY_PATIENCE, to_bytes(body, LONGEST_BODY)).await.map_err(late)?;
    let said = serde_json::from_slice(&body.map_err(long)?).map_err(Refusal::bad)?;
    place.desk.ask(make(said)).await
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    kind.trim().eq_ignore_ascii_case(JSON)
}

fn told(said: Said) -> Response {
    let (status, json) = match said {
        Ok(json) => (StatusCode::OK, json),
        Err(Refusal { status, error }) => {
            let json = serde_json::json!({ "error": error }).to_string();
            (status, json.into())
        }
    };
    (status, [(CONTENT_TYPE, JSON)], json).into_response()
}
