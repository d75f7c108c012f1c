//! Packets of a malicious peer that knows the PSNs, R_Keys and addresses of the HCA.

use ib_hca::QpType;
use ib_types::{Gid, PKey, Psn, QKey, Qpn};
use ib_wire::packet::{
    Aeth, AtomicAckEth, AtomicEth, Bth, Deth, Header, Ieth, ImmDt, Opcode, Reth, Syndrome,
};

use super::*;

impl World {
    /// Passes a packet whose fields are mostly valid to the HCA.
    pub(super) fn packet(&mut self, input: &mut Input<'_>) {
        let place = input.below(self.queues.len());
        let (kind, flags, near) = (input.byte(), input.byte(), input.byte() as i8);
        let service = match TYPES[place] {
            QpType::Rc => 0,
            QpType::Uc => 0x20,
            QpType::Ud => 0x60,
        };
        let opcode = Opcode(if kind & 0xc0 == 0xc0 { kind } else { service | kind & 0x1f });
        let is_response = (0x0d..=0x12).contains(&opcode.0);
        let queue = &mut self.queues[place];
        let base = if is_response { queue.sent } else { queue.expected };
        let distance = if flags & 0x30 == 0 { i32::from(near) } else { 0 };
        let psn = Psn::truncated(base.get().wrapping_add(distance as u32));
        if !is_response && distance == 0 {
            queue.expected = Psn::truncated(psn.get().wrapping_add(1));
        }
        let length = match input.below(5) {
            0 => 0,
            1 => 256,
            2 => input.below(9),
            3 => 8 * input.below(33),
            _ => usize::from(input.short()) % 1100,
        };
        let payload = vec![input.byte(); length];
        let bth = Bth {
            opcode,
            solicited_event: flags & 1 != 0,
            pad_count: (length.wrapping_neg() & 3) as u8 ^ u8::from(flags & 0xc0 == 0xc0),
            p_key: if flags & 0x0e == 0x0e { PKey(0x1234) } else { PKey::DEFAULT },
            destination: queue.number,
            ack_request: flags & 2 != 0,
            psn,
            ..Bth::default()
        };
        let mut bytes = bth.to_bytes().to_vec();
        for header in opcode.headers().unwrap_or_default().iter() {
            self.header(header, length, input, &mut bytes);
        }
        bytes.extend(payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        let mut way = route();
        if flags & 0x0c == 0x0c {
            way.destination = Gid(u128::from(flags));
        }
        self.hca.handle(self.now, &way, &bytes);
    }

    fn header(&self, header: Header, length: usize, input: &mut Input<'_>, bytes: &mut Vec<u8>) {
        match header {
            Header::Reth => {
                let dma_length = match input.below(4) {
                    0 => u32::from(input.short()) << 16,
                    1 => u32::from(input.short()) % 2000,
                    _ => length as u32,
                };
                let (virtual_address, r_key) = self.remote(dma_length as usize, input);
                bytes.extend(Reth { virtual_address, r_key, dma_length }.to_bytes());
            }
            Header::AtomicEth => {
                let (virtual_address, r_key) = self.remote(8, input);
                let virtual_address = virtual_address & !u64::from(input.byte() & 7);
                let (swap_or_add, compare) = (input.byte().into(), input.byte().into());
                let header = AtomicEth { virtual_address, r_key, swap_or_add, compare };
                bytes.extend(header.to_bytes());
            }
            Header::Aeth => {
                let syndrome = match input.below(4) {
                    0 => input.byte(),
                    1 => 0x20 | input.byte() & 3,
                    2 => 0x60 | input.byte() & 7,
                    _ => 0x1f,
                };
                let msn = input.byte().into();
                bytes.extend(Aeth { syndrome: Syndrome(syndrome), msn }.to_bytes());
            }
            Header::AtomicAckEth => bytes.extend(AtomicAckEth { original: 7 }.to_bytes()),
            Header::ImmDt => bytes.extend(ImmDt { data: 7 }.to_bytes()),
            Header::Ieth => {
                let r_key = self.remote(0, input).1;
                bytes.extend(Ieth { r_key }.to_bytes());
            }
            Header::Deth => {
                let q_key = if input.byte() & 7 == 0 { QKey(0) } else { PEER_Q_KEY };
                bytes.extend(Deth { q_key, source: Qpn::truncated(PEER_QPN) }.to_bytes());
            }
            Header::Rdeth | Header::XrcEth => bytes.extend([input.byte(); 4]),
        }
    }

    /// Returns an address and an R_Key for an access to `length` bytes. The access is within a region, across the end
    /// of a region, or outside of all regions.
    fn remote(&self, length: usize, input: &mut Input<'_>) -> (u64, u32) {
        let kind = input.byte();
        let offset = match kind & 0x60 {
            0 => u64::from(input.short()) % (QUARTER as u64 + 16),
            // The access ends between 8 bytes before and 7 bytes after the end of the region.
            0x20 => (QUARTER + input.below(16)).saturating_sub(length + 8) as u64,
            _ => 0,
        };
        let key = match kind & 7 {
            5 => self.hca.key(self.fast).unwrap_or_default(),
            6 => u32::from(kind) << 24,
            7 => self.grounds[2].key,
            other => self.grounds[usize::from(other) % 2].key,
        };
        let address = if kind & 0x18 == 0x18 { offset } else { IOVA.wrapping_add(offset) };
        (address, key)
    }
}
