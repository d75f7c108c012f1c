//! Dissects RTRS and RNBD messages on connections that have negotiated RTRS.
//!
//! A client sends a request as a WRITE to a chunk of the server: first the data, then the request itself. The
//! immediate data contain the chunk and the offset of the request. A server writes read data to the client's buffer.
//! The immediate data of the response contain the chunk and the status.
//!
//! If a message has several packets, part of the message is stored until its last packet: the end of a WRITE, or the
//! start of a SEND.

use std::collections::VecDeque;

use ib_types::Psn;
use ib_wire::packet::{Operation, Packet, Position};
use ib_wire::rnbd;
use ib_wire::rtrs::message::{InfoHeader, ReadFlags};
use ib_wire::rtrs::{
    ConnectFlags, ConnectRequest, ConnectResponse, Descriptor, Immediate, ImmediateKind, Message,
};

use super::fields::{Fields, hex, words};
use super::layer::Layer;

/// Maximum number of bytes that the dissector stores of a message. Longer info responses are therefore decoded only in
/// part.
const KEPT: usize = 512;

/// Maximum number of stored reads that are outstanding and whose response is an RNBD message, not device data.
const READS: usize = 32;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// State of an RTRS connection.
#[derive(Debug)]
pub(super) struct Connection {
    /// Number of the connection within its RTRS path; `None` if the REQ was not captured.
    number: Option<u16>,
    queue_depth: u16,
    /// The incomplete message to the client, and the incomplete message to the server.
    messages: [IncompleteMessage; 2],
    /// Client buffers to which the server will write an RNBD message, each with the number of the
    /// chunk that contains the request.
    reads: VecDeque<(u32, Descriptor)>,
}

/// An RTRS connection, and its end that receives the dissected packet.
pub(super) struct ConnectionSide<'a> {
    pub(super) side: Side,
    pub(super) connection: &'a mut Connection,
}

/// A message whose last packet was not captured yet.
#[derive(Debug, Default)]
struct IncompleteMessage {
    /// PSN of the next packet; `None` if there is no message or a packet is missing.
    next: Option<Psn>,
    /// The stored part of the message: the start of a SEND, or the end of a WRITE.
    bytes: Vec<u8>,
    /// Total payload length in bytes of the message's packets so far.
    length: usize,
    /// Remote address of a WRITE; `None` for a SEND.
    address: Option<u64>,
}

/// A complete message.
struct CompleteMessage {
    bytes: Vec<u8>,
    length: usize,
    address: Option<u64>,
}

impl Connection {
    pub(super) fn new(number: Option<u16>, response: &ConnectResponse) -> Self {
        let (queue_depth, messages, reads) =
            (response.queue_depth, Default::default(), VecDeque::new());
        Self { number, queue_depth, messages, reads }
    }
}

