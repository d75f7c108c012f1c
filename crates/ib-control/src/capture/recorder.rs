//! Recorder: a thread that collects the packets of queue pairs from their rings and writes them.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant as WallClock};

use ib_capture::{Collector, Counted, Link};
use ib_link::PacketSource;
use ib_types::Instant;
use serde::{Deserialize, Serialize};

use super::background::DutyLimit;
use super::clock::Clock;
use super::target::{Output, Pending, Target, TargetError};

/// Pause between two readings of the rings: initial, minimum and maximum value.
const PAUSE: Duration = Duration::from_millis(1);
const MIN_PAUSE: Duration = Duration::from_micros(250);
const MAX_PAUSE: Duration = Duration::from_millis(20);

/// Fill levels of rings, from 0 to 1. If a ring is fuller than `HIGH_FILL`, the pauses become shorter. If all rings are
/// less full than `LOW_FILL`, the pauses become longer.
const HIGH_FILL: f64 = 0.5;
const LOW_FILL: f64 = 0.125;

/// Limit in bytes for prefaulting: the ring of an added queue pair is prefaulted only if all rings together are not
/// larger. Of thousands of queue pairs most are idle, and prefaulting their rings would waste memory.
const PREPARED: u64 = 256 << 20;

/// Number of bytes that are collected before they are written.
const WRITE_SIZE: usize = 256 << 10;

/// Interval at which the published progress of a capture is updated.
const UPDATE_INTERVAL: Duration = Duration::from_millis(50);

/// How long the recorder waits, after the duration of the capture, for packets whose timestamps are within the
/// duration. It does not wait if the traces of all queue pairs have ended.
const LATE_PACKET_TIME: Duration = Duration::from_millis(200);

/// Time that the reader of a stream has, at the end of a capture, to read the remaining bytes.
const READER_TIMEOUT: Duration = Duration::from_secs(2);

/// Conditions that end a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Autostop {
    /// Maximum number of packets to write.
    pub packets: Option<u64>,
    /// Maximum total size of the files in bytes, including statistics.
    pub bytes: Option<u64>,
    /// Maximum duration. All packets with timestamps within the duration are written.
    pub duration: Option<Duration>,
}

/// Progress of a capture.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Counters of each queue pair.
    pub counted: Vec<Counted>,
    /// Path of the newest file of the capture; `the stream` if the target is a stream.
    pub file: String,
    /// Number of files that were begun.
    pub files: u64,
    /// Number of bytes written to all files.
    pub bytes: u64,
    /// The error that ended the capture.
    pub error: Option<String>,
    /// True if the only error is that the reader of a stream has disconnected.
    pub reader_left: bool,
    /// True if the capture has ended.
    pub has_ended: bool,
}

/// A command to the recorder thread.
enum RecorderCommand {
    Add(String, Box<dyn PacketSource + Send>),
    Finish,
}

/// A running capture. A thread with background scheduling priority writes it.
pub struct Recorder {
    commands: Sender<RecorderCommand>,
    progress: Arc<Mutex<Recorded>>,
    thread: Option<JoinHandle<Work>>,
    /// End of the capture's duration by the HCAs' clock; [`Instant::NEVER`] if the duration is unlimited.
    end_time: Instant,
}

/// Adds queue pairs to a [`Recorder`].
#[derive(Clone)]
pub struct RecorderHandle(Sender<RecorderCommand>);

impl RecorderHandle {
    /// Adds a queue pair to the capture.
    pub fn add(&self, name: String, packets: Box<dyn PacketSource + Send>) {
        // If the recorder has ended, the command is ignored.
        self.0.send(RecorderCommand::Add(name, packets)).ok();
    }
}

