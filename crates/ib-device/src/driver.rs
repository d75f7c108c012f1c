//! Driver thread of an HCA.
//!
//! Applications and the driver thread exchange requests and completions over lock-free queues. The driver thread spins
//! for the configured time and then sleeps; a post wakes it.
//!
//! Errors of a posted request are detected in two places. The posting call refuses a request that
//! exceeds a limit. The engine detects other errors, such as an invalid key. Such a request
//! completes with the same status as on a hardware HCA, and the queue pair fails.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant as WallClock};

use crossbeam_queue::{ArrayQueue, SegQueue};
use ib_hca::{
    CqId, Data, PostError, QpAttr, QpCap, QpId, QpState, RecvWr, SendWr, Wc, WcOpcode, WcStatus,
};
use ib_os::alarm::{Alarm, Bell};
use ib_os::clock;
use ib_types::{Instant, Qpn};

use crate::device::Device;
use crate::event::DeviceEvent;

/// Maximum number of queued events.
const MAX_EVENTS: usize = 4096;

/// Command to the driver thread.
enum Command {
    Send(Arc<QpSlots>, SendWr),
    Receive(Arc<QpSlots>, RecvWr),
    /// Runs a closure in the driver thread, and passes the device to it.
    Do(Box<dyn FnOnce(&mut Device) + Send>),
    /// Registers a completion buffer, into which the driver thread moves the completions of the
    /// engine's CQ.
    Drain(Arc<CompletionBuffer>),
}

/// A queue pair. `sends` and `receives` count its posted requests that the driver thread has not passed to the engine
/// yet.
struct QpSlots {
    qp: QpId,
    number: Qpn,
    cap: QpCap,
    cq: [CqId; 2],
    sends: AtomicU32,
    receives: AtomicU32,
}

/// Completions of a CQ.
struct CompletionBuffer {
    cq: CqId,
    queue: ArrayQueue<Wc>,
    /// True if a thread sleeps until a completion arrives.
    awaited: AtomicBool,
    sleep: Mutex<()>,
    condvar: Condvar,
}

struct Shared {
    commands: SegQueue<Command>,
    /// Events of the HCA.
    events: ArrayQueue<DeviceEvent>,
    /// True if the driver thread sleeps or is about to sleep.
    is_sleeping: AtomicBool,
    is_ending: AtomicBool,
    bell: Bell,
}

/// An HCA with a driver thread. Dropping the `Driver` ends the thread.
pub struct Driver {
    handle: DriverHandle,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// Handle by which any thread can use the HCA of a [`Driver`].
#[derive(Clone)]
pub struct DriverHandle(Arc<Shared>);

/// Handle by which any thread can post requests to a queue pair of a [`Driver`].
#[derive(Clone)]
pub struct DrivenQp {
    slots: Arc<QpSlots>,
    driver: DriverHandle,
}

/// Queue of completions that a [`Driver`] fills and that any thread can poll.
#[derive(Clone)]
pub struct DrivenCq(Arc<CompletionBuffer>);

/// The driver thread has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the driver thread of the HCA has ended")]
pub struct Stopped;

impl Driver {
    /// Starts a driver thread for an HCA.
    ///
    /// # Errors
    /// Fails if the system has no more descriptors or threads.
    pub fn start(mut device: Device) -> io::Result<Self> {
        // `Device::wait` does not spin here. The driver thread spins in its own loop, in which it also polls commands.
        let spin = std::mem::take(&mut device.spin);
        let alarm = Alarm::new()?;
        let shared = Shared {
            commands: SegQueue::new(),
            events: ArrayQueue::new(MAX_EVENTS),
            is_sleeping: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            bell: alarm.bell(),
        };
        let handle = DriverHandle(Arc::new(shared));
        let mut work = DriverThread {
            device,
            spin,
            shared: Arc::clone(&handle.0),
            drained: Vec::new(),
            waiting: VecDeque::new(),
            failed: HashMap::new(),
        };
        let thread =
            std::thread::Builder::new().name("ibfabric-rdma".to_owned()).spawn(move || {
                // The guard wakes the threads that wait for results of commands, even if the driver thread panics.
                let guard = StopGuard(Arc::clone(&work.shared));
                let result = work.run(&alarm);
                drop(work);
                drop(guard);
                result
            })?;
        Ok(Self { handle, thread: Some(thread) })
    }