impl ConnectionSide<'_> {
    /// Returns the layer of the message that this packet completes, if any.
    pub(super) fn packet(mut self, packet: &Packet<'_>, kept: usize) -> Option<Layer> {
        let operation = packet.bth().opcode.operation()?;
        if operation.is_response() || operation == Operation::ReadRequest {
            return None;
        }
        let partial = &mut self.connection.messages[self.side as usize];
        let message = partial.take(packet, operation, kept);
        let immediate = packet.immdt().map(|immediate| Immediate(immediate.data));
        if !matches!(operation.position(), Position::Last | Position::Only) {
            return None;
        }
        let number = self.connection.number;
        let layer = match (self.side, immediate) {
            (_, Some(immediate)) => self.immediate(immediate, message.as_ref()),
            (_, None) if packet.ieth().is_some() => Some(Layer::new("rtrs", "invalidate")),
            (Side::Client, None) if message.as_ref().is_some_and(|it| it.address.is_some()) => {
                self.answer(message.as_ref()?)
            }
            (_, None) => information(&message?),
        };
        let mut layer = layer?;
        layer.fields.put("connection", number);
        Some(layer)
    }

    /// Returns the layer of the immediate data in the last packet of a message. `message` is the
    /// complete message, if it could be assembled.
    fn immediate(
        &mut self,
        immediate: Immediate,
        message: Option<&CompleteMessage>,
    ) -> Option<Layer> {
        let layer = match immediate.kind() {
            ImmediateKind::Request { payload } => self.request(payload, message),
            ImmediateKind::Response { has_invalidated, error, chunk } => {
                self.connection.reads.retain(|(known, _)| *known != chunk);
                let mut layer = Layer::new("rtrs", "response");
                layer.about = match error {
                    0 => format!("chunk {chunk}"),
                    _ => format!("chunk {chunk}, error {error}"),
                };
                layer.fields.put("chunk", chunk);
                layer.fields.put("error", error);
                layer.fields.put("has_invalidated", has_invalidated);
                let message = message.and_then(|message| Message::parse(&message.bytes).ok());
                if let Some(Message::RkeyResponse(response)) = message {
                    layer.fields.put("rkey_chunk", response.chunk);
                    layer.fields.put("rkey", response.r_key);
                }
                layer
            }
            ImmediateKind::Heartbeat { payload } => heartbeat("heartbeat", payload),
            ImmediateKind::HeartbeatAcknowledgement { payload } => {
                heartbeat("heartbeat_ack", payload)
            }
            ImmediateKind::Other { kind, payload } => heartbeat(&format!("type_{kind}"), payload),
        };
        Some(layer)
    }

    /// Returns the layer of a client's request.
    fn request(&mut self, payload: u32, message: Option<&CompleteMessage>) -> Layer {
        let (chunk, offset) = Immediate::chunk_and_offset(payload, self.connection.queue_depth);
        let found = message.and_then(|message| {
            Message::parse_at_end(&message.bytes, message.length, offset as usize)
        });
        let Some((message, user)) = found else {
            let mut layer = Layer::new("rtrs", "request").about(format!("chunk {chunk}"));
            chunk_fields(&mut layer.fields, chunk, offset);
            return layer;
        };
        let data = (offset as usize).saturating_sub(user.len());
        let name = if matches!(message, Message::Read(..)) { "read" } else { "write" };
        let mut layer = Layer::new("rtrs", name).about(format!("chunk {chunk}, {data} bytes"));
        chunk_fields(&mut layer.fields, chunk, offset);
        layer.fields.put("data_length", data as u32);
        layer.fields.put("user_length", user.len() as u32);
        let carried = rnbd::Message::parse(user).ok();
        if let Message::Read(header, descriptors) = message {
            let wants = header.flags.contains(ReadFlags::NEED_INVALIDATION);
            layer.fields.put("need_invalidation", wants);
            layer.fields.put("descriptors", header.count);
            if let Some(descriptor) = descriptors.get(0) {
                layer.fields.group("descriptor", descriptor_fields(&descriptor));
                if !matches!(carried, None | Some(rnbd::Message::Io(_))) {
                    self.connection.reads.truncate(READS - 1);
                    self.connection.reads.push_front((chunk, descriptor));
                }
            }
        }
        layer.carries(carried.map(|carried| block(&carried)))
    }

    /// Returns the layer of a WRITE from the server to the client.
    fn answer(&self, message: &CompleteMessage) -> Option<Layer> {
        let to = message.address?;
        let read =
            self.connection.reads.iter().find(|(_, chunk_fields)| chunk_fields.address == to);
        let inner = read.and_then(|_| rnbd::Message::parse(&message.bytes).ok());
        let chunk = read.map(|(chunk, _)| *chunk);
        let mut layer = Layer::new("rtrs", "data").about(format!("{} bytes", message.length));
        layer.fields.put("data_length", message.length as u32);
        layer.fields.put("chunk", chunk);
        Some(layer.carries(inner.map(|inner| block(&inner))))
    }
}

impl IncompleteMessage {
    /// Adds a packet. Returns the message if this packet completes it.
    fn take(
        &mut self,
        packet: &Packet<'_>,
        operation: Operation,
        kept: usize,
    ) -> Option<CompleteMessage> {
        let (psn, position) = (packet.bth().psn, operation.position());
        let payload = &packet.payload()[..kept];
        if matches!(position, Position::First | Position::Only) {
            let address = packet.reth().map(|reth| reth.virtual_address);
            let bytes = std::mem::take(&mut self.bytes);
            *self = Self { next: Some(psn), bytes, length: 0, address };
            self.bytes.clear();
        }
        let next = self.next?;
        if psn.is_before(next) {
            // The packet is a retransmission.
            return None;
        }
        if psn != next || kept < packet.payload().len() {
            self.next = None;
            return None;
        }
        self.next = Some(psn.wrapping_add(1));
        self.length += payload.len();
        let is_write = self.address.is_some();
        if is_write {
            let from = payload.len().saturating_sub(KEPT);
            self.bytes.extend(&payload[from..]);
            let extra = self.bytes.len().saturating_sub(KEPT);
            self.bytes.drain(..extra);
        } else {
            let room = KEPT - self.bytes.len();
            self.bytes.extend(&payload[..payload.len().min(room)]);
        }
        if !matches!(position, Position::Last | Position::Only) {
            return None;
        }
        self.next = None;
        let bytes = std::mem::take(&mut self.bytes);
        Some(CompleteMessage { bytes, length: self.length, address: self.address })
    }
}

/// Returns the layer of an info request or response. Both precede all other requests of a
/// connection.
fn information(message: &CompleteMessage) -> Option<Layer> {
    if let Ok(Message::InfoRequest(request)) = Message::parse(&message.bytes) {
        let name = words(request.name());
        let mut layer = Layer::new("rtrs", "info_request").about(format!("\"{name}\""));
        layer.fields.text("session_name", name);
        return Some(layer);
    }
    // The stored bytes of a long message can lack most of its descriptors, so only the first
    // descriptor is shown.
    let header = InfoHeader::parse(message.bytes.first_chunk()?);
    if header.message_type != ib_wire::rtrs::MessageType::INFO_RESPONSE {
        let mut layer = Layer::new("rtrs", header.message_type.to_string());
        layer.fields.put("type", header.message_type.0);
        return Some(layer);
    }
    let about = format!("{} descriptors", header.count);
    let mut layer = Layer::new("rtrs", "info_response").about(about);
    layer.fields.put("descriptors", header.count);
    if header.epoch != 0 {
        layer.fields.put("epoch", header.epoch);
    }
    let first = message.bytes.get(InfoHeader::LENGTH..).and_then(<[u8]>::first_chunk);
    if let Some(first) = first {
        layer.fields.group("descriptor", descriptor_fields(&Descriptor::parse(first)));
    }
    Some(layer)
}

