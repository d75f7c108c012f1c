//! REQ, REP and RTU: connection establishment; IBTA volume 1, chapters 12.6.5 to 12.6.9.

use ib_types::{Gid, Guid, PKey, Psn, QKey, Qpn};

use crate::mad::attribute;
use crate::mad::codes::codes;
use crate::mad::sa::RateCode;
use crate::mad::sm::MtuCode;

codes! {
    /// The transport service of a connection.
    TransportService(u8) {
        /// Reliable connection.
        RC = 0 "RC",
        /// Unreliable connection.
        UC = 1 "UC",
        /// Reliable datagram.
        RD = 2 "RD",
        /// The transport service is in the extended field ([`Req::extended_transport`]).
        EXTENDED = 3 "extended",
    }
}

crate::layout! {
    /// A path in a REQ. If all fields of the alternate path are zero, there is no alternate path.
    pub struct ConnectPath: 44 {
        /// The LID of the sender's port; 0xffff with RoCE.
        pub local_lid: u16 = bits(0, 0, 16),
        /// The LID of the receiver's port.
        pub remote_lid: u16 = bits(2, 0, 16),
        /// The GID of the sender's port.
        pub local_gid: Gid = bits(4, 0, 128),
        /// The GID of the receiver's port.
        pub remote_gid: Gid = bits(20, 0, 128),
        /// The flow label of the GRH.
        pub flow_label: u32 = bits(36, 0, 20),
        /// The packet rate.
        pub rate: RateCode = bits(39, 2, 6),
        /// The traffic class of the GRH.
        pub traffic_class: u8 = bits(40, 0, 8),
        /// The hop limit of the GRH.
        pub hop_limit: u8 = bits(41, 0, 8),
        /// The SL.
        pub sl: u8 = bits(42, 0, 4),
        /// True if the ports of sender and receiver are in the same subnet.
        pub subnet_local: bool = bits(42, 4, 1),
        /// The time for which the sender's QP waits for an ACK: 4.096 µs × 2^value.
        pub local_ack_timeout: u8 = bits(43, 0, 5),
    }
}

crate::layout! {
    /// REQ: a connection request.
    pub struct Req: 232 {
        /// The sender's communication ID.
        pub local_comm_id: u32 = bits(0, 0, 32),
        /// The vendor ID of the sender's HCA.
        pub vendor_id: u32 = bits(5, 0, 24),
        /// The ID of the requested service.
        pub service_id: u64 = bits(8, 0, 64),
        /// The GUID of the sender's HCA.
        pub local_ca_guid: Guid = bits(16, 0, 64),
        /// The sender's Q_Key; used only by RD.
        pub local_q_key: QKey = bits(28, 0, 32),
        /// The sender's QPN.
        pub local_qpn: Qpn = bits(32, 0, 24),
        /// The responder resources: how many RDMA READs and atomics the sender can serve at the
        /// same time.
        pub responder_resources: u8 = bits(35, 0, 8),
        /// The sender's end-to-end context number; used only by RD.
        pub local_eecn: u32 = bits(36, 0, 24),
        /// The initiator depth: how many RDMA READs and atomics the sender wants to have
        /// outstanding.
        pub initiator_depth: u8 = bits(39, 0, 8),
        /// The receiver's end-to-end context number; used only by RD.
        pub remote_eecn: u32 = bits(40, 0, 24),
        /// The time within which the receiver must respond to CM messages: 4.096 µs × 2^value.
        pub remote_cm_response_timeout: u8 = bits(43, 0, 5),
        /// The transport service.
        pub transport: TransportService = bits(43, 5, 2),
        /// True if the sender supports end-to-end flow control.
        pub flow_control: bool = bits(43, 7, 1),
        /// The PSN of the first packet that the receiver sends.
        pub starting_psn: Psn = bits(44, 0, 24),
        /// The time within which the sender responds to CM messages: 4.096 µs × 2^value.
        pub local_cm_response_timeout: u8 = bits(47, 0, 5),
        /// The maximum number of retransmissions of a packet.
        pub retry_count: u8 = bits(47, 5, 3),
        /// The P_Key.
        pub p_key: PKey = bits(48, 0, 16),
        /// The path MTU.
        pub path_mtu: MtuCode = bits(50, 0, 4),
        /// True if the RD channel exists already.
        pub rdc_exists: bool = bits(50, 4, 1),
        /// The maximum number of retries after an RNR NAK; 7 means unlimited.
        pub rnr_retry_count: u8 = bits(50, 5, 3),
        /// The maximum number of retransmissions of a CM message.
        pub max_cm_retries: u8 = bits(51, 0, 4),
        /// True if the sender's QP has an SRQ.
        pub srq: bool = bits(51, 4, 1),
        /// The transport service if `transport` is [`TransportService::EXTENDED`].
        pub extended_transport: u8 = bits(51, 5, 3),
        /// The primary path.
        pub primary_path: ConnectPath = bits(52, 0, 352),
        /// The alternate path; all fields are zero if there is none.
        pub alternate_path: ConnectPath = bits(96, 0, 352),
        /// Private data of the consumer.
        pub private_data: [u8; 92] = bits(140, 0, 736),
    }
}