impl Recorder {
    /// Starts a recorder that writes to `target`. `on_end` is called when the capture ends by a condition or an error.
    ///
    /// # Errors
    /// Fails if the target cannot be opened, or if the system cannot create a thread.
    pub fn start(
        target: Target,
        (link, clock): (Link, Clock),
        autostop: Autostop,
        on_end: impl FnOnce() + Send + 'static,
    ) -> Result<Self, TargetError> {
        let output = Output::open(target)?;
        let (commands, ordered) = channel();
        let name = output.name().display().to_string();
        let progress = Recorded { file: name.clone(), files: 1, ..Recorded::default() };
        let progress = Arc::new(Mutex::new(progress));
        let begun = clock.now();
        let limit = autostop.duration.map(|most| begun + most);
        let work = Work {
            collector: Collector::new(link, clock.epoch()),
            limit,
            clock,
            output,
            autostop,
            pending: Pending::default(),
            packets: 0,
            expired: None,
            begun: WallClock::now(),
            begun_finishing: WallClock::now(),
            closing: None,
            pause: PAUSE,
            duty_limit: DutyLimit::new(),
            rest: None,
            error: None,
            is_over: false,
            on_end: Some(Box::new(on_end)),
            progress: Arc::clone(&progress),
            last_update: None,
            commands: ordered,
            is_finishing: false,
        };
        let thread = std::thread::Builder::new().name("capture".to_owned());
        let thread = thread.spawn(move || work.run());
        let thread = thread.map_err(|source| TargetError { name, offset: None, source })?;
        let end_time = limit.unwrap_or(Instant::NEVER);
        Ok(Self { commands, progress, thread: Some(thread), end_time })
    }

    /// Returns the end time of the capture, on the clock of the HCAs; [`Instant::NEVER`] if the duration is
    /// unlimited.
    #[must_use]
    pub fn end_time(&self) -> Instant {
        self.end_time
    }

    /// Returns a handle that adds queue pairs to the capture.
    #[must_use]
    pub fn handle(&self) -> RecorderHandle {
        RecorderHandle(self.commands.clone())
    }

    /// Returns the progress at the time of its last update.
    #[must_use]
    pub fn recorded(&self) -> Recorded {
        lock(&self.progress).clone()
    }

    /// Writes the remaining packets, ends the capture and returns the result. The traces of the
    /// queue pairs must have been stopped before.
    #[must_use]
    pub fn finish(mut self) -> Recorded {
        self.end();
        self.recorded()
    }

    fn end(&mut self) {
        self.commands.send(RecorderCommand::Finish).ok();
        match self.thread.take().map(JoinHandle::join) {
            None => {}
            Some(Ok(work)) => work.finish(),
            Some(Err(_)) => {
                let mut progress = lock(&self.progress);
                progress.has_ended = true;
                progress.error.get_or_insert_with(|| "the recorder thread has failed".to_owned());
            }
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end();
    }
}

fn lock(progress: &Mutex<Recorded>) -> MutexGuard<'_, Recorded> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Work {
    collector: Collector,
    clock: Clock,
    /// Packets with timestamps after this time are not captured.
    limit: Option<Instant>,
    /// Time at which the recorder thread noticed that the duration of the capture was over.
    expired: Option<WallClock>,
    output: Output,
    autostop: Autostop,
    /// Bytes of collected packets that the target has not accepted yet.
    pending: Pending,
    /// Number of packets that the capture has collected from the rings so far.
    packets: u64,
    begun: WallClock,
    begun_finishing: WallClock,
    /// Time by which the reader of the target must have read the last bytes; `None` unless the capture is being
    /// finished.
    closing: Option<WallClock>,
    pause: Duration,
    duty_limit: DutyLimit,
    /// Time until which the thread pauses to leave the processor to other threads.
    rest: Option<WallClock>,
    error: Option<TargetError>,
    is_over: bool,
    on_end: Option<Box<dyn FnOnce() + Send>>,
    progress: Arc<Mutex<Recorded>>,
    last_update: Option<WallClock>,
    commands: Receiver<RecorderCommand>,
    is_finishing: bool,
}

