//! Server-sent events with states of the fabric and log lines.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::response::sse::Event;
use futures_util::Stream;
use futures_util::stream::unfold;
use ib_types::Instant;
use tokio::sync::watch;

use ib_os::alarm::Bell;

/// Maximum number of clients that receive events at the same time.
pub(super) const MOST_LISTENERS: usize = 16;

/// Number of log lines that are kept in memory.
const MOST_LINES: usize = 1000;
/// Maximum number of earlier log lines that a new listener gets.
const FIRST_LINES: u64 = 100;

/// Maximum size of a log line in bytes. Longer lines are cut.
const LONGEST_LINE: usize = 1000;

/// The data that the listeners and the event loop share.
#[derive(Debug)]
pub(super) struct Feed {
    listeners: AtomicUsize,
    has_newcomers: AtomicBool,
    lines: Mutex<Lines>,
    bell: Bell,
}

/// The latest lines of the log.
#[derive(Debug, Default)]
struct Lines {
    /// The kept lines as JSON, each `[time in seconds, "text"]`.
    kept: VecDeque<Box<str>>,
    /// Number of lines that were logged since the server's start, including those that are no longer kept.
    count: u64,
}

/// A client that receives events.
struct Listener {
    feed: Arc<Feed>,
    states: watch::Receiver<Arc<str>>,
    /// Index of the next log line to send to the client, counted from the server's start.
    next: u64,
}

impl Feed {
    pub(super) fn new(bell: Bell) -> Self {
        let lines = Mutex::default();
        let (listeners, has_newcomers) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { listeners, has_newcomers, lines, bell }
    }

    pub(super) fn listeners(&self) -> usize {
        self.listeners.load(Ordering::SeqCst)
    }

    pub(super) fn take_newcomers(&self) -> bool {
        self.has_newcomers.swap(false, Ordering::SeqCst)
    }

    pub(super) fn log(&self, at: Instant, line: &str) {
        let line = serde_json::to_string(cut(line)).expect("a string can be serialised");
        let mut lines = self.lines();
        if lines.kept.len() == MOST_LINES {
            lines.kept.pop_front();
        }
        let seconds = at.as_nanos() as f64 / 1e9;
        lines.kept.push_back(format!("[{seconds:.6},{line}]").into());
        lines.count += 1;
    }

    /// Returns a stream of events with the states that are published from now on. A slow listener misses states.
    /// Returns `None` if [`MOST_LISTENERS`] listeners are connected already.
    pub(super) fn listen(
        self: &Arc<Self>,
        mut states: watch::Receiver<Arc<str>>,
    ) -> Option<impl Stream<Item = Result<Event, Infallible>> + Send + use<>> {
        let more = |count| (count < MOST_LISTENERS).then_some(count + 1);
        self.listeners.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).ok()?;
        // The listener does not get the last published state, which may be old.
        states.mark_unchanged();
        let next = self.lines().count.saturating_sub(FIRST_LINES);
        let listener = Listener { feed: Arc::clone(self), states, next };
        self.has_newcomers.store(true, Ordering::SeqCst);
        self.bell.ring();
        Some(unfold(listener, async |mut listener| {
            // The stream ends when the event loop has ended.
            listener.states.changed().await.ok()?;
            let event = listener.event();
            Some((Ok(event), listener))
        }))
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        // Poisoning of the mutex is ignored, because no panic leaves the lines in an inconsistent state.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener {
    /// Returns the event with the last published state and the log lines since the previous event.
    fn event(&mut self) -> Event {
        let mut data = String::from("{");
        data.push_str(&self.states.borrow_and_update());
        data.push_str(",\"log\":[");
        let lines = self.feed.lines();
        let first = lines.count - lines.kept.len() as u64;
        let missed = first.saturating_sub(self.next);
        let skipped = self.next.saturating_sub(first) as usize;
        let mut separator = "";
        if missed > 0
            && let Some(oldest) = lines.kept.front()
        {
            let at = oldest[1..].split(',').next().unwrap_or("0");
            write!(data, "[{at},\"{missed} lines before this were not kept\"]")
                .expect("writing to memory succeeds");
            separator = ",";
        }
        for line in lines.kept.iter().skip(skipped) {
            data.push_str(separator);
            data.push_str(line);
            separator = ",";
        }
        self.next = lines.count;
        drop(lines);
        data.push_str("]}");
        Event::default().event("state").data(data)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.feed.listeners.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Returns the line, cut after at most [`LONGEST_LINE`] bytes.
fn cut(line: &str) -> &str {
    &line[..line.floor_char_boundary(LONGEST_LINE)]
}
