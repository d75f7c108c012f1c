//! Connections whose other end takes nothing are given up after a while.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A connection that fails when what is written has waited for too long.
#[derive(Debug)]
pub(super) struct Patient<S> {
    stream: S,
    patience: Duration,
    end: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl<S> Patient<S> {
    /// Gives the other end of a connection so much time to take something.
    pub(super) fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, end: Box::pin(sleep(patience)), is_waiting: false }
    }

    /// Looks at what came of a write.
    fn written<T>(
        &mut self,
        cx: &mut Context<'_>,
        came: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if came.is_ready() {
            self.is_waiting = false;
            return came;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            self.end.as_mut().reset(Instant::now() + self.patience);
        }
        ready!(self.end.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let came = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(cx, came)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let came = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.written(cx, came)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let came = Pin::new(&mut self.stream).poll_flush(cx);
        self.written(cx, came)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let came = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.written(cx, came)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[test]
    fn who_takes_nothing_is_given_up_and_who_takes_little_is_not() {
        const PATIENCE: Duration = Duration::from_millis(100);
        let runtime = crate::up::web::serve::runtime().expect("a runtime");
        runtime.block_on(async {
            let (near, mut far) = duplex(16);
            let mut near = Patient::new(near, PATIENCE);
            // A byte at a time, in twice the time that one may take.
            let slow = tokio::spawn(async move {
                for _ in 0..20 {
                    sleep(PATIENCE / 10).await;
                    far.read_u8().await.expect("there is more");
                }
                far
            });
            near.write_all(&[0; 36]).await.expect("it is taken in time");
            let far = slow.await.expect("it has ended");
            let since = Instant::now();
            let error = near.write_all(&[0; 1000]).await.expect_err("nobody reads");
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert!(since.elapsed() >= PATIENCE);
            drop(far);
        });
    }
}