    /// Returns a handle by which other threads use the HCA.
    #[must_use]
    pub fn handle(&self) -> DriverHandle {
        self.handle.clone()
    }

    /// Ends the driver thread, and waits until it has ended.
    ///
    /// # Errors
    /// Fails if a system error has ended the thread.
    pub fn stop(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        self.handle.0.is_ending.store(true, Ordering::Release);
        self.handle.0.bell.ring();
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the driver thread has panicked")))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // An error of the driver thread is lost here. Callers that need the error call `stop`
        // before.
        self.end().ok();
    }
}

impl DriverHandle {
    /// Runs a closure in the driver thread and waits for its result.
    ///
    /// # Errors
    /// Fails if the driver thread has ended.
    pub fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Device) -> T + Send + 'static,
    ) -> Result<T, Stopped> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let command = Command::Do(Box::new(move |device: &mut Device| {
            // The send fails if the caller no longer waits for the result. This has no effect.
            let _ = sender.send(work(device));
        }));
        self.submit(command)?;
        receiver.recv().map_err(|_| Stopped)
    }

    /// Returns the next event of the HCA, such as a connection request, a disconnect or a failed
    /// queue pair. If the event queue is full, new events are dropped.
    #[must_use]
    pub fn poll_event(&self) -> Option<DeviceEvent> {
        self.0.events.pop()
    }

    /// Returns a handle by which any thread can post requests to a queue pair. All requests of the
    /// queue pair have to be posted through this handle or its clones.
    ///
    /// # Errors
    /// Fails if the driver thread has ended. Returns `Ok(None)` if the queue pair does not exist.
    pub fn queue_pair(
        &self,
        qp: QpId,
        cap: QpCap,
        cqs: [CqId; 2],
    ) -> Result<Option<DrivenQp>, Stopped> {
        let number =
            self.with(move |device| device.hca().query_qp(qp).map(|(number, ..)| number))?;
        Ok(number.map(|number| {
            let (sends, receives) = (AtomicU32::new(0), AtomicU32::new(0));
            let slots = Arc::new(QpSlots { qp, number, cap, cq: cqs, sends, receives });
            DrivenQp { slots, driver: self.clone() }
        }))
    }

    /// Returns a queue of up to `most` completions, which any thread can poll. The driver thread moves the completions
    /// of the engine's CQ into this queue.
    ///
    /// # Errors
    /// Fails if the driver thread has ended.
    pub fn completion_queue(&self, cq: CqId, most: usize) -> Result<DrivenCq, Stopped> {
        let buffer = Arc::new(CompletionBuffer {
            cq,
            queue: ArrayQueue::new(most.max(1)),
            awaited: AtomicBool::new(false),
            sleep: Mutex::new(()),
            condvar: Condvar::new(),
        });
        self.submit(Command::Drain(Arc::clone(&buffer)))?;
        Ok(DrivenCq(buffer))
    }

    fn submit(&self, command: Command) -> Result<(), Stopped> {
        if self.0.is_ending.load(Ordering::Acquire) {
            return Err(Stopped);
        }
        self.0.commands.push(command);
        fence(Ordering::SeqCst);
        if self.0.is_ending.load(Ordering::Acquire) {
            // The driver thread is ending and executes no further commands, so they are dropped.
            while self.0.commands.pop().is_some() {}
            return Err(Stopped);
        }
        // The driver thread polls commands once more after it has set the sleep flag, so this
        // command is not missed.
        fence(Ordering::SeqCst);
        if self.0.is_sleeping.load(Ordering::Relaxed)
            && self.0.is_sleeping.swap(false, Ordering::AcqRel)
        {
            self.0.bell.ring();
        }
        Ok(())
    }
}

/// Adds 1 to `taken`, the number of queued requests; fails if the number is `most` already.
fn take_slot(taken: &AtomicU32, most: u32) -> Result<(), PostError> {
    let more = |count: u32| (count < most).then_some(count + 1);
    let found = taken.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more);
    found.map(drop).map_err(|_| PostError::Full(most))
}

impl DrivenQp {
    /// Returns the queue pair to which this handle posts.
    #[must_use]
    pub fn id(&self) -> QpId {
        self.slots.qp
    }

