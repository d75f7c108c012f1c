//! A control socket whose requests an event loop answers.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use super::{LineServer, Received};
use crate::queue::RequestSender;
use ib_os::alarm::Alarm;
use ib_os::poll;

/// A reply, with the key of its connection. If the request was dropped, the reply is `None`.
type PendingReply = (usize, Option<String>);

/// Path of a socket in the file system. The socket is removed when the value is dropped.
#[derive(Debug)]
pub struct ServedSocket(PathBuf);

impl Drop for ServedSocket {
    fn drop(&mut self) {
        // Removing fails if another process has removed the socket.
        std::fs::remove_file(&self.0).ok();
    }
}

/// Requests and replies that are exchanged between the socket's thread and the event loop.
struct Pending {
    requests: RequestSender,
    alarm: Alarm,
    sender: Sender<PendingReply>,
    answers: Receiver<PendingReply>,
    /// Keys of connections whose request has no reply yet.
    waiting: BTreeSet<usize>,
}

impl LineServer {
    /// Listens on a socket in the file system in a new thread until the process exits. The thread queues all requests
    /// for an event loop. Each connection has at most one outstanding request. A client that does not read blocks
    /// neither other clients nor the loop.
    ///
    /// # Errors
    /// Fails if [`LineServer::bind_at`] fails, or if no thread can be created.
    pub fn serve_at(path: PathBuf, requests: RequestSender) -> io::Result<ServedSocket> {
        let mut server = Self::bind_at(&path)?;
        let serving = ServedSocket(path);
        let (sender, answers) = channel();
        let mut pending =
            Pending { requests, alarm: Alarm::new()?, sender, answers, waiting: BTreeSet::new() };
        let serve = move || {
            loop {
                server.round_pending(&mut pending);
            }
        };
        std::thread::Builder::new().name("console".to_owned()).spawn(serve)?;
        Ok(serving)
    }

    fn round_pending(&mut self, pending: &mut Pending) {
        let mut files = vec![
            poll::watched(self.listener.as_fd(), false),
            poll::watched(pending.alarm.as_fd(), false),
        ];
        let mut keys = Vec::new();
        for (&key, connection) in &self.connections {
            keys.push(key);
            let mut file = poll::watched(connection.stream.as_fd(), true);
            file.events = match (connection.unsent.is_empty(), pending.waiting.contains(&key)) {
                (false, _) => libc::POLLOUT,
                // While a request is outstanding, the connection is watched only for a disconnect.
                (true, true) => 0,
                (true, false) => libc::POLLIN,
            };
            files.push(file);
        }
        if poll::wait_any(&mut files, -1).is_err() {
            // Polling fails while the system is out of memory, so the thread waits and tries again.
            std::thread::sleep(Duration::from_millis(100));
            return;
        }
        pending.alarm.silence();
        if files[0].revents != 0 {
            self.accept();
        }
        let mut ready: BTreeSet<usize> = BTreeSet::new();
        for (key, file) in keys.into_iter().zip(&files[2..]) {
            if file.revents != 0 && pending.waiting.contains(&key) && file.events == 0 {
                pending.waiting.remove(&key);
                self.close(key);
            } else if file.revents != 0 {
                ready.insert(key);
            }
        }
        while let Ok((key, answer)) = pending.answers.try_recv() {
            // The client has disconnected, so the reply is dropped.
            if !pending.waiting.remove(&key) {
                continue;
            }
            match answer {
                Some(line) => {
                    self.answer(key, &line);
                    ready.insert(key);
                }
                None => self.close(key),
            }
        }
        for key in ready {
            self.queue_request(key, pending);
        }
    }

    /// Sends the rest of the last reply, and queues the next request of the connection.
    fn queue_request(&mut self, key: usize, pending: &mut Pending) {
        match self.next_line(key) {
            Received::Line(line) => {
                let (sender, bell) = (pending.sender.clone(), pending.alarm.bell());
                pending.waiting.insert(key);
                pending.requests.send(line, move |answer| {
                    // The send cannot fail, since the receiving thread lives as long as the process.
                    let _ = sender.send((key, answer));
                    bell.ring();
                });
            }
            Received::Pending => {}
            Received::Closed => self.close(key),
        }
    }
}
