//! REJ (reject) and MRA (message receipt acknowledgement); IBTA volume 1, chapters 12.6.6 and
//! 12.6.7.

use crate::mad::attribute;
use crate::mad::codes::codes;

codes! {
    /// The message to which a REJ or an MRA refers.
    ReferencedMessage(u8) {
        /// A REQ.
        REQ = 0 "REQ",
        /// A REP.
        REP = 1 "REP",
        /// In an MRA: a LAP. In a REJ: neither a REQ nor a REP.
        OTHER = 2 "other",
    }
}

codes! {
    /// The reason why a REJ rejects a message; IBTA volume 1, table 106.
    RejectReason(u16) {
        /// No QP is available.
        NO_QP = 1 "no QP available",
        /// No end-to-end context is available.
        NO_EEC = 2 "no EEC available",
        /// No resources are available.
        NO_RESOURCES = 3 "no resources available",
        /// The sender of the REJ waited too long for a message. [`Rej::info`] contains the GUID of the
        /// sender's HCA.
        TIMEOUT = 4 "timeout",
        /// The request is not supported.
        UNSUPPORTED = 5 "unsupported request",
        /// A communication ID is invalid.
        INVALID_COMM_ID = 6 "invalid communication ID",
        /// The local and remote communication IDs and the QPN do not belong to the same connection.
        INVALID_COMM_INSTANCE = 7 "invalid communication instance",
        /// The service ID is not supported.
        INVALID_SERVICE_ID = 8 "invalid service ID",
        /// The transport service is not supported.
        INVALID_TRANSPORT = 9 "invalid transport service type",
        /// An older connection still uses the QP (stale connection).
        STALE_CONNECTION = 10 "stale connection",
        /// The RD channel does not exist.
        NO_RDC = 11 "RDC does not exist",
        /// The GID of the primary path is rejected.
        PRIMARY_GID = 12 "primary GID rejected",
        /// The LID of the primary path is rejected.
        PRIMARY_LID = 13 "primary LID rejected",
        /// The SL of the primary path is rejected.
        PRIMARY_SL = 14 "primary SL rejected",
        /// The traffic class of the primary path is rejected.
        PRIMARY_TRAFFIC_CLASS = 15 "primary traffic class rejected",
        /// The hop limit of the primary path is rejected.
        PRIMARY_HOP_LIMIT = 16 "primary hop limit rejected",
        /// The packet rate of the primary path is rejected.
        PRIMARY_RATE = 17 "primary packet rate rejected",
        /// The GID of the alternate path is rejected.
        ALTERNATE_GID = 18 "alternate GID rejected",
        /// The LID of the alternate path is rejected.
        ALTERNATE_LID = 19 "alternate LID rejected",
        /// The SL of the alternate path is rejected.
        ALTERNATE_SL = 20 "alternate SL rejected",
        /// The traffic class of the alternate path is rejected.
        ALTERNATE_TRAFFIC_CLASS = 21 "alternate traffic class rejected",
        /// The hop limit of the alternate path is rejected.
        ALTERNATE_HOP_LIMIT = 22 "alternate hop limit rejected",
        /// The packet rate of the alternate path is rejected.
        ALTERNATE_RATE = 23 "alternate packet rate rejected",
        /// The request must be sent to another CM.
        REDIRECTION = 24 "port and CM redirection",
        /// The request must be sent to another port of the same node.
        PORT_REDIRECTION = 25 "port redirection",
        /// The path MTU is not supported.
        INVALID_MTU = 26 "invalid path MTU",
        /// The sender of the REJ does not accept the number of responder resources.
        INSUFFICIENT_RESPONDER_RESOURCES = 27 "insufficient responder resources",
        /// The consumer rejects the request. [`Rej::private_data`] contains the consumer's reason.
        CONSUMER = 28 "consumer reject",
        /// The RNR retry count is rejected.
        RNR_RETRY_COUNT = 29 "RNR retry count rejected",
        /// The communication ID is already in use.
        DUPLICATE_COMM_ID = 30 "duplicate local communication ID",
        /// The class version is not supported.
        UNSUPPORTED_VERSION = 31 "unsupported class version",
        /// The flow label of the primary path is rejected.
        PRIMARY_FLOW_LABEL = 32 "primary flow label rejected",
        /// The flow label of the alternate path is rejected.
        ALTERNATE_FLOW_LABEL = 33 "alternate flow label rejected",
    }
}

crate::layout! {
    /// REJ: rejects a message.
    pub struct Rej: 232 {
        /// The sender's communication ID; zero if the sender has assigned none.
        pub local_comm_id: u32 = bits(0, 0, 32),
        /// The receiver's communication ID.
        pub remote_comm_id: u32 = bits(4, 0, 32),
        /// The rejected message.
        pub message: ReferencedMessage = bits(8, 0, 2),
        /// The number of valid bytes of `info`, 0 to 72.
        pub info_length: u8 = bits(9, 0, 7),
        /// The reason.
        pub reason: RejectReason = bits(10, 0, 16),
        /// Additional information, whose meaning depends on the reason.
        pub info: [u8; 72] = bits(12, 0, 576),
        /// Private data of the consumer.
        pub private_data: [u8; 148] = bits(84, 0, 1184),
    }
}

attribute!(Rej = CM_REJ in COMMUNICATION);

crate::layout! {
    /// MRA: reports that a message was received, but that the response takes longer than the
    /// timeout.
    pub struct Mra: 232 {
        /// The sender's communication ID.
        pub local_comm_id: u32 = bits(0, 0, 32),
        /// The receiver's communication ID.
        pub remote_comm_id: u32 = bits(4, 0, 32),
        /// The message whose receipt is confirmed.
        pub message: ReferencedMessage = bits(8, 0, 2),
        /// The time that the sender of the MRA needs to respond: 4.096 µs × 2^value.
        pub service_timeout: u8 = bits(9, 0, 5),
        /// Private data of the consumer.
        pub private_data: [u8; 222] = bits(10, 0, 1776),
    }
}

attribute!(Mra = CM_MRA in COMMUNICATION);
