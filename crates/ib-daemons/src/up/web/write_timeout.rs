//! A stream whose writes fail if its peer reads nothing for some time.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A stream whose writes fail with [`io::ErrorKind::TimedOut`] if the peer reads nothing for longer than the timeout.
#[derive(Debug)]
pub(super) struct WriteTimeout<S> {
    stream: S,
    timeout: Duration,
    end: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl<S> WriteTimeout<S> {
    /// Wraps a stream. A write, flush or shutdown fails if it makes no progress within `timeout`.
    pub(super) fn new(stream: S, timeout: Duration) -> Self {
        Self { stream, timeout, end: Box::pin(sleep(timeout)), is_waiting: false }
    }

    /// Starts the timer if a write is pending, and stops it otherwise.
    fn check_timeout<T>(
        &mut self,
        cx: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.is_waiting = false;
            return result;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            self.end.as_mut().reset(Instant::now() + self.timeout);
        }
        ready!(self.end.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.check_timeout(cx, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.check_timeout(cx, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(cx);
        self.check_timeout(cx, result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.check_timeout(cx, result)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[test]
    fn peer_that_reads_nothing_times_out_and_slow_peer_does_not() {
        const TIMEOUT: Duration = Duration::from_millis(100);
        let runtime = crate::up::web::serve::runtime().expect("the system provides an event queue");
        runtime.block_on(async {
            let (near, mut far) = duplex(16);
            let mut near = WriteTimeout::new(near, TIMEOUT);
            // The peer reads one byte at a time. All its reads together take twice the timeout.
            let slow = tokio::spawn(async move {
                for _ in 0..20 {
                    sleep(TIMEOUT / 10).await;
                    far.read_u8().await.expect("more bytes follow");
                }
                far
            });
            near.write_all(&[0; 36]).await.expect("the peer reads within the timeout");
            let far = slow.await.expect("the reader has finished");
            let since = Instant::now();
            let error = near.write_all(&[0; 1000]).await.expect_err("the peer does not read");
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert!(since.elapsed() >= TIMEOUT);
            drop(far);
        });
    }
}
