//! Connections, and how many there may be.

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

use super::patient::Patient;
use super::routes::Place;

/// The most connections at once: who comes on top is sent away.
pub(super) const MOST_CONNECTIONS: usize = 64;

/// How long the head of a request may take to come, the first one or a further one.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);

/// How long nothing of an answer may be taken.
const READ_PATIENCE: Duration = Duration::from_secs(30);

/// How much of a request's head, or of answers that nobody takes, is kept in bytes.
const BUFFER: usize = 64 << 10;

/// How long is waited when the system has no more files.
const PAUSE: Duration = Duration::from_millis(100);

/// Makes what runs the server.
///
/// # Errors
/// Fails when the system does.
pub(super) fn runtime() -> io::Result<Runtime> {
    // What takes its time is not done twice at once anyway.
    Builder::new_current_thread().enable_io().enable_time().max_blocking_threads(2).build()
}

/// Serves until the other end of a channel is dropped.
pub(super) async fn serve(listener: StdListener, place: Place, ended: oneshot::Receiver<()>) {
    let accepted = pin!(accept(listener, place));
    select(accepted, ended).await;
}

async fn accept(listener: StdListener, place: Place) {
    // Without a reactor, or with a listener that blocks, there is nothing to serve with; both were made for it.
    let listener = TcpListener::from_std(listener).expect("it does not block, and a runtime runs");
    let service = TowerToHyperService::new(place.router());
    let permits = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else { continue };
        let service = service.clone();
        tokio::spawn(async move {
            // Who breaks the connection, or the rules of HTTP, is told no more.
            let _ = connection(stream, service).await;
            drop(permit);
        });
    }
}

async fn connection(
    stream: TcpStream,
    service: TowerToHyperService<axum::Router>,
) -> hyper::Result<()> {
    // Without it answers only come later.
    let _ = stream.set_nodelay(true);
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(Patient::new(stream, READ_PATIENCE)), service)
        .await
}
