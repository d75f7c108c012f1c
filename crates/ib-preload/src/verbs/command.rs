//! Decodes the commands that a program writes to a uverbs device. Sans-IO.
//!
//! ```text
//! legacy:    command:32 in_words:16 out_words:16 | [response:64] fields | driver data
//! extended:  command:32 in_words:16 out_words:16 | response:64 provider_in:16 provider_out:16 0:32 | fields | driver data
//! ```
//! The word counts have units of 4 bytes in legacy commands and of 8 bytes in extended ones. Checks
//! and their error numbers follow the kernel's `uverbs_main.c`.

use super::abi::{
    AllocMw, CommandHeader, CreateAh, CreateCq, CreateCqEx, CreateQp, CreateQpEx, CreateSrq,
    CreateXsrq, ExtendedHeader, Field, Handle, MapInfo, ModifyQp, ModifySrq, Multicast, PostSend,
    QueryPort, QueryQp, RegMr, ReqNotifyCq, ReregMr, ResizeCq,
};
use crate::errno::Errno;
use crate::layout;

/// Maximum size of a command in bytes: that of an extended command, whose sizes are 16-bit numbers of 8-byte words.
pub(super) const LONGEST: usize = CommandHeader::SIZE + ExtendedHeader::SIZE + 2 * 8 * 0xffff;

/// Flag by which extended commands are marked.
const EXTENDED: u32 = 0x8000_0000;

/// Bits of the command word that contain the command number.
const NUMBER: u32 = 0xff;

/// SRQ type `IB_SRQT_BASIC`. Other types need XRC or tag matching.
const SRQ_BASIC: u32 = 0;

/// A decoded command with its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    GetContext,
    QueryDevice,
    QueryDeviceEx,
    QueryPort(QueryPort),
    AllocPd,
    DeallocPd(u32),
    CreateAh(CreateAh),
    DestroyAh(u32),
    RegMr(RegMr),
    ReregMr(ReregMr),
    DeregMr(u32),
    AllocMw(AllocMw),
    DeallocMw(u32),
    CreateCompChannel,
    CreateCq(CreateCq),
    CreateCqEx(CreateCqEx),
    ResizeCq(ResizeCq),
    ReqNotifyCq(ReqNotifyCq),
    DestroyCq(u32),
    CreateQp(CreateQp),
    CreateQpEx(CreateQp, CreateQpEx),
    QueryQp(QueryQp),
    ModifyQp(ModifyQp),
    DestroyQp(u32),
    PostSend(PostSend),
    AttachMcast(Multicast),
    DetachMcast(Multicast),
    CreateSrq(CreateSrq),
    ModifySrq(ModifySrq),
    QuerySrq(u32),
    DestroySrq(u32),
}

impl Request {
    /// Returns true if the command destroys an object.
    pub(super) const fn is_destroy(&self) -> bool {
        matches!(
            self,
            Self::DeallocPd(_)
                | Self::DestroyAh(_)
                | Self::DeregMr(_)
                | Self::DeallocMw(_)
                | Self::DestroyCq(_)
                | Self::DestroyQp(_)
                | Self::DestroySrq(_)
        )
    }

    /// Returns the request that destroys the object `handle`, if `self` is a request that has created this object.
    pub(super) const fn undo(&self, handle: u32) -> Option<Self> {
        Some(match self {
            Self::AllocPd => Self::DeallocPd(handle),
            Self::CreateAh(_) => Self::DestroyAh(handle),
            Self::RegMr(_) => Self::DeregMr(handle),
            Self::AllocMw(_) => Self::DeallocMw(handle),
            Self::CreateCq(_) | Self::CreateCqEx(_) => Self::DestroyCq(handle),
            Self::CreateQp(_) | Self::CreateQpEx(..) => Self::DestroyQp(handle),
            Self::CreateSrq(_) => Self::DestroySrq(handle),
            _ => return None,
        })
    }
}

/// Buffer of the program into which the response is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ResponseBuffer {
    /// Address of the buffer; 0 if the command has no response.
    pub(super) address: u64,
    /// Size in bytes of the part for the response of the uverbs core.
    pub(super) core: usize,
    /// Size in bytes of the part for the response of the driver. It is 0 for legacy commands: `core` is
    /// then the size of the whole buffer.
    pub(super) driver: usize,
}

/// A command and the buffer for its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) request: Request,
    pub(super) response: ResponseBuffer,
}

