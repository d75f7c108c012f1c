//! Exported disks of an RNBD server. Any driver of HCAs that implements [`Adapters`] can serve them.

use std::collections::VecDeque;
use std::sync::Arc;

use ib_block::{Command, Errno, Operation};
use ib_rnbd::{Export, ExportError, ExportId, Response, Server as Rnbd, ServerCommand};
use ib_rtrs::{Adapters, Server as Rtrs, ServerRequest, ServerRequestId, SessionId, StoreId};
use ib_types::Instant;
use ib_types::text::escaped;
use ib_wire::rnbd::Message;
use slab::Slab;

use super::BlockEvent;
use crate::disk::{Disk, Job};
use ib_os::poll::Interest;

/// Maximum size of an RNBD message in bytes. Further bytes are ignored.
const MAX_HEADER: usize = 512;

/// Counts of the commands for a device, by operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounts {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Discards, including secure erases.
    pub discards: u64,
}

impl DeviceCounts {
    const fn count(&mut self, operation: Operation) {
        let counter = match operation {
            Operation::Read => &mut self.reads,
            Operation::Write | Operation::WriteZeroes => &mut self.writes,
            Operation::Flush => &mut self.flushes,
            Operation::Discard | Operation::SecureErase => &mut self.discards,
        };
        *counter += 1;
    }
}

/// An exported disk.
struct ExportedDisk {
    disk: Disk,
    counts: DeviceCounts,
    /// For a disk in memory: the ID by which the RTRS server knows the disk's memory, from which it sends
    /// read data directly. `None` for other disks.
    store: Option<StoreId>,
}

/// Exported disks, and the commands that clients have sent to them.
pub struct Exports {
    rnbd: Rnbd<SessionId>,
    disks: Vec<ExportedDisk>,
    /// Commands in flight at the disks.
    in_flight: Slab<(ServerRequestId, ServerCommand)>,
    events: VecDeque<BlockEvent>,
    header: Vec<u8>,
}

impl Exports {
    /// Creates an empty set of exports. `number` must be random, because a changed number shows clients that
    /// the server was restarted.
    pub fn new(number: u64) -> Self {
        Self {
            rnbd: Rnbd::new(number),
            disks: Vec::new(),
            in_flight: Slab::new(),
            events: VecDeque::new(),
            header: vec![0; MAX_HEADER],
        }
    }

    /// Exports a disk.
    pub fn offer(
        &mut self,
        rtrs: &mut Rtrs,
        name: &str,
        disk: Disk,
    ) -> Result<ExportId, ExportError> {
        let (name, geometry, origin) = (name.to_owned(), *disk.geometry(), disk.origin());
        let writers = disk.kept_writers();
        let id = self.rnbd.offer(Export { name, geometry, origin, writers })?;
        let store = disk.memory().map(|memory| rtrs.add_store(Arc::clone(memory)));
        self.disks.push(ExportedDisk { disk, counts: DeviceCounts::default(), store });
        Ok(id)
    }

    /// Handles requests of clients, and responds to requests that disks have completed. Returns true if there
    /// was any progress.
    pub fn work(&mut self, now: Instant, rtrs: &mut Rtrs, cx: &mut impl Adapters) -> bool {
        let mut moved = false;
        while let Some(request) = rtrs.poll_request() {
            moved = true;
            self.take(now, rtrs, cx, &request);
        }
        for offered in &mut self.disks {
            offered.disk.flush();
        }
        self.answer(now, rtrs, cx) | moved
    }

