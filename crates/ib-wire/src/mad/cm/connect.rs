//! REQ, REP and RTU: how a connection is made; IBTA volume 1, chapters 12.6.5 to 12.6.9.

use ib_types::{Gid, Guid, PKey, Psn, QKey, Qpn};

use crate::mad::attribute;
use crate::mad::codes::codes;
use crate::mad::sa::RateCode;
use crate::mad::sm::MtuCode;

codes! {
    /// The kind of transport of a connection.
    TransportService(u8) {
        /// Reliable connection.
        RC = 0 "RC",
        /// Unreliable connection.
        UC = 1 "UC",
        /// Reliable datagram.
        RD = 2 "RD",
        /// Another one, which an extended field tells.
        EXTENDED = 3 "extended",
    }
}

crate::layout! {
    /// A path that a request proposes; all zero for no alternate path.
    pub struct ConnectPath: 44 {
        /// The LID of the sender's port; 0xffff on RoCE.
        pub local_lid: u16 = bits(0, 0, 16),
        /// The LID of the receiver's port.
        pub remote_lid: u16 = bits(2, 0, 16),
        /// The GID of the sender's port.
        pub local_gid: Gid = bits(4, 0, 128),
        /// The GID of the receiver's port.
        pub remote_gid: Gid = bits(20, 0, 128),
        /// The flow label of the global route header.
        pub flow_label: u32 = bits(36, 0, 20),
        /// The rate.
        pub rate: RateCode = bits(39, 2, 6),
        /// The traffic class of the global route header.
        pub traffic_class: u8 = bits(40, 0, 8),
        /// The hop limit of the global route header.
        pub hop_limit: u8 = bits(41, 0, 8),
        /// The service level.
        pub sl: u8 = bits(42, 0, 4),
        /// Both ports are in one subnet.
        pub subnet_local: bool = bits(42, 4, 1),
        /// How long the sender waits for acknowledgements: 4.096 µs × 2^value.
        pub local_ack_timeout: u8 = bits(43, 0, 5),
    }
}

crate::layout! {
    /// A request for a connection.
    pub struct Req: 232 {
        /// The sender's number of the connection.
        pub local_comm_id: u32 = bits(0, 0, 32),
        /// The vendor of the sender.
        pub vendor_id: u32 = bits(5, 0, 24),
        /// The service that is wanted.
        pub service_id: u64 = bits(8, 0, 64),
        /// The sender's HCA.
        pub local_ca_guid: Guid = bits(16, 0, 64),
        /// The sender's Q_Key, for datagrams.
        pub local_q_key: QKey = bits(28, 0, 32),
        /// The sender's queue pair.
        pub local_qpn: Qpn = bits(32, 0, 24),
        /// Reads that the sender can serve at once.
        pub responder_resources: u8 = bits(35, 0, 8),
        /// The sender's end-to-end context, for reliable datagrams.
        pub local_eecn: u32 = bits(36, 0, 24),
        /// Reads that the sender wants to have at once.
        pub initiator_depth: u8 = bits(39, 0, 8),
        /// The receiver's end-to-end context, for reliable datagrams.
        pub remote_eecn: u32 = bits(40, 0, 24),
        /// How long the receiver may take to answer: 4.096 µs × 2^value.
        pub remote_cm_response_timeout: u8 = bits(43, 0, 5),
        /// The kind of transport.
        pub transport: TransportService = bits(43, 5, 2),
        /// The sender has end-to-end flow control.
        pub flow_control: bool = bits(43, 7, 1),
        /// The number of the first packet that the receiver shall send.
        pub starting_psn: Psn = bits(44, 0, 24),
        /// How long the sender may take to answer: 4.096 µs × 2^value.
        pub local_cm_response_timeout: u8 = bits(47, 0, 5),
        /// How often a packet may be sent again.
        pub retry_count: u8 = bits(47, 5, 3),
        /// The partition.
        pub p_key: PKey = bits(48, 0, 16),
        /// The MTU of the paths.
        pub path_mtu: MtuCode = bits(50, 0, 4),
        /// The end-to-end context exists, for reliable datagrams.
        pub rdc_exists: bool = bits(50, 4, 1),
        /// How often a packet may be sent again when the receiver was not ready; 7 indefinitely.
        pub rnr_retry_count: u8 = bits(50, 5, 3),
        /// How often the messages of this chapter may be sent again.
        pub max_cm_retries: u8 = bits(51, 0, 4),
        /// The sender's queue pair has a shared receive queue.
        pub srq: bool = bits(51, 4, 1),
        /// The transport when `transport` says extended.
        pub extended_transport: u8 = bits(51, 5, 3),
        /// The path.
        pub primary_path: ConnectPath = bits(52, 0, 352),
        /// Another path to change to; all zero for none.
        pub alternate_path: ConnectPath = bits(96, 0, 352),
        /// What the consumers say.
        pub private_data: [u8; 92] = bits(140, 0, 736),
    }
}