attribute!(Req = CM_REQ in COMMUNICATION);

crate::layout! {
    /// REP: accepts a connection request.
    pub struct Rep: 232 {
        /// The sender's communication ID.
        pub local_comm_id: u32 = bits(0, 0, 32),
        /// The receiver's communication ID.
        pub remote_comm_id: u32 = bits(4, 0, 32),
        /// The sender's Q_Key; used only by RD.
        pub local_q_key: QKey = bits(8, 0, 32),
        /// The sender's QPN.
        pub local_qpn: Qpn = bits(12, 0, 24),
        /// Bits 0 to 7 of the vendor ID. A sender that supports the enhanced connection
        /// establishment (ECE) of the REQ repeats the vendor ID of the REQ.
        pub vendor_id_low: u8 = bits(15, 0, 8),
        /// The sender's end-to-end context number; used only by RD.
        pub local_eecn: u32 = bits(16, 0, 24),
        /// Bits 8 to 15 of the vendor ID.
        pub vendor_id_middle: u8 = bits(19, 0, 8),
        /// The PSN of the first packet that the receiver sends.
        pub starting_psn: Psn = bits(20, 0, 24),
        /// Bits 16 to 23 of the vendor ID.
        pub vendor_id_high: u8 = bits(23, 0, 8),
        /// The responder resources: how many RDMA READs and atomics the sender can serve at the
        /// same time.
        pub responder_resources: u8 = bits(24, 0, 8),
        /// The initiator depth: how many RDMA READs and atomics the sender wants to have
        /// outstanding.
        pub initiator_depth: u8 = bits(25, 0, 8),
        /// The maximum time that the sender takes to send an ACK: 4.096 µs × 2^value.
        pub target_ack_delay: u8 = bits(26, 0, 5),
        /// The result for the alternate path: 0 accepted, 1 not supported, 2 rejected.
        pub failover_accepted: u8 = bits(26, 5, 2),
        /// True if the sender supports end-to-end flow control.
        pub flow_control: bool = bits(26, 7, 1),
        /// The maximum number of retries after an RNR NAK; 7 means unlimited.
        pub rnr_retry_count: u8 = bits(27, 0, 3),
        /// True if the sender's QP has an SRQ.
        pub srq: bool = bits(27, 3, 1),
        /// The GUID of the sender's HCA.
        pub local_ca_guid: Guid = bits(28, 0, 64),
        /// Private data of the consumer.
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
    /// RTU (ready to use): confirms that the connection is established.
    pub struct Rtu: 232 {
        /// The sender's communication ID.
        pub local_comm_id: u32 = bits(0, 0, 32),
        /// The receiver's communication ID.
        pub remote_comm_id: u32 = bits(4, 0, 32),
        /// Private data of the consumer.
        pub private_data: [u8; 224] = bits(8, 0, 1792),
    }
}

attribute!(Rtu = CM_RTU in COMMUNICATION);