    fn take(
        &mut self,
        now: Instant,
        rtrs: &mut Rtrs,
        cx: &mut impl Adapters,
        request: &ServerRequest,
    ) {
        let Some(memory) = rtrs.memory(request.session).cloned() else { return };
        let length = (request.header_length as usize).min(MAX_HEADER);
        let header = &mut self.header[..length];
        let data = (request.direction, request.data_length);
        let answer = match memory.read(request.header_offset, header) {
            Ok(()) => self.rnbd.handle(request.session, data, header),
            Err(_) => Response::Immediate(Errno::EINVAL, Vec::new()),
        };
        while let Some((id, writers)) = self.rnbd.poll_writers() {
            if let Err(errno) = self.disks[id.0 as usize].disk.keep_writers(&writers) {
                self.rnbd.stop_storing_writers(id);
                let device = self.rnbd.export(id).map(|export| export.name.clone());
                let device = device.unwrap_or_default();
                self.events.push_back(BlockEvent::Unkept { device, errno });
            }
        }
        match answer {
            Response::Immediate(errno, bytes) => {
                if !errno.is_ok() {
                    let name = rtrs.name(request.session).unwrap_or_default();
                    let session = escaped(&String::from_utf8_lossy(name)).to_string();
                    let what = describe(&self.header[..length]);
                    self.events.push_back(BlockEvent::Refused { session, what, errno });
                }
                let fits = bytes.len() <= request.data_length as usize
                    && memory.write(request.data_offset, &bytes).is_ok();
                let errno = if fits { errno } else { Errno::EINVAL };
                rtrs.complete(now, cx, request.id, errno, bytes.len() as u32);
            }
            Response::Execute(it) => {
                let offered = &mut self.disks[it.export.0 as usize];
                let Command { operation, offset: place, length, .. } = it.command;
                offered.counts.count(operation);
                if let (Operation::Read, Some(store)) = (operation, offered.store) {
                    self.rnbd.done(&it);
                    let found = (store, place as usize);
                    rtrs.complete_from(now, cx, request.id, found, length as u32);
                    return;
                }
                let id = self.in_flight.insert((request.id, it)) as u64;
                let (command, offset) = (it.command, request.data_offset);
                offered.disk.submit(Job { id, command, memory, offset });
            }
        }
    }

    /// Responds to commands that disks have completed. Returns true if there were any.
    pub fn answer(&mut self, now: Instant, rtrs: &mut Rtrs, cx: &mut impl Adapters) -> bool {
        let mut moved = false;
        for offered in &mut self.disks {
            while let Some((id, errno)) = offered.disk.poll() {
                moved = true;
                let (request, it) = self.in_flight.remove(id as usize);
                self.rnbd.done(&it);
                if !errno.is_ok() {
                    let device = self.rnbd.export(it.export).map(|export| export.name.clone());
                    self.events.push_back(BlockEvent::Failed {
                        device: device.unwrap_or_default(),
                        operation: it.command.operation,
                        errno,
                    });
                }
                let reads = it.command.operation == Operation::Read && errno.is_ok();
                let length = if reads { it.command.length as u32 } else { 0 };
                rtrs.complete(now, cx, request, errno, length);
            }
        }
        moved
    }

    /// Returns the name of each device and the counts of its commands.
    pub fn counts(&self) -> impl Iterator<Item = (&str, DeviceCounts)> {
        (0..).zip(&self.disks).filter_map(|(number, offered)| {
            let export = self.rnbd.export(ExportId(number))?;
            Some((&export.name[..], offered.counts))
        })
    }

    /// Ends a session, and closes the devices that it has opened.
    pub fn end(&mut self, session: SessionId) {
        self.rnbd.end(session);
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<BlockEvent> {
        self.events.pop_front()
    }

    /// Returns the descriptors that become readable when disks have completed io_uring jobs.
    pub fn bells(&self) -> impl Iterator<Item = Interest<'_>> {
        self.disks.iter().filter_map(|offered| offered.disk.bell()).map(Interest::to_read)
    }
}

/// Returns a description of a refused message.
fn describe(header: &[u8]) -> String {
    match Message::parse(header) {
        Ok(Message::Open(open)) => format!("device {:?}", String::from_utf8_lossy(open.name())),
        Ok(Message::Io(io)) => format!("{:?} of device {}", io.rw.operation(), io.device_id),
        Ok(Message::Session(it)) => format!("version {}", it.version),
        _ => "an invalid message".to_owned(),
    }
}
