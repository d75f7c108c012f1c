//! Layouts of the BTH and of the extended transport headers.
//!
//! Source: IBTA volume 1, chapters 9.2 and 9.3. The structs have no fields for reserved bits.

use ib_types::{PKey, Psn, QKey, Qpn};

use super::aeth::Syndrome;
use super::opcode::Opcode;

crate::field!(Opcode(u8), Syndrome(u8));

crate::layout! {
    /// The base transport header (BTH). All packets except for raw packets have a BTH.
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
        /// The opcode.
        pub opcode: Opcode = bits(0, 0, 8),
        /// SE: true if the packet requests a solicited event at the responder.
        pub solicited_event: bool = bits(1, 0, 1),
        /// MigReq: true if the path migration state of the sending QP is Migrated.
        pub migration: bool = bits(1, 1, 1),
        /// PadCnt: the number of pad bytes after the payload, 0 to 3.
        pub pad_count: u8 = bits(1, 2, 2),
        /// `TVer`: the version of the transport headers, 0.
        pub transport_version: u8 = bits(1, 4, 4),
        /// The P_Key.
        pub p_key: PKey = bits(2, 0, 16),
        /// FECN: true if the packet has passed a congested port.
        pub fecn: bool = bits(4, 0, 1),
        /// BECN: true if a packet in the opposite direction has passed a congested port.
        pub becn: bool = bits(4, 1, 1),
        /// The destination QP.
        pub destination: Qpn = bits(5, 0, 24),
        /// AckReq: true if the packet requests an acknowledgement.
        pub ack_request: bool = bits(8, 0, 1),
        /// The packet sequence number.
        pub psn: Psn = bits(9, 0, 24),
    }
}

impl Default for Bth {
    /// Returns a header with opcode RC SEND only, the default P_Key, destination QP0, PSN 0, and no
    /// flags.
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
    /// The reliable datagram extended transport header (RDETH); IBTA volume 1, chapter 9.3.1.
    pub struct Rdeth: 4 {
        /// The end-to-end context, 24 bits.
        pub ee_context: u32 = bits(1, 0, 24),
    }
}

crate::layout! {
    /// The datagram extended transport header (DETH); IBTA volume 1, chapter 9.3.2.
    pub struct Deth: 8 {
        /// The Q_Key, which must match the Q_Key of the destination QP.
        pub q_key: QKey = bits(0, 0, 32),
        /// The source QP.
        pub source: Qpn = bits(5, 0, 24),
    }
}

crate::layout! {
    /// The extended reliable connection header (XRCETH); IBTA volume 1, annex A14.
    pub struct XrcEth: 4 {
        /// The number of the destination XRC SRQ, 24 bits.
        pub receive_queue: u32 = bits(1, 0, 24),
    }
}

crate::layout! {
    /// The RDMA extended transport header (RETH); IBTA volume 1, chapter 9.3.3.
    pub struct Reth: 16 {
        /// The virtual address in the remote memory region.
        pub virtual_address: u64 = bits(0, 0, 64),
        /// The R_Key of the remote memory region.
        pub r_key: u32 = bits(8, 0, 32),
        /// The length of the message in bytes, 0 to 2^31.
        pub dma_length: u32 = bits(12, 0, 32),
    }
}

crate::layout! {
    /// The atomic extended transport header (AtomicETH); IBTA volume 1, chapter 9.3.4.
    pub struct AtomicEth: 28 {
        /// The virtual address in the remote memory region, a multiple of 8.
        pub virtual_address: u64 = bits(0, 0, 64),
        /// The R_Key of the remote memory region.
        pub r_key: u32 = bits(8, 0, 32),
        /// The swap operand of compare and swap, or the add operand of fetch and add.
        pub swap_or_add: u64 = bits(12, 0, 64),
        /// The compare operand of compare and swap.
        pub compare: u64 = bits(20, 0, 64),
    }
}

crate::layout! {
    /// The ACK extended transport header (AETH); IBTA volume 1, chapter 9.3.5.
    pub struct Aeth: 4 {
        /// The syndrome: ACK, RNR NAK or NAK.
        pub syndrome: Syndrome = bits(0, 0, 8),
        /// The message sequence number (MSN), 24 bits: the number of messages that the responder
        /// has completed.
        pub msn: u32 = bits(1, 0, 24),
    }
}

crate::layout! {
    /// The atomic ACK extended transport header (AtomicAckETH); IBTA volume 1, chapter 9.3.5.3.
    pub struct AtomicAckEth: 8 {
        /// The value in memory before the atomic operation.
        pub original: u64 = bits(0, 0, 64),
    }
}

crate::layout! {
    /// The immediate data header (ImmDt); IBTA volume 1, chapter 9.3.6.
    pub struct ImmDt: 4 {
        /// The immediate data as a big-endian number.
        pub data: u32 = bits(0, 0, 32),
    }
}

crate::layout! {
    /// The invalidate extended transport header (IETH); IBTA volume 1, chapter 9.3.7.
    pub struct Ieth: 4 {
        /// The R_Key to invalidate.
        pub r_key: u32 = bits(0, 0, 32),
    }
}