    /// Posts a send request, as [`ib_hca::Hca::post_send`] does. The module's documentation
    /// describes errors that are detected later.
    ///
    /// # Errors
    /// Fails if the queue is full, or if the request exceeds a limit.
    pub fn post_send(&self, wr: SendWr) -> Result<(), PostError> {
        let cap = &self.slots.cap;
        check(&wr.data, cap.max_send_sge, cap.max_inline_data)?;
        take_slot(&self.slots.sends, cap.max_send_wr)?;
        let command = Command::Send(Arc::clone(&self.slots), wr);
        self.driver.submit(command).map_err(|Stopped| PostError::NoSuchQueue)
    }

    /// Posts a receive, as [`ib_hca::Hca::post_recv`] does.
    ///
    /// # Errors
    /// As [`DrivenQp::post_send`].
    pub fn post_recv(&self, wr: RecvWr) -> Result<(), PostError> {
        check(&wr.data, self.slots.cap.max_recv_sge, 0)?;
        take_slot(&self.slots.receives, self.slots.cap.max_recv_wr)?;
        let command = Command::Receive(Arc::clone(&self.slots), wr);
        self.driver.submit(command).map_err(|Stopped| PostError::NoSuchQueue)
    }
}

fn check(data: &Data, most: u32, most_inline: u32) -> Result<(), PostError> {
    let found = data.sges().len();
    if found > most as usize {
        return Err(PostError::TooManySges { found, most });
    }
    match data {
        Data::Inline(bytes) if bytes.len() > most_inline as usize => {
            Err(PostError::TooMuchInline { found: bytes.len(), most: most_inline })
        }
        _ => Ok(()),
    }
}

impl DrivenCq {
    /// Returns the next completion that the driver thread has moved into this completion queue, if any.
    #[must_use]
    pub fn poll(&self) -> Option<Wc> {
        self.0.queue.pop()
    }