/// Returns the layer of a client's connect request.
pub(super) fn connect_request(request: &ConnectRequest) -> Layer {
    let (number, count) = (request.connection, request.connections);
    let mut layer =
        Layer::new("rtrs", "connect_request").about(format!("connection {number} of {count}"));
    let fields = &mut layer.fields;
    fields.put("version", request.version);
    fields.put("connection", number);
    fields.put("connections", count);
    fields.put("reconnects", request.reconnects);
    fields.text("path_uuid", uuid(&request.path_uuid));
    fields.text("session_uuid", uuid(&request.session_uuid));
    fields.put("first_connection", request.first_connection);
    layer
}

/// Returns the layer of a server's connect response.
pub(super) fn connect_response(response: &ConnectResponse) -> Layer {
    let about = match response.error {
        0 => format!("{} chunks", response.queue_depth),
        error => format!("error {error}"),
    };
    let mut layer = Layer::new("rtrs", "connect_response").about(about);
    let fields = &mut layer.fields;
    fields.put("version", response.version);
    fields.put("error", u32::from(response.error.unsigned_abs()));
    fields.put("queue_depth", response.queue_depth);
    fields.put("max_io_size", response.max_io_size);
    fields.put("max_header_size", response.max_header_size);
    fields.put("new_keys", response.flags.contains(ConnectFlags::NEW_KEYS));
    layer
}

/// Returns the layer of an RNBD message.
fn block(message: &rnbd::Message<'_>) -> Layer {
    use rnbd::Message::{Close, Io, Open, OpenResponse, Other, Session};
    let mut layer = Layer::new("rnbd", message.message_type().to_string().replace(' ', "_"));
    let fields = &mut layer.fields;
    match message {
        Session(session) => {
            fields.put("version", session.version);
            layer.about = format!("version {}", session.version);
        }
        Open(open) => {
            let name = words(open.name());
            fields.text("access_mode", open.access_mode);
            fields.text("name", &name);
            layer.about = format!("\"{name}\" {}", open.access_mode);
        }
        OpenResponse(response) => {
            fields.put("device_id", response.device_id);
            fields.put("sectors", response.sectors);
            fields.put("logical_block_size", response.logical_block_size);
            fields.put("physical_block_size", response.physical_block_size);
            fields.put("max_hw_sectors", response.max_hw_sectors);
            fields.put("max_segments", response.max_segments);
            fields.put("max_discard_sectors", response.max_discard_sectors);
            fields.put("discard_granularity", response.discard_granularity);
            fields.put("discard_alignment", response.discard_alignment);
            fields.put("secure_discard", response.secure_discard);
            fields.put("cache_policy", response.cache_policy.0);
            layer.about = format!("device {}, {} sectors", response.device_id, response.sectors);
        }
        Io(io) => {
            let operation = io.rw.operation();
            fields.put("device_id", io.device_id);
            fields.text("operation", operation);
            fields.put("rw", io.rw.0);
            fields.put("sector", io.sector);
            fields.put("length", io.length);
            fields.put("priority", io.priority);
            let (device, sector, length) = (io.device_id, io.sector, io.length);
            layer.about = format!("{operation} device {device}, sector {sector}, {length} bytes");
        }
        Close(close) => {
            fields.put("device_id", close.device_id);
            layer.about = format!("device {}", close.device_id);
        }
        Other(_, rest) => fields.text("data", hex(rest)),
    }
    layer
}

fn heartbeat(name: &str, payload: u32) -> Layer {
    let mut layer = Layer::new("rtrs", name);
    layer.fields.put("payload", payload);
    layer
}

fn chunk_fields(fields: &mut Fields, chunk: u32, offset: u32) {
    fields.put("chunk", chunk);
    fields.put("offset", offset);
}

fn descriptor_fields(descriptor: &Descriptor) -> Fields {
    let mut fields = Fields::new();
    fields.put("va", descriptor.address);
    fields.put("rkey", descriptor.r_key);
    fields.put("length", descriptor.length);
    fields
}

fn uuid(bytes: &[u8; 16]) -> String {
    let number = u128::from_be_bytes(*bytes);
    let [a, b, c, d] =
        [number >> 96, number >> 80 & 0xffff, number >> 64 & 0xffff, number >> 48 & 0xffff];
    format!("{a:08x}-{b:04x}-{c:04x}-{d:04x}-{:012x}", number & 0xffff_ffff_ffff)
}
