//! Consoles whose questions a loop answers when it has time.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use super::{Asked, ConsoleServer};
use crate::desk::Desk;
use ib_os::alarm::Alarm;
use ib_os::poll;

/// What has been answered: by which connection it was asked.
type Answered = (usize, Option<String>);

/// A socket in the file system, which is removed with this.
#[derive(Debug)]
pub struct Serving(PathBuf);

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have been removed by somebody else.
        std::fs::remove_file(&self.0).ok();
    }
}

/// What stands between consoles and the loop.
struct Later {
    desk: Desk,
    alarm: Alarm,
    sender: Sender<Answered>,
    answers: Receiver<Answered>,
    /// Connections whose question is not answered yet.
    waiting: BTreeSet<usize>,
}

impl ConsoleServer {
    /// Opens a socket in the file system, and leaves what is asked there at a desk, in a thread of its own for as long
    /// as the process lives. Each connection has one question at a time; one that waits for its answer, or does not
    /// take it, stops no other one, and not the loop.
    ///
    /// # Errors
    /// As [`ConsoleServer::bind_at`], and when the system makes no further thread.
    pub fn serve_at(path: PathBuf, desk: Desk) -> io::Result<Serving> {
        let mut server = Self::bind_at(&path)?;
        let serving = Serving(path);
        let (sender, answers) = channel();
        let mut later =
            Later { desk, alarm: Alarm::new()?, sender, answers, waiting: BTreeSet::new() };
        let serve = move || {
            loop {
                server.round_later(&mut later);
            }
        };
        std::thread::Builder::new().name("console".to_owned()).spawn(serve)?;
        Ok(serving)
    }

    fn round_later(&mut self, later: &mut Later) {
        let mut files = vec![
            poll::watched(self.listener.as_fd(), false),
            poll::watched(later.alarm.as_fd(), false),
        ];
        let mut keys = Vec::new();
        for (&key, connection) in &self.connections {
            keys.push(key);
            let mut file = poll::watched(connection.stream.as_fd(), true);
            file.events = match (connection.unsent.is_empty(), later.waiting.contains(&key)) {
                (false, _) => libc::POLLOUT,
                // One whose question waits is only watched for its end.
                (true, true) => 0,
                (true, false) => libc::POLLIN,
            };
            files.push(file);
        }
        if poll::wait_any(&mut files, -1).is_err() {
            // Out of memory for the moment.
            std::thread::sleep(Duration::from_millis(100));
            return;
        }
        later.alarm.silence();
        if files[0].revents != 0 {
            self.accept();
        }
        let mut ready: BTreeSet<usize> = BTreeSet::new();
        for (key, file) in keys.into_iter().zip(&files[2..]) {
            if file.revents != 0 && later.waiting.contains(&key) && file.events == 0 {
                later.waiting.remove(&key);
                self.close(key);
            } else if file.revents != 0 {
                ready.insert(key);
            }
        }
        while let Ok((key, answer)) = later.answers.try_recv() {
            // Those that have gone are not waited for any more.
            if !later.waiting.remove(&key) {
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
            self.take_question(key, later);
        }
    }

    /// Takes a connection's next question, and sends what is left of the last answer.
    fn take_question(&mut self, key: usize, later: &mut Later) {
        match self.next_line(key) {
            Asked::Line(line) => {
                let (sender, bell) = (later.sender.clone(), later.alarm.bell());
                later.waiting.insert(key);
                later.desk.leave(line, move |answer| {
                    // The thread lives as long as the process.
                    let _ = sender.send((key, answer));
                    bell.ring();
                });
            }
            Asked::Nothing => {}
            Asked::Ended => self.close(key),
        }
    }
}
