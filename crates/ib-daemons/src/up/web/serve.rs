//! Accepts connections, and limits their number, their idle times and their buffers.

use std::io;
use std::net::TcpListener as StdListener;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, oneshot};

use super::routes::Context;
use super::write_timeout::WriteTimeout;

/// Maximum number of simultaneous connections. Further connections are closed.
pub(super) const MOST_CONNECTIONS: usize = 64;

/// Time limit for the head of a request. Connections that are idle for this time are closed as well.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// If a client reads nothing of a response for this time, it is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum size in bytes of a connection's receive buffer, which holds the head of a request. The same maximum applies
/// to the buffer of unsent responses.
const BUFFER: usize = 64 << 10;

/// Pause after `accept` has failed because the process has no free file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Creates the asynchronous runtime of the server.
///
/// # Errors
/// Fails if the system does not provide an event queue.
pub(super) fn runtime() -> io::Result<Runtime> {
    // Few responses are computed outside of the server's thread, so two threads suffice for them.
    Builder::new_current_thread().enable_io().enable_time().max_blocking_threads(2).build()
}

/// Serves connections until the sender of `ended` is dropped.
pub(super) async fn serve(listener: StdListener, context: Context, ended: oneshot::Receiver<()>) {
    let accepted = pin!(accept(listener, context));
    select(accepted, ended).await;
}

async fn accept(listener: StdListener, context: Context) {
    let listener =
        TcpListener::from_std(listener).expect("listener is non-blocking, and a runtime is active");
    let service = TowerToHyperService::new(context.router());
    let permits = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else { continue };
        let service = service.clone();
        tokio::spawn(async move {
            // An error of the connection or of HTTP ends only this connection.
            let _ = connection(stream, service).await;
            drop(permit);
        });
    }
}

async fn connection(
    stream: TcpStream,
    service: TowerToHyperService<axum::Router>,
) -> hyper::Result<()> {
    // If TCP_NODELAY cannot be set, responses are only slower.
    let _ = stream.set_nodelay(true);
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(WriteTimeout::new(stream, WRITE_TIMEOUT)), service)
        .await
}
