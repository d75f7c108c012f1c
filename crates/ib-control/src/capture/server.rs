//! Capture server: lets other processes of the same user or of root start, watch and stop captures of a program's HCAs.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use ib_hca::QpState;
use ib_hca::trace::Selection;
use ib_link::Direction;
use ib_types::Qpn;
use ib_wire::packet::Opcode;
use rustix::io::Errno;
use rustix::net::{Shutdown, SocketFlags, accept_with, shutdown};

use super::captures::{CaptureOptions, Captures};
use super::hca_owner::HcaOwner;
use super::message::{
    AdapterInfo, CaptureInfo, CaptureRequest, CaptureResponse, MOST_ADAPTERS, MOST_QPS,
    MessageInfo, ProgramInfo, QpInfo, Start, VERSION,
};
use super::target::Target;
use ib_device::address_of;
use ib_os::inbox::Handle;
use ib_os::poll;
use ib_os::seqpacket::{self, Received};

/// Prefix of the names of all capture sockets; the process ID and the index of the socket in the process follow.
pub(super) const PREFIX: &str = "ibfabric-capture-";

/// How long a request to the driver thread of the HCAs may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum number of concurrent clients.
const MOST_CLIENTS: usize = 16;

/// Maximum number of captures in a response, and maximum length of the command line in bytes. A response with long file
/// paths still fits into one message.
const MOST_CAPTURES: usize = 6;
const LONGEST_COMMAND: usize = 2048;

/// Pause after accepting a connection has failed.
const PAUSE: Duration = Duration::from_millis(50);

/// Maximum number of messages in a response.
const MOST_MESSAGES: usize = 128;

/// Capture server for a program's HCAs. It has threads of its own, and ends when it is dropped.
pub struct CaptureServer {
    listener: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl CaptureServer {
    /// Starts the server.
    ///
    /// # Errors
    /// Fails if the process has no free file descriptors, or if no thread can be created.
    pub fn start<T: HcaOwner>(all: &mut T, captures: Captures<T>) -> io::Result<Self> {
        static SERVERS: AtomicU32 = AtomicU32::new(0);
        let (pid, number) = (std::process::id(), SERVERS.fetch_add(1, Ordering::Relaxed));
        let name = format!("{PREFIX}{pid}-{number}");
        let listener = Arc::new(seqpacket::listen_at(&name, SocketFlags::empty())?);
        let clients = Arc::new(AtomicUsize::new(0));
        let served = Served { captures, all: all.handle()? };
        let accepting = Arc::clone(&listener);
        let accept = move || {
            loop {
                let socket = match accept_with(&*accepting, SocketFlags::CLOEXEC) {
                    Ok(socket) => socket,
                    // `Drop` has shut down the socket, so the server ends.
                    Err(Errno::INVAL | Errno::BADF) => return,
                    Err(_) => {
                        // The client has disconnected, or the process has no free file descriptors at present.
                        std::thread::sleep(PAUSE);
                        continue;
                    }
                };
                if !ib_os::unix::is_own_user(&socket) {
                    let why = "only the user of the program can capture it".to_owned();
                    let answer = CaptureResponse::Refused { why, is_foreign: true };
                    seqpacket::send(&socket, &answer, &[]).ok();
                    continue;
                }
                let slot = ClientSlot::take(&clients);
                if slot.number > MOST_CLIENTS {
                    let answer =
                        refused(format!("{MOST_CLIENTS} clients are connected, the maximum"));
                    seqpacket::send(&socket, &answer, &[]).ok();
                    continue;
                }
                let served = served.clone();
                let serve = move || {
                    let _slot = slot;
                    served.serve(&socket);
                };
                let thread = std::thread::Builder::new().name("capture client".to_owned());
                // If no thread can be created, the socket is closed, which the client detects.
                thread.spawn(serve).ok();
            }
        };
        let thread = std::thread::Builder::new().name("capture calls".to_owned());
        Ok(Self { listener, thread: Some(thread.spawn(accept)?) })
    }
}

/// Counts a client in `clients` until the slot is dropped, i.e. while the client is connected.
struct ClientSlot {
    number: usize,
    clients: Arc<AtomicUsize>,
}

impl ClientSlot {
    fn take(clients: &Arc<AtomicUsize>) -> Self {
        let number = clients.fetch_add(1, Ordering::AcqRel) + 1;
        Self { number, clients: Arc::clone(clients) }
    }
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        self.clients.fetch_sub(1, Ordering::AcqRel);
    }
}