attribute!(Req = CM_REQ in COMMUNICATION);

crate::layout! {
    /// The acceptance of a request.
    pub struct Rep: 232 {
        /// The sender's number of the connection.
        pub local_comm_id: u32 = bits(0, 0, 32),
        /// The receiver's number of the connection.
        pub remote_comm_id: u32 = bits(4, 0, 32),
        /// The sender's Q_Key, for datagrams.
        pub local_q_key: QKey = bits(8, 0, 32),
        /// The sender's queue pair.
        pub local_qpn: Qpn = bits(12, 0, 24),
        /// Bits 0 to 7 of the vendor ID that the REQ had, if the sender shares its enhanced connection establishment.
        pub vendor_id_low: u8 = bits(15, 0, 8),
        /// The sender's end-to-end context, for reliable datagrams.
        pub local_eecn: u32 = bits(16, 0, 24),
        /// Bits 8 to 15 of the vendor ID.
        pub vendor_id_middle: u8 = bits(19, 0, 8),
        /// The number of the first packet that the receiver shall send.
        pub starting_psn: Psn = bits(20, 0, 24),
        /// Bits 16 to 23 of the vendor ID.
        pub vendor_id_high: u8 = bits(23, 0, 8),
        /// Reads that the sender can serve at once.
        pub responder_resources: u8 = bits(24, 0, 8),
        /// Reads that the sender wants to have at once.
        pub initiator_depth: u8 = bits(25, 0, 8),
        /// How long the sender takes to acknowledge: 4.096 µs × 2^value.
        pub target_ack_delay: u8 = bits(26, 0, 5),
        /// What became of the alternate path: 0 accepted, 1 not supported, 2 refused.
        pub failover_accepted: u8 = bits(26, 5, 2),
        /// The sender has end-to-end flow control.
        pub flow_control: bool = bits(26, 7, 1),
        /// How often a packet may be sent again when the receiver was not ready; 7 indefinitely.
        pub rnr_retry_count: u8 = bits(27, 0, 3),
        /// The sender's queue pair has a shared receive queue.
        pub srq: bool = bits(27, 3, 1),
        /// The sender's HCA.
        pub local_ca_guid: Guid = bits(28, 0, 64),
        /// What the consumers say.
        pub private_data: [u8; 196] = bits(36, 0, 1568),
    }
}

attribute!(Rep = CM_REP in COMMUNICATION);

impl Rep {
    /// Returns the vendor ID, 24 bits.
    #[must_use]
    pub const fn vendor_id(&self) -> u32 {
        u32::from_be_bytes([0, self.vendor_id_high, self.vendor_id_middle, self.vendor_id_low])
    }

    /// Sets the vendor ID, 24 bits.
    pub const fn set_vendor_id(&mut self, vendor_id: u32) {
        [_, self.vendor_id_high, self.vendor_id_middle, self.vendor_id_low] =
            vendor_id.to_be_bytes();
    }
}

crate::layout! {
    /// The sender is ready; the connection stands.
    pub struct Rtu: 232 {
        /// The sender's number of the connection.
        pub local_comm_id: u32 = bits(0, 0, 32),
        /// The receiver's number of the connection.
        pub remote_comm_id: u32 = bits(4, 0, 32),
        /// What the consumers say.
        pub private_data: [u8; 224] = bits(8, 0, 1792),
    }
}

attribute!(Rtu = CM_RTU in COMMUNICATION);
