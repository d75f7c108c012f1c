//! The server: memory as a block device.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ib_hca::Memory;
use ib_net::clock;
use ib_net::device::{Device, DeviceEvent, DeviceOptions};
use ib_rtrs::{Direction, Errno, Server, ServerConfig, ServerEvent, ServerRequest};
use ib_wire::rnbd::{Io, Message, MessageType, OpenResponse, Operation, Session};

use crate::{Done, say};

/// The only device.
const NAME: &[u8] = b"disk0";
const ID: u32 = 0;

pub(crate) fn run(address: IpAddr, megabytes: u64, rest: &[&str]) -> Done<()> {
    let (mut devices, adapter) = crate::open(address, true)?;
    let option = |name: &str| rest.contains(&name);
    let config = ServerConfig { always_invalidate: !option("keep"), ..ServerConfig::default() };
    let mut server = Server::new(config, ib_net::random()?);
    server.listen(&mut devices, adapter, 1234)?;
    for address in rest.iter().filter_map(|word| word.strip_prefix("also=")) {
        let other = devices.add(Device::open(DeviceOptions::new(address.parse()?))?);
        server.listen(&mut devices, other, 1234)?;
    }
    let disk = Memory::zeroed((megabytes << 20) as usize)?;
    say("READY");
    loop {
        let moved = devices.progress(|devices, adapter, event| {
            let now = clock::now();
            match event {
                DeviceEvent::Hca(event) => server.handle_hca(now, devices, 0, adapter, &event),
                DeviceEvent::Cm(event) => drop(server.handle_cm(now, devices, adapter, event)),
            }
        })?;
        server.handle_timeout(clock::now(), &mut devices);
        while let Some(request) = server.poll_request() {
            let Some(memory) = server.memory(request.session).map(Arc::clone) else { continue };
            let (errno, produced) = match serve(&memory, &disk, &request) {
                Ok(produced) => (Errno::OK, produced),
                Err(errno) => (errno, 0),
            };
            server.complete(clock::now(), &mut devices, request.id, errno, produced);
        }
        while let Some(event) = server.poll_event() {
            say(&match event {
                ServerEvent::SessionUp { name, .. } => {
                    format!("session {} is up", String::from_utf8_lossy(&name))
                }
                ServerEvent::PathDown { why, .. } => format!("a path is down: {why}"),
                other => format!("{other:?}"),
            });
        }
        if !moved {
            let until = clock::now() + Duration::from_secs(1);
            devices.wait(server.poll_timeout().map_or(until, |at| at.min(until)))?;
        }
    }
}

/// Does what is asked for; returns how many bytes are answered.
fn serve(memory: &Memory, disk: &Memory, request: &ServerRequest) -> Result<u32, Errno> {
    let header = memory.to_vec(request.header_offset, request.header_length as usize);
    let header = header.map_err(|_| Errno::EINVAL)?;
    let answer = |bytes: &[u8]| {
        let length = bytes.len().min(request.data_length as usize);
        memory.write(request.data_offset, &bytes[..length]).map_err(|_| Errno::EINVAL)?;
        Ok(length as u32)
    };
    match Message::parse(&header).map_err(|_| Errno::EINVAL)? {
        Message::Session(_) => {
            let message_type = MessageType::SESSION_RESPONSE;
            answer(&Session { message_type, version: 2 }.to_bytes())
        }
        Message::Open(open) if open.name() == NAME => answer(
            &OpenResponse {
                message_type: MessageType::OPEN_RESPONSE,
                device_id: ID,
                sectors: disk.len() as u64 / 512,
                max_hw_sectors: 248,
                physical_block_size: 512,
                logical_block_size: 512,
                max_segments: 31,
                ..OpenResponse::zeroed()
            }
            .to_bytes(),
        ),
        Message::Open(_) => Err(Errno::ENOENT),
        Message::Close(_) => Ok(0),
        Message::Io(io) => block(memory, disk, request, &io),
        _ => Err(Errno::EINVAL),
    }
}

fn block(memory: &Memory, disk: &Memory, request: &ServerRequest, io: &Io) -> Result<u32, Errno> {
    let at = usize::try_from(io.sector).ok().and_then(|it| it.checked_mul(512));
    let length = io.length as usize;
    match (io.rw.operation(), request.direction) {
        (Operation::FLUSH, _) => return Ok(0),
        (Operation::READ, Direction::Read) | (Operation::WRITE, Direction::Write) => {}
        _ => return Err(Errno::EOPNOTSUPP),
    }
    if io.device_id != ID {
        return Err(Errno::ENOTCONN);
    }
    if io.length > request.data_length {
        return Err(Errno::EINVAL);
    }
    let at = at.ok_or(Errno::EIO)?;
    let (from, to) = match request.direction {
        Direction::Read => ((disk, at), (memory, request.data_offset)),
        Direction::Write => ((memory, request.data_offset), (disk, at)),
    };
    let bytes = from.0.to_vec(from.1, length).map_err(|_| Errno::EIO)?;
    to.0.write(to.1, &bytes).map_err(|_| Errno::EIO)?;
    Ok(if request.direction == Direction::Read { io.length } else { 0 })
}
