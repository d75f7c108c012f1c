//! Decodes the commands that a program writes to an `rdma_cm` device. Sans-IO.
//!
//! ```text
//! command:32 input:16 output:16 | fields
//! ```
//! `input` is the size of the fields in bytes, and `output` the size of the buffer for the response.

use super::abi::{
    Accept, AddressResponse, Bind, BindIp, Connect, CreateId, DestroyId, Ece, Header, InitQpAttr,
    JoinIpMcast, JoinMcast, Listen, MigrateId, Notify, PathResponse, QpAttributes, Query, Reject,
    ResolveAddr, ResolveIp, ResolveRoute, RouteResponse, SHORT_EVENT, SetOption,
};
use crate::errno::Errno;
use crate::layout::{Field, take};

/// A decoded command with its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    CreateId(CreateId),
    DestroyId(u32),
    BindIp(BindIp),
    Bind(Bind),
    ResolveIp(ResolveIp),
    ResolveAddr(ResolveAddr),
    ResolveRoute(ResolveRoute),
    QueryRoute(u32),
    QueryAddress(u32),
    QueryPath(u32),
    QueryGid(u32),
    Connect(Connect),
    Listen(Listen),
    Accept(Accept),
    Reject(Reject),
    Disconnect(u32),
    InitQpAttr(InitQpAttr),
    GetEvent,
    SetOption(SetOption),
    Notify(Notify),
    JoinIpMcast(JoinIpMcast),
    JoinMcast(JoinMcast),
    LeaveMcast(u32),
    MigrateId(MigrateId),
}

/// A command and the buffer for its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) request: Request,
    /// Address of the buffer of the program into which the response is written; 0 if the command has no response.
    pub(crate) response: u64,
    /// Size of the buffer in bytes.
    pub(crate) room: usize,
}

impl Command {
    /// Decodes a command.
    ///
    /// # Errors
    /// Fails with `EINVAL` if fields are missing, or if the command number is unknown. Fails with `ENOSPC` if the
    /// response does not fit. Fails with `ENOSYS` for commands that the kernel does not implement, and with
    /// `EOPNOTSUPP` for connections with ECE.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Errno> {
        let header: Header = take(bytes, 0).ok_or(Errno::INVALID)?;
        let fields = bytes.get(Header::SIZE..Header::SIZE + usize::from(header.input));
        let fields = fields.ok_or(Errno::INVALID)?;
        let (request, response, least) = match header.command {
            0 => {
                let create: CreateId = read(fields)?;
                (Request::CreateId(create), create.response, u32::SIZE)
            }
            1 => {
                let destroy: DestroyId = read(fields)?;
                (Request::DestroyId(destroy.id), destroy.response, u32::SIZE)
            }
            2 => (Request::BindIp(read(fields)?), 0, 0),
            3 => (Request::ResolveIp(read(fields)?), 0, 0),
            4 => (Request::ResolveRoute(read(fields)?), 0, 0),
            5 => {
                let query: Query = read(fields)?;
                (Request::QueryRoute(query.id), query.response, RouteResponse::SIZE)
            }
            6 => {
                refuse_ece(fields, Connect::SIZE)?;
                (Request::Connect(read(fields)?), 0, 0)
            }
            7 => (Request::Listen(read(fields)?), 0, 0),
            8 => {
                refuse_ece(fields, Accept::SIZE)?;
                (Request::Accept(read(fields)?), 0, 0)
            }
            9 => (Request::Reject(read(fields)?), 0, 0),
            10 => (Request::Disconnect(read(fields)?), 0, 0),
            11 => {
                let init: InitQpAttr = read(fields)?;
                (Request::InitQpAttr(init), init.response, QpAttributes::SIZE)
            }
            12 => (Request::GetEvent, read(fields)?, SHORT_EVENT),
            14 => (Request::SetOption(read(fields)?), 0, 0),
            15 => (Request::Notify(read(fields)?), 0, 0),
            16 => {
                let join: JoinIpMcast = read(fields)?;
                (Request::JoinIpMcast(join), join.response, u32::SIZE)
            }
            17 => {
                let leave: DestroyId = read(fields)?;
                (Request::LeaveMcast(leave.id), leave.response, u32::SIZE)
            }
            18 => {
                let migrate: MigrateId = read(fields)?;
                (Request::MigrateId(migrate), migrate.response, u32::SIZE)
            }
            19 => {
                let query: Query = read(fields)?;
                let (request, least) = match query.option {
                    0 => (Request::QueryAddress(query.id), AddressResponse::SIZE),
                    1 => (Request::QueryPath(query.id), PathResponse::SIZE),
                    2 => (Request::QueryGid(query.id), AddressResponse::SIZE),
                    _ => return Err(Errno::NO_SYSTEM_CALL),
                };
                (request, query.response, least)
            }
            20 => (Request::Bind(read(fields)?), 0, 0),
            21 => (Request::ResolveAddr(read(fields)?), 0, 0),
            22 => {
                let join: JoinMcast = read(fields)?;
                (Request::JoinMcast(join), join.response, u32::SIZE)
            }
            // GET_OPTION, which has no implementation in the kernel.
            13 => return Err(Errno::NO_SYSTEM_CALL),
            _ => return Err(Errno::INVALID),
        };
        let room = usize::from(header.output);
        if room < least {
            return Err(Errno::NO_SPACE);
        }
        Ok(Self { request, response, room })
    }
}

/// Reads the fields of a command. A program that was compiled with newer headers may append fields.
fn read<T: Field>(fields: &[u8]) -> Result<T, Errno> {
    take(fields, 0).ok_or(Errno::INVALID)
}

/// Refuses a command whose ECE at offset `at` has a vendor ID. The rxe provider does not support ECE.
fn refuse_ece(fields: &[u8], at: usize) -> Result<(), Errno> {
    match take::<Ece>(fields, at) {
        Some(ece) if ece.vendor_id != 0 => Err(Errno::NOT_SUPPORTED),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