impl Command {
    /// Decodes a command.
    ///
    /// # Errors
    /// Fails with `EINVAL` if sizes contradict each other or the command number is unknown. Fails
    /// with `ENOSPC` if the response does not fit, and with `EOPNOTSUPP` for commands that the
    /// device does not support.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Errno> {
        let header: CommandHeader = take(bytes, 0)?;
        if header.command & EXTENDED == 0 {
            Self::decode_legacy(header, bytes)
        } else {
            Self::decode_extended(header, bytes)
        }
    }

    fn decode_legacy(header: CommandHeader, bytes: &[u8]) -> Result<Self, Errno> {
        if header.command & !NUMBER != 0 || bytes.len() != usize::from(header.in_words) * 4 {
            return Err(Errno::INVALID);
        }
        // Offsets of the fields: `PLAIN` in commands without a response. In commands with a response, the fields begin
        // at `ANSWERED`, after the address of the response.
        const PLAIN: usize = 8;
        const ANSWERED: usize = 16;
        let (request, least) = match header.command {
            0 => (Request::GetContext, 8),
            1 => (Request::QueryDevice, 176),
            2 => (Request::QueryPort(take(bytes, ANSWERED)?), 40),
            3 => (Request::AllocPd, 4),
            4 => (Request::DeallocPd(take(bytes, PLAIN)?), 0),
            5 => (Request::CreateAh(take(bytes, ANSWERED)?), 4),
            8 => (Request::DestroyAh(take(bytes, PLAIN)?), 0),
            9 => (Request::RegMr(take(bytes, ANSWERED)?), 12),
            11 => (Request::ReregMr(take(bytes, ANSWERED)?), 8),
            13 => (Request::DeregMr(take(bytes, PLAIN)?), 0),
            14 => (Request::AllocMw(take(bytes, ANSWERED)?), 8),
            16 => (Request::DeallocMw(take(bytes, PLAIN)?), 0),
            17 => (Request::CreateCompChannel, 4),
            18 => (Request::CreateCq(take(bytes, ANSWERED)?), 8),
            19 => (Request::ResizeCq(take(bytes, ANSWERED)?), 8),
            20 => (Request::DestroyCq(take::<Handle>(bytes, ANSWERED)?.handle), 8),
            23 => (Request::ReqNotifyCq(take(bytes, PLAIN)?), 0),
            24 => (Request::CreateQp(take(bytes, ANSWERED)?), 32),
            25 => (Request::QueryQp(take(bytes, ANSWERED)?), 128),
            26 => (Request::ModifyQp(take(bytes, PLAIN)?), 0),
            27 => (Request::DestroyQp(take::<Handle>(bytes, ANSWERED)?.handle), 4),
            28 => (Request::PostSend(take(bytes, ANSWERED)?), 4),
            30 => (Request::AttachMcast(take(bytes, PLAIN)?), 0),
            31 => (Request::DetachMcast(take(bytes, PLAIN)?), 0),
            32 => (Request::CreateSrq(take(bytes, ANSWERED)?), 16),
            33 => (Request::ModifySrq(take(bytes, PLAIN)?), 0),
            34 => (Request::QuerySrq(take::<Handle>(bytes, ANSWERED)?.handle), 16),
            35 => (Request::DestroySrq(take::<Handle>(bytes, ANSWERED)?.handle), 4),
            39 => {
                let xsrq: CreateXsrq = take(bytes, ANSWERED)?;
                if xsrq.srq_type != SRQ_BASIC {
                    return Err(Errno::NOT_SUPPORTED);
                }
                let CreateXsrq { user_handle, pd_handle, max_wr, max_sge, srq_limit, .. } = xsrq;
                let srq = CreateSrq { user_handle, pd_handle, max_wr, max_sge, srq_limit };
                (Request::CreateSrq(srq), 16)
            }
            // The other commands from MODIFY_AH to OPEN_QP are refused: XRC, and operations that the
            // rxe provider performs in its rings.
            6..=40 => return Err(Errno::NOT_SUPPORTED),
            _ => return Err(Errno::INVALID),
        };
        let core = usize::from(header.out_words) * 4;
        if core < least {
            return Err(Errno::NO_SPACE);
        }
        let response = match request {
            // The driver data of MODIFY_SRQ is the address of the buffer for the location of the new ring.
            Request::ModifySrq(_) => {
                let address = take(bytes, PLAIN + ModifySrq::SIZE).unwrap_or(0);
                ResponseBuffer { address, core: MapInfo::SIZE, driver: 0 }
            }
            _ if least == 0 => ResponseBuffer { address: 0, core, driver: 0 },
            _ => ResponseBuffer { address: take(bytes, PLAIN)?, core, driver: 0 },
        };
        Ok(Self { request, response })
    }

    fn decode_extended(header: CommandHeader, bytes: &[u8]) -> Result<Self, Errno> {
        const FIELDS: usize = CommandHeader::SIZE + ExtendedHeader::SIZE;
        let extended: ExtendedHeader = take(bytes, CommandHeader::SIZE)?;
        let words = usize::from(header.in_words) + usize::from(extended.provider_in_words);
        if header.command & !(NUMBER | EXTENDED) != 0
            || bytes.len() != FIELDS + words * 8
            || extended.reserved != 0
        {
            return Err(Errno::INVALID);
        }
        let core = usize::from(header.out_words) * 8;
        let driver = usize::from(extended.provider_out_words) * 8;
        if (core + driver > 0) != (extended.response != 0) {
            return Err(Errno::INVALID);
        }
        // A program that was compiled with newer headers may append fields. The device reads only
        // the fields that it knows.
        let fields = &bytes[..FIELDS + usize::from(header.in_words) * 8];
        let (request, least) = match header.command & NUMBER {
            1 => {
                let _comp_mask: u32 = take(fields, FIELDS)?;
                (Request::QueryDeviceEx, 8)
            }
            18 => (Request::CreateCqEx(take(fields, FIELDS)?), 16),
            24 => {
                let more = take(fields, FIELDS + CreateQp::SIZE)?;
                (Request::CreateQpEx(take(fields, FIELDS)?, more), 40)
            }
            26 => (Request::ModifyQp(take(fields, FIELDS)?), 0),
            _ => return Err(Errno::NOT_SUPPORTED),
        };
        if core < least {
            return Err(Errno::NO_SPACE);
        }
        let address = extended.response;
        Ok(Self { request, response: ResponseBuffer { address, core, driver } })
    }
}

/// Reads the structure at an offset. Fails with `EINVAL` if the bytes end before the structure
/// does.
fn take<T: Field>(bytes: &[u8], at: usize) -> Result<T, Errno> {
    layout::take(bytes, at).ok_or(Errno::INVALID)
}

#[cfg(test)]
mod tests;