impl Work {
    /// Collects and writes packets until the `Finish` command arrives. Returns `self`, whose `finish` then writes the
    /// last packets.
    fn run(mut self) -> Self {
        ib_os::cpu::only_when_idle();
        self.duty_limit = DutyLimit::new();
        self.begin();
        while !self.is_finishing {
            let left = self.rest.map(|until| until.saturating_duration_since(WallClock::now()));
            match self.commands.recv_timeout(left.unwrap_or_default().max(self.pause)) {
                Ok(command) => self.execute(command),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.is_finishing {
                break;
            }
            if self.expired.is_none() && self.is_expired() {
                self.expired = Some(WallClock::now());
                self.call_on_end();
            }
            if self.rest.is_none_or(|until| WallClock::now() >= until) {
                self.rest = None;
                self.step(false);
                self.stop_if_expired();
                self.update_progress(false);
            }
        }
        self
    }

    /// Writes the last packets and closes the file. This runs in the thread that stops the capture, because the
    /// recorder thread would hardly run on busy processors.
    fn finish(mut self) {
        self.begun_finishing = WallClock::now();
        // Queue pairs may have been added since the `Finish` command. The rest of the capture includes their packets.
        self.execute_all();
        let end = WallClock::now() + READER_TIMEOUT;
        while self.closing.is_none() && WallClock::now() < end {
            self.step(true);
            if self.pending.is_empty() {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        self.close(end);
        while self.closing.is_some() {
            self.step(true);
            if self.closing.is_some() {
                std::thread::sleep(PAUSE);
            }
        }
        // The capture has ended, so `collect` only counts the packets that are still in the rings as unwritten.
        self.collector.collect(Instant::NEVER, usize::MAX, u64::MAX);
        self.update_progress(true);
    }

    /// Begins the pcapng section of a file; each file has one section.
    fn begin(&mut self) {
        let left = self.autostop.bytes.map(|most| most.saturating_sub(self.output.written().1));
        let most = left.into_iter().chain(self.output.limit()).min();
        self.collector.set_limit(most.unwrap_or(u64::MAX));
        self.collector.begin(self.clock.now());
    }

    /// Returns true if the duration is over by the HCAs' clock or by the system's clock. The system's clock is needed
    /// because the clock of a simulated fabric stops while the fabric is idle.
    fn is_expired(&self) -> bool {
        self.limit.is_some_and(|at| self.clock.now() >= at)
            || self.autostop.duration.is_some_and(|most| self.begun.elapsed() >= most)
    }

    /// Ends the capture once all packets with timestamps within its duration are written.
    fn stop_if_expired(&mut self) {
        let Some(expired) = self.expired else { return };
        let waited = expired.elapsed();
        let is_over = match self.pending.is_empty() {
            true => {
                self.rest.is_none()
                    && (self.collector.have_all_ended() || waited >= LATE_PACKET_TIME)
            }
            // Some collected bytes are not written yet, so a slow reader gets extra time to read them.
            false => waited >= LATE_PACKET_TIME + READER_TIMEOUT,
        };
        if is_over {
            self.stop();
        }
    }

    fn execute(&mut self, command: RecorderCommand) {
        let RecorderCommand::Add(name, packets) = command else {
            self.is_finishing = true;
            return;
        };
        let (_, size) = packets.waiting();
        if !self.is_finishing && self.collector.ring_bytes() + size <= PREPARED {
            packets.prepare();
        }
        self.collector.add(&name, packets);
    }

    fn execute_all(&mut self) {
        while let Ok(command) = self.commands.try_recv() {
            self.execute(command);
        }
    }

    /// Collects and writes packets until none is left or the target accepts no more. If `is_hasty` is false, also
    /// returns when the duty limit requires a pause.
    fn step(&mut self, is_hasty: bool) {
        let fullness = self.collector.fullness();
        if fullness > HIGH_FILL {
            self.pause = (self.pause / 2).max(MIN_PAUSE);
        } else if fullness < LOW_FILL {
            self.pause = (self.pause * 2).min(MAX_PAUSE);
        }
        if self.error.is_some() || self.is_over {
            // The capture has ended, so `collect` only counts the packets as unwritten.
            self.collector.collect(Instant::NEVER, usize::MAX, u64::MAX);
            return;
        }
        if let Some(end) = self.closing {
            return self.continue_closing(end);
        }
        loop {
            if self.pending.is_empty() && !self.fill() {
                return;
            }
            if !self.write() || !self.pending.is_empty() {
                return;
            }
            if is_hasty && self.begun_finishing.elapsed() > READER_TIMEOUT * 5 {
                // If packets arrive as fast as the target accepts them, the loop would never end. It therefore stops
                // after this time. The remaining packets count as unwritten.
                return;
            }
            if !is_hasty {
                let rest = self.duty_limit.pause();
                if rest >= MIN_PAUSE {
                    self.rest = Some(WallClock::now() + rest);
                    return;
                }
            }
        }
    }

    /// Collects packets and prepares their bytes for writing; returns false if there are no bytes to write or the
    /// capture ends.
    fn fill(&mut self) -> bool {
        self.pending.clear();
        if (self.output.is_full() || self.collector.is_full()) && !self.next_file() {
            return false;
        }
        let most = self.autostop.packets.map_or(u64::MAX, |most| most - self.packets);
        // The clock is read before the waiting `Add` commands are executed. All queue pairs that were added by `until`
        // therefore take part in the collection.
        let until = self.clock.now().min(self.limit.unwrap_or(Instant::NEVER));
        self.execute_all();
        let collected = self.collector.collect(until, WRITE_SIZE, self.output.room().min(most));
        self.packets += collected;
        self.pending.packets = collected;
        self.collector.output(&mut self.pending.bytes);
        // If the next packet does not fit into the present file, `fill` begins another file and collects the packet for
        // it.
        !self.pending.is_empty() || self.collector.is_full() && self.fill()
    }

    /// Writes as many of the collected bytes as the target accepts; returns false if the capture has ended.
    fn write(&mut self) -> bool {
        if let Err(error) = self.output.write(&mut self.pending) {
            self.fail(error);
            return false;
        }
        if !self.pending.is_empty() {
            return true;
        }
        self.collector.settle(true);
        if self.autostop.packets.is_some_and(|most| self.packets >= most) {
            self.stop();
            return false;
        }
        true
    }

    /// Finishes the current file and begins the next one; returns false if there is no next file or an error occurred.
    fn next_file(&mut self) -> bool {
        let before = self.output.written().1;
        self.collector.end(self.clock.now());
        self.collector.output(&mut self.pending.bytes);
        let all = before + self.pending.bytes.len() as u64;
        if !self.output.has_next() || self.autostop.bytes.is_some_and(|most| all >= most) {
            self.stop();
            return false;
        }
        let written = self.output.write(&mut self.pending).and_then(|()| self.output.next());
        if let Err(error) = written {
            self.fail(error);
            return false;
        }
        self.pending.clear();
        self.begin();
        true
    }

    /// Begins to finish the capture by appending the statistics. The reader has until `end` to read the remaining
    /// bytes.
    fn close(&mut self, end: WallClock) {
        if self.error.is_some() || self.is_over || self.closing.is_some() {
            return;
        }
        self.closing = Some(end);
        self.continue_closing(end);
    }

    fn continue_closing(&mut self, end: WallClock) {
        if let Err(error) = self.output.write(&mut self.pending) {
            return self.fail(error);
        }
        if self.pending.is_empty() && self.collector.has_begun() {
            self.collector.settle(true);
            self.pending.clear();
            self.collector.end(self.clock.now());
            self.collector.output(&mut self.pending.bytes);
            return self.continue_closing(end);
        }
        if self.pending.is_empty() {
            (self.closing, self.is_over) = (None, true);
        } else if WallClock::now() >= end {
            let waited =
                format!("the reader has not read for {} seconds", READER_TIMEOUT.as_secs());
            let source = io::Error::new(io::ErrorKind::TimedOut, waited);
            let name = self.output.name().display().to_string();
            let offset = Some(self.output.offset());
            self.fail(TargetError { name, offset, source });
        }
    }

    /// Ends the capture because a condition of the capture is met.
    fn stop(&mut self) {
        self.close(WallClock::now() + READER_TIMEOUT);
        self.call_on_end();
    }

    fn call_on_end(&mut self) {
        if let Some(on_end) = self.on_end.take() {
            on_end();
        }
    }

    fn fail(&mut self, error: TargetError) {
        self.error.get_or_insert(error);
        self.closing = None;
        // A packet counts as captured if the target has accepted all of its bytes.
        self.collector.settle_first(self.pending.done());
        self.pending.clear();
        self.collector.abandon();
        self.call_on_end();
    }

    fn update_progress(&mut self, has_ended: bool) {
        if !has_ended && self.last_update.is_some_and(|last| last.elapsed() < UPDATE_INTERVAL) {
            return;
        }
        self.last_update = Some(WallClock::now());
        let (files, bytes) = self.output.written();
        let recorded = Recorded {
            counted: self.collector.counted().collect(),
            file: self.output.name().display().to_string(),
            files,
            bytes,
            error: self.error.as_ref().map(ToString::to_string),
            reader_left: (self.error.as_ref())
                .is_some_and(|error| error.source.kind() == io::ErrorKind::BrokenPipe),
            has_ended: has_ended || self.is_over || self.error.is_some(),
        };
        *lock(&self.progress) = recorded;
    }
}

#[cfg(test)]
mod tests;
