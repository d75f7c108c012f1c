//! Objects of the contexts of a process, by the handles that the program uses.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use ib_hca::{AccessFlags, AhId, CqId, MrId, MwId, PdId, QpCap, QpId, QpType, SrqId, WcStatus};
use ib_types::Qpn;

use super::abi::QpDestination;
use super::events::EventFile;
use super::ring::{Ring, RingFile};
use crate::cm::Manager;
use crate::errno::Errno;

/// Number of an open file of the program: a context, an event file, or a channel of `rdma_cm`.
pub(super) type FileId = u64;

/// Objects of one kind, by handle.
pub(super) struct Table<T> {
    objects: BTreeMap<u32, (FileId, T)>,
    last: u32,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), last: 0 }
    }
}

impl<T> Table<T> {
    /// Adds an object of a context. Returns the object's handle, which is never 0.
    pub(super) fn insert(&mut self, context: FileId, object: T) -> u32 {
        loop {
            self.last = self.last.wrapping_add(1);
            if self.last != 0 && !self.objects.contains_key(&self.last) {
                self.objects.insert(self.last, (context, object));
                return self.last;
            }
        }
    }

    /// Returns the object with this handle, which must belong to the context.
    ///
    /// # Errors
    /// Fails with `EINVAL` if the context has no object with this handle.
    pub(super) fn of(&mut self, context: FileId, handle: u32) -> Result<&mut T, Errno> {
        match self.objects.get_mut(&handle) {
            Some((owner, object)) if *owner == context => Ok(object),
            _ => Err(Errno::INVALID),
        }
    }

    /// Returns the object of the context with this handle, which a command is about to destroy.
    ///
    /// # Errors
    /// Fails with `ENOENT` if the context has no object with this handle, like the commands of Linux.
    pub(super) fn existing(&mut self, context: FileId, handle: u32) -> Result<&mut T, Errno> {
        self.of(context, handle).map_err(|_| Errno::NO_ENTRY)
    }

    /// Returns the object with this handle, whichever context it belongs to.
    pub(super) fn get_mut(&mut self, handle: u32) -> Option<&mut T> {
        self.objects.get_mut(&handle).map(|(_, object)| object)
    }

    /// Removes the object with this handle and returns it.
    pub(super) fn remove(&mut self, handle: u32) -> Option<T> {
        self.objects.remove(&handle).map(|(_, object)| object)
    }

    /// Returns the handles of the objects of a context.
    pub(super) fn handles(&self, context: FileId) -> Vec<u32> {
        let own = self.objects.iter().filter(|(_, (owner, _))| *owner == context);
        own.map(|(&handle, _)| handle).collect()
    }

    /// Iterates over all objects. Returns the handle, the context and the object.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, FileId, &mut T)> {
        self.objects.iter_mut().map(|(&handle, (context, object))| (handle, *context, object))
    }
}

/// A memory region.
pub(super) struct Mr {
    pub(super) id: MrId,
    /// Addresses of the region in the process.
    pub(super) range: Range<usize>,
    pub(super) access: AccessFlags,
}

/// A completion queue.
pub(super) struct Cq {
    pub(super) id: CqId,
    pub(super) ring: Ring,
    pub(super) channel: Option<FileId>,
    /// Handle by which the program identifies the CQ in events.
    pub(super) user_handle: u64,
    /// True if the next completion causes an event.
    pub(super) is_armed: bool,
    /// True if the next solicited or failed completion causes an event.
    pub(super) is_armed_solicited: bool,
    pub(super) has_overrun: bool,
    pub(super) comp_events: u32,
    pub(super) async_events: u32,
}

/// A send request that was posted to the engine and has not completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posted {
    pub(super) wr_id: u64,
    pub(super) is_signaled: bool,
}

/// A queue pair.
pub(super) struct Qp {
    pub(super) id: QpId,
    pub(super) number: Qpn,
    pub(super) qp_type: QpType,
    pub(super) cap: QpCap,
    pub(super) send_ring: Ring,
    /// Ring of receives; `None` if the queue pair takes receives from an SRQ.
    pub(super) recv_ring: Option<Ring>,
    pub(super) send_cq: u32,
    pub(super) recv_cq: u32,
    pub(super) user_handle: u64,
    /// True if all send requests are signaled (`sq_sig_all`).
    pub(super) signals_all: bool,
    pub(super) posted: VecDeque<Posted>,
    /// ID and status of a send request that the engine has refused. The request completes after all
    /// requests in `posted`.
    pub(super) refused: Option<(u64, WcStatus)>,
    /// Path that MODIFY_QP has set, which QUERY_QP returns.
    pub(super) path: QpDestination,
    pub(super) p_key_index: u16,
    pub(super) events: u32,
}

/// A shared receive queue.
pub(super) struct Srq {
    pub(super) id: SrqId,
    pub(super) ring: Ring,
    pub(super) user_handle: u64,
    pub(super) max_wr: u32,
    pub(super) max_sge: u32,
    pub(super) limit: u32,
    pub(super) events: u32,
}

/// An open device file.
pub(super) struct Context {
    pub(super) rings: RingFile,
    /// File of asynchronous events; `None` before GET_CONTEXT.
    pub(super) async_file: Option<FileId>,
}

/// All objects of a process.
#[derive(Default)]
pub(super) struct Objects {
    pub(super) contexts: BTreeMap<FileId, Context>,
    pub(super) event_files: BTreeMap<FileId, EventFile>,
    pub(super) pds: Table<PdId>,
    pub(super) mrs: Table<Mr>,
    pub(super) mws: Table<MwId>,
    pub(super) ahs: Table<AhId>,
    pub(super) cqs: Table<Cq>,
    pub(super) qps: Table<Qp>,
    pub(super) srqs: Table<Srq>,
    /// Channels and IDs of `rdma_cm`.
    pub(super) cm: Manager,
    /// Handles of queue pairs, by queue pair number.
    pub(super) by_number: BTreeMap<u32, u32>,
}
