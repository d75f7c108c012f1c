//! The transport headers: BTH and what may follow it.
//!
//! IBTA volume 1, chapters 9.2 and 9.3. Bits that are reserved there have no field here.

use ib_types::{PKey, Psn, QKey, Qpn};

use super::aeth::Syndrome;
use super::opcode::Opcode;

crate::field!(Opcode(u8), Syndrome(u8));

crate::layout! {
    /// The base transport header of every packet that is not raw.
    ///
    /// ```text
    ///  0            8 9  10  12     16                  31
    /// +------------+-+-+----+------+-------------------+
    /// |   opcode   |S|M|pad | TVer |       P_Key       |
    /// +-+-+--------+-+-+----+------+-------------------+
    /// |F|B|  rsvd  |          destination QP           |
    /// +-+-+--------+-----------------------------------+
    /// |A|   rsvd   |      packet sequence number       |
    /// +-+----------+-----------------------------------+
    /// ```
    ///
    /// IBTA volume 1, chapter 9.2.
    pub struct Bth: 12 {
        /// What the packet does.
        pub opcode: Opcode = bits(0, 0, 8),
        /// SE: the responder is to raise an event.
        pub solicited_event: bool = bits(1, 0, 1),
        /// MigReq: the path migration state; a path that is migrated sends ones.
        pub migration: bool = bits(1, 1, 1),
        /// PadCnt: the number of bytes that fill the payload up to whole words, 0 to 3.
        pub pad_count: u8 = bits(1, 2, 2),
        /// `TVer`: the version of the transport headers, 0.
        pub transport_version: u8 = bits(1, 4, 4),
        /// The partition.
        pub p_key: PKey = bits(2, 0, 16),
        /// FECN: the packet met congestion.
        pub fecn: bool = bits(4, 0, 1),
        /// BECN: a packet that its receiver had sent met congestion.
        pub becn: bool = bits(4, 1, 1),
        /// The queue pair that the packet is for.
        pub destination: Qpn = bits(5, 0, 24),
        /// AckReq: the responder is to acknowledge.
        pub ack_request: bool = bits(8, 0, 1),
        /// The sequence number.
        pub psn: Psn = bits(9, 0, 24),
    }
}

impl Default for Bth {
    /// An RC SEND only in the default partition, to QP0 with PSN 0, no flag set.
    fn default() -> Self {
        Self {
            opcode: Opcode::RC_SEND_ONLY,
            solicited_event: false,
            migration: false,
            pad_count: 0,
            transport_version: 0,
            p_key: PKey::DEFAULT,
            fecn: false,
            becn: false,
            destination: Qpn::SMI,
            ack_request: false,
            psn: Psn::default(),
        }
    }
}

crate::layout! {
    /// RDETH, the reliable datagram extended transport header; IBTA volume 1, chapter 9.3.1.
    pub struct Rdeth: 4 {
        /// The end-to-end context, 24 bits.
        pub ee_context: u32 = bits(1, 0, 24),
    }
}

crate::layout! {
    /// DETH, the datagram extended transport header; IBTA volume 1, chapter 9.3.2.
    pub struct Deth: 8 {
        /// The queue key that the destination must have.
        pub q_key: QKey = bits(0, 0, 32),
        /// The queue pair that the packet comes from.
        pub source: Qpn = bits(5, 0, 24),
    }
}

crate::layout! {
    /// XRCETH, the header of an extended reliable connection; IBTA volume 1, annex A14.
    pub struct XrcEth: 4 {
        /// The shared receive queue, 24 bits.
        pub receive_queue: u32 = bits(1, 0, 24),
    }
}

crate::layout! {
    /// RETH, the RDMA extended transport header; IBTA volume 1, chapter 9.3.3.
    pub struct Reth: 16 {
        /// The address in the remote memory region.
        pub virtual_address: u64 = bits(0, 0, 64),
        /// The remote key.
        pub r_key: u32 = bits(8, 0, 32),
        /// The length of the whole message in bytes, 0 to 2^31.
        pub dma_length: u32 = bits(12, 0, 32),
    }
}

crate::layout! {
    /// AtomicETH, the atomic extended transport header; IBTA volume 1, chapter 9.3.4.
    pub struct AtomicEth: 28 {
        /// The address in the remote memory region, a multiple of 8.
        pub virtual_address: u64 = bits(0, 0, 64),
        /// The remote key.
        pub r_key: u32 = bits(8, 0, 32),
        /// What is stored by compare and swap, or added by fetch and add.
        pub swap_or_add: u64 = bits(12, 0, 64),
        /// What compare and swap compares with.
        pub compare: u64 = bits(20, 0, 64),
    }
}

crate::layout! {
    /// AETH, the ACK extended transport header; IBTA volume 1, chapter 9.3.5.
    pub struct Aeth: 4 {
        /// Whether this is an ACK or a NAK, and which.
        pub syndrome: Syndrome = bits(0, 0, 8),
        /// The message sequence number, 24 bits: how many messages the responder has completed.
        pub msn: u32 = bits(1, 0, 24),
    }
}

crate::layout! {
    /// AtomicAckETH, what an atomic operation returns; IBTA volume 1, chapter 9.3.5.3.
    pub struct AtomicAckEth: 8 {
        /// The value before the operation.
        pub original: u64 = bits(0, 0, 64),
    }
}

crate::layout! {
    /// ImmDt, immediate data; IBTA volume 1, chapter 9.3.6.
    pub struct ImmDt: 4 {
        /// The data, whose first byte on the wire is the most significant one.
        pub data: u32 = bits(0, 0, 32),
    }
}

crate::layout! {
    /// IETH, the invalidate extended transport header; IBTA volume 1, chapter 9.3.7.
    pub struct Ieth: 4 {
        /// The remote key that becomes invalid.
        pub r_key: u32 = bits(0, 0, 32),
    }
}
