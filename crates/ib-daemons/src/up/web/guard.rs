//! Who may ask, and what all answers have in their headers.

use std::io;

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// What all answers have.
const HEADERS: [(HeaderName, &str); 4] = [
    (CONTENT_SECURITY_POLICY, "default-src 'self'"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
];

/// What every path begins with: 32 hexadecimal digits that nobody can guess.
#[derive(Clone, Debug)]
pub(super) struct Token(String);

impl Token {
    /// Draws one.
    ///
    /// # Errors
    /// Fails when the system has no randomness.
    pub(super) fn new() -> io::Result<Self> {
        let bytes = ib_os::random()?;
        Ok(Self(bytes[..16].iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether a path begins with it, in a time that does not tell how much of it is right.
    fn opens(&self, path: &str) -> bool {
        let said = path.strip_prefix('/').and_then(|rest| rest.split('/').next());
        let said = said.unwrap_or_default().as_bytes();
        let differ = said.iter().zip(self.0.as_bytes()).fold(0, |sum, (one, own)| sum | one ^ own);
        said.len() == self.0.len() && differ == 0
    }
}

/// Lets those in who have the token and speak to this machine.
pub(super) async fn enter(State(token): State<Token>, request: Request, next: Next) -> Response {
    let mut response = if !is_for_us(&request) {
        StatusCode::FORBIDDEN.into_response()
    } else if token.opens(request.uri().path()) {
        next.run(request).await
    } else {
        StatusCode::NOT_FOUND.into_response()
    };
    let headers: &mut HeaderMap = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Returns whether a request names this machine as its host. A page of another site, whose name leads here all of a sudden,
/// still names that site.
fn is_for_us(request: &Request) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let asked = request.uri().authority().map(axum::http::uri::Authority::as_str);
    host.to_str().is_ok_and(is_own) && asked.is_none_or(is_own)
}

/// Returns whether a host, perhaps with a port, is this machine.
fn is_own(host: &str) -> bool {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|own| {
        let (Some(name), Some(rest)) = (host.get(..own.len()), host.get(own.len()..)) else {
            return false;
        };
        name.eq_ignore_ascii_case(own)
            && (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port))
    })
}
