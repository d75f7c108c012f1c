//! LAP and APR: alternate paths for path migration; IBTA volume 1, chapters 12.8.1 and 12.8.2.

use ib_types::{Gid, Qpn};

use crate::mad::attribute;
use crate::mad::codes::codes;
use crate::mad::sa::RateCode;

crate::layout! {
    /// LAP: requests the receiver to load an alternate path.
    pub struct Lap: 232 {
        /// The sender's communication ID.
        pub local_comm_id: u32 = bits(0, 0, 32),
        /// The receiver's communication ID.
        pub remote_comm_id: u32 = bits(4, 0, 32),
        /// The receiver's QPN.
        pub remote_qpn: Qpn = bits(12, 0, 24),
        /// The time within which the receiver must respond: 4.096 µs × 2^value.
        pub remote_cm_response_timeout: u8 = bits(15, 0, 5),
        /// The LID of the sender's port on the alternate path.
        pub local_lid: u16 = bits(20, 0, 16),
        /// The LID of the receiver's port on the alternate path.
        pub remote_lid: u16 = bits(22, 0, 16),
        /// The GID of the sender's port on the alternate path.
        pub local_gid: Gid = bits(24, 0, 128),
        /// The GID of the receiver's port on the alternate path.
        pub remote_gid: Gid = bits(40, 0, 128),
        /// The flow label of the GRH.
        pub flow_label: u32 = bits(56, 0, 20),
        /// The traffic class of the GRH.
        pub traffic_class: u8 = bits(59, 0, 8),
        /// The hop limit of the GRH.
        pub hop_limit: u8 = bits(60, 0, 8),
        /// The packet rate.
        pub rate: RateCode = bits(61, 2, 6),
        /// The SL.
        pub sl: u8 = bits(62, 0, 4),
        /// True if the ports of sender and receiver are in the same subnet.
        pub subnet_local: bool = bits(62, 4, 1),
        /// The time for which the sender's QP waits for an ACK: 4.096 µs × 2^value.
        pub local_ack_timeout: u8 = bits(63, 0, 5),
        /// Private data of the consumer.
        pub private_data: [u8; 168] = bits(64, 0, 1344),
    }
}

attribute!(Lap = CM_LAP in COMMUNICATION);

codes! {
    /// The status of an APR.
    AprStatus(u8) {
        /// The receiver of the LAP has loaded the alternate path.
        LOADED = 0 "loaded",
        /// A communication ID in the LAP is invalid.
        INVALID_COMM_ID = 1 "invalid communication ID",
        /// The receiver of the LAP does not support alternate paths.
        UNSUPPORTED = 2 "not supported",
        /// The receiver of the LAP rejects the alternate path.
        REJECTED = 3 "rejected",
        /// The LAP must be sent to another port.
        REDIRECT = 4 "redirect",
        /// The proposed path is already the alternate path.
        IS_CURRENT = 5 "is current path",
        /// The QPN in the LAP is wrong.
        WRONG_QPN = 6 "wrong QPN",
        /// A LID of the proposed path is invalid.
        INVALID_LID = 7 "invalid LID",
        /// A GID of the proposed path is invalid.
        INVALID_GID = 8 "invalid GID",
        /// The flow label of the proposed path is invalid.
        INVALID_FLOW_LABEL = 9 "invalid flow label",
        /// The traffic class of the proposed path is invalid.
        INVALID_TRAFFIC_CLASS = 10 "invalid traffic class",
        /// The hop limit of the proposed path is invalid.
        INVALID_HOP_LIMIT = 11 "invalid hop limit",
        /// The packet rate of the proposed path is invalid.
        INVALID_RATE = 12 "invalid packet rate",
        /// The SL of the proposed path is invalid.
        INVALID_SL = 13 "invalid SL",
    }
}

crate::layout! {
    /// APR: the response to a LAP.
    pub struct Apr: 232 {
        /// The sender's communication ID.
        pub local_comm_id: u32 = bits(0, 0, 32),
        /// The receiver's communication ID.
        pub remote_comm_id: u32 = bits(4, 0, 32),
        /// The number of valid bytes of `info`, 0 to 72.
        pub info_length: u8 = bits(8, 0, 8),
        /// The result of the LAP: loaded, or the reason why the alternate path is not loaded.
        pub status: AprStatus = bits(9, 0, 8),
        /// Additional information, whose meaning depends on the status.
        pub info: [u8; 72] = bits(12, 0, 576),
        /// Private data of the consumer.
        pub private_data: [u8; 148] = bits(84, 0, 1184),
    }
}

attribute!(Apr = CM_APR in COMMUNICATION);