fn refused(why: String) -> CaptureResponse {
    CaptureResponse::Refused { why, is_foreign: false }
}

impl Drop for CaptureServer {
    fn drop(&mut self) {
        shutdown(&*self.listener, Shutdown::Both).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

struct Served<T> {
    captures: Captures<T>,
    all: Handle<T>,
}

impl<T> Clone for Served<T> {
    fn clone(&self) -> Self {
        Self { captures: self.captures.clone(), all: self.all.clone() }
    }
}

impl<T: HcaOwner> Served<T> {
    /// Serves one client. When the client disconnects, stops the captures that write to streams which the client has
    /// passed.
    fn serve(&self, socket: &OwnedFd) {
        let mut own = Vec::new();
        while poll::wait(socket.as_fd(), false, -1).is_ok() {
            let (answer, has_stream) = match seqpacket::receive::<CaptureRequest>(socket) {
                Ok(Received::Empty) => continue,
                Ok(Received::Message(ask, files)) => {
                    let has_stream = !files.is_empty();
                    (self.answer(ask, files), has_stream)
                }
                Ok(Received::Malformed(why)) => (refused(format!("invalid request: {why}")), false),
                Ok(Received::Disconnected) | Err(_) => break,
            };
            if let CaptureResponse::Capture(info) = &answer
                && has_stream
            {
                own.push(info.capture);
            }
            if seqpacket::send(socket, &answer, &[]).is_err() {
                break;
            }
        }
        for capture in own {
            // Stopping fails if the client has stopped the capture already.
            self.captures.stop(capture).ok();
        }
    }

    fn answer(&self, ask: CaptureRequest, files: Vec<OwnedFd>) -> CaptureResponse {
        let answered = match ask {
            CaptureRequest::Describe { from, captures_from } => self.describe(from, captures_from),
            CaptureRequest::Messages { adapter, qpn, from } => self.messages((adapter, qpn), from),
            CaptureRequest::Start(start) => self.start(&start, files),
            CaptureRequest::Change { capture, payload, direction, opcodes } => {
                let changed = self.captures.change(capture, |trace| {
                    trace.payload = payload.unwrap_or(trace.payload);
                    if let Some(direction) = direction {
                        trace.filter.direction = direction.map(Direction::from);
                    }
                    if let Some(opcodes) = opcodes {
                        trace.filter.opcodes = opcodes.into_iter().map(Opcode).collect();
                    }
                });
                changed.map_err(|error| error.to_string()).and_then(|()| self.status(capture))
            }
            CaptureRequest::Status { capture } => self.status(capture),
            CaptureRequest::Stop { capture } => {
                let stopped = self.captures.stop(capture).map_err(|error| error.to_string());
                stopped.map(|recorded| {
                    CaptureResponse::Capture(Box::new(CaptureInfo::new(
                        capture, &recorded, MOST_QPS,
                    )))
                })
            }
        };
        answered.unwrap_or_else(refused)
    }

    fn describe(&self, from: (u32, u32), captures_from: u64) -> Result<CaptureResponse, String> {
        let described = self.all.with(PATIENCE, move |all| describe(all, from));
        let mut info = described.map_err(|error| error.to_string())?;
        let mut all = self.captures.all();
        all.retain(|(number, _)| *number >= captures_from);
        info.more_captures_from = all.get(MOST_CAPTURES).map(|(number, _)| *number);
        all.truncate(MOST_CAPTURES);
        let capture = |(number, recorded): &(u64, _)| CaptureInfo::new(*number, recorded, 0);
        info.captures = all.iter().map(capture).collect();
        Ok(CaptureResponse::Program(Box::new(info)))
    }

    fn messages(&self, (adapter, qpn): (u32, u32), from: u64) -> Result<CaptureResponse, String> {
        let find = move |all: &mut T| {
            let hca = all.engine(adapter)?;
            hca.find_qp(Qpn::truncated(qpn)).and_then(|qp| hca.messages(qp))
        };
        let ring = self.all.with(PATIENCE, find).map_err(|error| error.to_string())?;
        let ring = ring.ok_or_else(|| format!("there is no queue pair {qpn:#08x}"))?;
        let (blocks, _) = ring.since(from);
        let skipped = blocks.len().saturating_sub(MOST_MESSAGES);
        Ok(CaptureResponse::Messages(blocks[skipped..].iter().map(MessageInfo::from).collect()))
    }

    fn start(&self, start: &Start, files: Vec<OwnedFd>) -> Result<CaptureResponse, String> {
        if start.version != VERSION {
            return Err(format!(
                "the request has version {}, this program has version {VERSION}",
                start.version
            ));
        }
        let target = match (&start.path, files.into_iter().next()) {
            (Some(path), None) if start.rotation.happens() => {
                Target::Files(PathBuf::from(path), start.rotation)
            }
            (Some(path), None) => Target::File(PathBuf::from(path)),
            (None, Some(file)) => Target::Stream(file),
            _ => return Err("expected a path or an open file".to_owned()),
        };
        let options = CaptureOptions {
            target,
            adapters: start.adapters.clone(),
            selection: Selection::from(start),
            autostop: start.autostop,
            keep: start.keep,
        };
        let capture = self.captures.start(options).map_err(|error| error.to_string())?;
        let mut answer = self.status(capture)?;
        if let CaptureResponse::Capture(info) = &mut answer {
            info.waits = self.captures.waits(capture);
        }
        Ok(answer)
    }

    fn status(&self, capture: u64) -> Result<CaptureResponse, String> {
        let recorded = self.captures.recorded(capture);
        let recorded = recorded.ok_or_else(|| format!("there is no capture {capture}"))?;
        Ok(CaptureResponse::Capture(Box::new(CaptureInfo::new(capture, &recorded, MOST_QPS))))
    }
}

/// Returns the HCAs of a program with their queue pairs, beginning with the given HCA and QPN, until the response is
/// full.
fn describe<T: HcaOwner>(all: &mut T, (adapter, qpn): (u32, u32)) -> ProgramInfo {
    let (mut adapters, mut count, mut more_from) = (Vec::new(), 0, None);
    let (mut next, mut from) = (all.next_adapter(adapter), qpn);
    while let Some(number) = next {
        if number != adapter {
            from = 0;
        }
        if count == MOST_QPS || adapters.len() == MOST_ADAPTERS {
            more_from = Some((number, from));
            break;
        }
        let Some(mut info) = all.describe(number) else { break };
        let more = describe_qps(all, &mut info, from, MOST_QPS - count);
        count += info.qps.len();
        adapters.push(info);
        if let Some(more) = more {
            more_from = Some((number, more));
            break;
        }
        next = number.checked_add(1).and_then(|from| all.next_adapter(from));
    }
    ProgramInfo {
        pid: std::process::id(),
        command: command(),
        adapters,
        more_from,
        captures: Vec::new(),
        more_captures_from: None,
    }
}

/// Adds to `info` at most `most` queue pairs of its HCA, beginning with number `from`; returns the number of the first
/// queue pair that did not fit.
fn describe_qps<T: HcaOwner>(
    all: &mut T,
    info: &mut AdapterInfo,
    from: u32,
    most: usize,
) -> Option<u32> {
    let hca = all.engine(info.adapter)?;
    let mut numbers: Vec<_> = hca.queue_pairs().filter(|(_, it)| it.get() >= from).collect();
    numbers.sort_by_key(|(_, number)| number.get());
    let more_from = numbers.get(most).map(|(_, number)| number.get());
    numbers.truncate(most);
    let describe = |&(qp, number): &(ib_hca::QpId, Qpn)| {
        let (_, state, attributes) = hca.query_qp(qp)?;
        let is_connected = matches!(state, QpState::Rtr | QpState::Rts | QpState::Sqd)
            && attributes.dest_qp_num.get() != 0;
        let peer = || match attributes.route.is_global {
            true => address_of(attributes.route.destination).to_string(),
            false => format!("lid {}", attributes.route.dlid),
        };
        Some(QpInfo {
            qpn: number.get(),
            kind: format!("{:?}", hca.qp_type(qp)?).to_uppercase(),
            state: format!("{state:?}").to_uppercase(),
            peer: is_connected.then(peer),
            peer_qpn: is_connected.then(|| attributes.dest_qp_num.get()),
            service_id: hca.service(qp),
            messages: hca.messages(qp)?.ended(),
            captured: hca.is_traced(qp),
        })
    };
    info.qps.extend(numbers.iter().filter_map(describe));
    more_from
}

/// Returns the program's command line, truncated to the maximum length. Each control character becomes `?`.
fn command() -> String {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let line = words.collect::<Vec<_>>().join(" ");
    let end = line.floor_char_boundary(LONGEST_COMMAND);
    line[..end].replace(char::is_control, "?")
}
