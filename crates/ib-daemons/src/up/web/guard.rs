//! Access control by token and by `Host` header, and the security headers of all responses.

use std::io;

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// The page consists of the files of this server. It loads nothing from another origin, runs no inline code, sends no form,
/// and cannot be embedded into another page.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self'; connect-src 'self'; worker-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Headers of all responses.
const HEADERS: [(HeaderName, &str); 4] = [
    (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
];

/// The token: 32 random hexadecimal digits, with which every path begins.
#[derive(Clone, Debug)]
pub(super) struct Token(String);

impl Token {
    /// Creates a random token.
    ///
    /// # Errors
    /// Fails if the system provides no random bytes.
    pub(super) fn new() -> io::Result<Self> {
        let bytes = ib_os::random()?;
        Ok(Self(bytes[..16].iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if the path begins with the token. The time of the comparison does not depend on the number of
    /// matching characters.
    fn opens(&self, path: &str) -> bool {
        let found = path.strip_prefix('/').and_then(|rest| rest.split('/').next());
        let found = found.unwrap_or_default().as_bytes();
        let differ = found.iter().zip(self.0.as_bytes()).fold(0, |sum, (one, own)| sum | one ^ own);
        found.len() == self.0.len() && differ == 0
    }
}

/// Middleware that refuses requests: status 403 if the request names another host, 404 if its token is wrong.
pub(super) async fn check(State(token): State<Token>, request: Request, next: Next) -> Response {
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

/// Returns true if the request names this machine as its host. This prevents DNS rebinding: if the name of another site
/// resolves to this machine, requests of its pages still contain that name.
fn is_for_us(request: &Request) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let requested = request.uri().authority().map(axum::http::uri::Authority::as_str);
    host.to_str().is_ok_and(is_own) && requested.is_none_or(is_own)
}

/// Returns true if the host is this machine. The host may include a port.
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
