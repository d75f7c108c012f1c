//! LAP and APR: another path for a connection to change to; IBTA volume 1, chapters 12.8.1 and
//! 12.8.2.

use ib_types::{Gid, Qpn};

use crate::mad::attribute;
use crate::mad::codes::codes;
use crate::mad::sa::RateCode;

crate::layout! {
    /// The proposal of an alternate path.
    pub struct Lap: 232 {
        /// The sender's number of the connection.
        pub local_comm_id: u32 = bits(0, 0, 32),
        /// The receiver's number of the connection.
        pub remote_comm_id: u32 = bits(4, 0, 32),
        /// The receiver's queue pair.
        pub remote_qpn: Qpn = bits(12, 0, 24),
        /// How long the receiver may take to answer: 4.096 µs × 2^value.
        pub remote_cm_response_timeout: u8 = bits(15, 0, 5),
        /// The LID of the sender's port.
        pub local_lid: u16 = bits(20, 0, 16),
        /// The LID of the receiver's port.
        pub remote_lid: u16 = bits(22, 0, 16),
        /// The GID of the sender's port.
        pub local_gid: Gid = bits(24, 0, 128),
        /// The GID of the receiver's port.
        pub remote_gid: Gid = bits(40, 0, 128),
        /// The flow label of the global route header.
        pub flow_label: u32 = bits(56, 0, 20),
        /// The traffic class of the global route header.
        pub traffic_class: u8 = bits(59, 0, 8),
        /// The hop limit of the global route header.
        pub hop_limit: u8 = bits(60, 0, 8),
        /// The rate.
        pub rate: RateCode = bits(61, 2, 6),
        /// The service level.
        pub sl: u8 = bits(62, 0, 4),
        /// Both ports are in one subnet.
        pub subnet_local: bool = bits(62, 4, 1),
        /// How long the sender waits for acknowledgements: 4.096 µs × 2^value.
        pub local_ack_timeout: u8 = bits(63, 0, 5),
        /// What the consumers say.
        pub private_data: [u8; 168] = bits(64, 0, 1344),
    }
}

attribute!(Lap = CM_LAP in COMMUNICATION);

codes! {
    /// What became of a proposed path.
    AprStatus(u8) {
        /// It is loaded.
        LOADED = 0 "loaded",
        /// A number of the connection is wrong.
        INVALID_COMM_ID = 1 "invalid communication ID",
        /// Alternate paths are not supported.
        UNSUPPORTED = 2 "not supported",
        /// Refused.
        REJECTED = 3 "rejected",
        /// Another port serves the connection.
        REDIRECT = 4 "redirect",
        /// It is the current path.
        IS_CURRENT = 5 "is current path",
        /// The queue pair is wrong.
        WRONG_QPN = 6 "wrong QPN",
        /// A LID is wrong.
        INVALID_LID = 7 "invalid LID",
        /// A GID is wrong.
        INVALID_GID = 8 "invalid GID",
        /// The flow label is wrong.
        INVALID_FLOW_LABEL = 9 "invalid flow label",
        /// The traffic class is wrong.
        INVALID_TRAFFIC_CLASS = 10 "invalid traffic class",
        /// The hop limit is wrong.
        INVALID_HOP_LIMIT = 11 "invalid hop limit",
        /// The rate is wrong.
        INVALID_RATE = 12 "invalid packet rate",
        /// The service level is wrong.
        INVALID_SL = 13 "invalid SL",
    }
}

crate::layout! {
    /// The answer to a proposal.
    pub struct Apr: 232 {
        /// The sender's number of the connection.
        pub local_comm_id: u32 = bits(0, 0, 32),
        /// The receiver's number of the connection.
        pub remote_comm_id: u32 = bits(4, 0, 32),
        /// The bytes of `info` that mean something, 0 to 72.
        pub info_length: u8 = bits(8, 0, 8),
        /// What became of the path.
        pub status: AprStatus = bits(9, 0, 8),
        /// Further information by status.
        pub info: [u8; 72] = bits(12, 0, 576),
        /// What the consumers say.
        pub private_data: [u8; 148] = bits(84, 0, 1184),
    }
}

attribute!(Apr = CM_APR in COMMUNICATION);