    /// Waits for a completion; `None` if none arrives within `patience`.
    #[must_use]
    pub fn wait(&self, patience: Duration) -> Option<Wc> {
        let end = WallClock::now() + patience;
        let mut guard: MutexGuard<'_, ()> =
            self.0.sleep.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            self.0.awaited.store(true, Ordering::SeqCst);
            if let Some(wc) = self.poll() {
                return Some(wc);
            }
            let left = end.saturating_duration_since(WallClock::now());
            if left.is_zero() {
                return None;
            }
            let waited = self.0.condvar.wait_timeout(guard, left);
            guard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// When the driver thread ends, this guard drops outstanding commands. This wakes the threads that wait for the
/// results of the commands.
struct StopGuard(Arc<Shared>);

impl Drop for StopGuard {
    fn drop(&mut self) {
        self.0.is_ending.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        while self.0.commands.pop().is_some() {}
    }
}

/// State of the driver thread.
struct DriverThread {
    device: Device,
    /// Time that the driver thread spins before it sleeps.
    spin: Duration,
    shared: Arc<Shared>,
    drained: Vec<Arc<CompletionBuffer>>,
    /// Requests that the engine has no room for yet.
    waiting: VecDeque<Command>,
    /// Completions of requests that the engine has refused.
    failed: HashMap<CqId, VecDeque<Wc>>,
}

impl DriverThread {
    fn run(&mut self, alarm: &Alarm) -> io::Result<()> {
        let mut idle_since = None;
        while !self.shared.is_ending.load(Ordering::Acquire) {
            let moved = self.run_commands() | self.device.progress()? | self.drain();
            while let Some(event) = self.device.poll_event() {
                // If the event queue is full, the event is dropped.
                let _ = self.shared.events.push(event);
            }
            if moved {
                idle_since = None;
                continue;
            }
            if !self.spin.is_zero()
                && idle_since.get_or_insert_with(WallClock::now).elapsed() < self.spin
            {
                std::hint::spin_loop();
                continue;
            }
            // An alarm that is rung after this call of `silence` ends the call of `wait` below.
            alarm.silence();
            self.shared.is_sleeping.store(true, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            if self.shared.commands.is_empty() && !self.shared.is_ending.load(Ordering::Acquire) {
                let until = if self.is_blocked() { next_check() } else { Instant::NEVER };
                self.device.wait(until, Some(alarm))?;
            }
            self.shared.is_sleeping.store(false, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Returns true if completions or requests wait for queue space that another thread has to free.
    fn is_blocked(&self) -> bool {
        !self.waiting.is_empty() || self.drained.iter().any(|buffer| buffer.queue.is_full())
    }

    /// Executes commands; returns true if there were any.
    fn run_commands(&mut self) -> bool {
        let mut moved = false;
        for _ in 0..self.waiting.len() {
            let Some(command) = self.waiting.pop_front() else { break };
            moved |= self.run_command(command);
        }
        while let Some(command) = self.shared.commands.pop() {
            moved = true;
            // If an earlier request of the same send or receive queue waits for queue space, this
            // request waits behind it. So the requests keep their order.
            if self.has_to_wait(&command) {
                self.waiting.push_back(command);
            } else {
                self.run_command(command);
            }
        }
        moved
    }

    fn has_to_wait(&self, command: &Command) -> bool {
        let queue_of = |command: &Command| match command {
            Command::Send(slots, _) => Some((slots.qp, true)),
            Command::Receive(slots, _) => Some((slots.qp, false)),
            Command::Do(_) | Command::Drain(_) => None,
        };
        let own = queue_of(command);
        own.is_some() && self.waiting.iter().any(|it| queue_of(it) == own)
    }

    /// Executes one command. Returns false if the command has to wait for queue space.
    fn run_command(&mut self, command: Command) -> bool {
        let now = clock::now();
        match command {
            Command::Send(slots, wr) => {
                let refused = self.device.hca().post_send(now, slots.qp, wr.clone());
                match refused {
                    Err(PostError::Full(_)) => {
                        self.waiting.push_back(Command::Send(slots, wr));
                        return false;
                    }
                    Err(error) => {
                        self.fail(&slots, slots.cq[0], wr.wr_id, WcOpcode::Send, &error);
                    }
                    Ok(()) => {}
                }
                slots.sends.fetch_sub(1, Ordering::AcqRel);
            }
            Command::Receive(slots, wr) => {
                let refused = self.device.hca().post_recv(now, slots.qp, wr.clone());
                match refused {
                    Err(PostError::Full(_)) => {
                        self.waiting.push_back(Command::Receive(slots, wr));
                        return false;
                    }
                    Err(error) => {
                        self.fail(&slots, slots.cq[1], wr.wr_id, WcOpcode::Recv, &error);
                    }
                    Ok(()) => {}
                }
                slots.receives.fetch_sub(1, Ordering::AcqRel);
            }
            Command::Do(work) => work(&mut self.device),
            Command::Drain(buffer) => self.drained.push(buffer),
        }
        true
    }

    /// Adds an error completion for a request that the HCA has refused, and fails the queue pair.
    fn fail(&mut self, slots: &QpSlots, cq: CqId, wr_id: u64, opcode: WcOpcode, why: &PostError) {
        let status = match why {
            PostError::Sge { .. } => WcStatus::LocProtErr,
            _ => WcStatus::LocQpOpErr,
        };
        let wc = Wc { status, ..Wc::new(wr_id, opcode, slots.number) };
        self.failed.entry(cq).or_default().push_back(wc);
        let attr = QpAttr { qp_state: Some(QpState::Err), ..QpAttr::default() };
        // The error is ignored: the queue pair may have been destroyed meanwhile.
        self.device.hca().modify_qp(clock::now(), slots.qp, &attr).ok();
    }

    /// Moves completions into the completion buffers; returns true if there were any.
    fn drain(&mut self) -> bool {
        let mut moved = false;
        for buffer in &self.drained {
            let mut some = false;
            while !buffer.queue.is_full() {
                let failed = self.failed.get_mut(&buffer.cq).and_then(VecDeque::pop_front);
                let Some(wc) = failed.or_else(|| self.device.hca().poll_cq(buffer.cq)) else {
                    break;
                };
                // The push succeeds: the queue has room, and only this thread pushes.
                let _ = buffer.queue.push(wc);
                some = true;
            }
            moved |= some;
            fence(Ordering::SeqCst);
            if some && buffer.awaited.swap(false, Ordering::SeqCst) {
                drop(buffer.sleep.lock().unwrap_or_else(PoisonError::into_inner));
                buffer.condvar.notify_all();
            }
        }
        moved
    }
}

/// Returns the time at which the driver thread next checks for free queue space.
fn next_check() -> Instant {
    clock::now() + Duration::from_micros(50)
}

#[cfg(test)]
mod tests;
