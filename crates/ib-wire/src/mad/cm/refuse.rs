//! REJ and MRA: refusing a message, and asking for patience; IBTA volume 1, chapters 12.6.6 and
//! 12.6.7.

use crate::mad::attribute;
use crate::mad::codes::codes;

codes! {
    /// The message that is refused or acknowledged.
    Refused(u8) {
        /// A REQ.
        REQ = 0 "REQ",
        /// A REP.
        REP = 1 "REP",
        /// A LAP of an MRA; any other message of a REJ.
        OTHER = 2 "other",
    }
}

codes! {
    /// Why a message is refused; IBTA volume 1, table 106.
    RejectReason(u16) {
        /// No queue pair.
        NO_QP = 1 "no QP available",
        /// No end-to-end context.
        NO_EEC = 2 "no EEC available",
        /// No resources.
        NO_RESOURCES = 3 "no resources available",
        /// No answer in time; the information is the sender's adapter.
        TIMEOUT = 4 "timeout",
        /// The request is not supported.
        UNSUPPORTED = 5 "unsupported request",
        /// A number of a connection is wrong.
        INVALID_COMM_ID = 6 "invalid communication ID",
        /// Numbers of the connection do not belong together.
        INVALID_COMM_INSTANCE = 7 "invalid communication instance",
        /// Nobody serves the service.
        INVALID_SERVICE_ID = 8 "invalid service ID",
        /// The transport is not supported.
        INVALID_TRANSPORT = 9 "invalid transport service type",
        /// An older connection of the queue pair still stands.
        STALE_CONNECTION = 10 "stale connection",
        /// The end-to-end context does not exist.
        NO_RDC = 11 "RDC does not exist",
        /// The GID of the primary path is wrong.
        PRIMARY_GID = 12 "primary GID rejected",
        /// The LID of the primary path is wrong.
        PRIMARY_LID = 13 "primary LID rejected",
        /// The service level of the primary path is wrong.
        PRIMARY_SL = 14 "primary SL rejected",
        /// The traffic class of the primary path is wrong.
        PRIMARY_TRAFFIC_CLASS = 15 "primary traffic class rejected",
        /// The hop limit of the primary path is wrong.
        PRIMARY_HOP_LIMIT = 16 "primary hop limit rejected",
        /// The rate of the primary path is wrong.
        PRIMARY_RATE = 17 "primary packet rate rejected",
        /// The GID of the alternate path is wrong.
        ALTERNATE_GID = 18 "alternate GID rejected",
        /// The LID of the alternate path is wrong.
        ALTERNATE_LID = 19 "alternate LID rejected",
        /// The service level of the alternate path is wrong.
        ALTERNATE_SL = 20 "alternate SL rejected",
        /// The traffic class of the alternate path is wrong.
        ALTERNATE_TRAFFIC_CLASS = 21 "alternate traffic class rejected",
        /// The hop limit of the alternate path is wrong.
        ALTERNATE_HOP_LIMIT = 22 "alternate hop limit rejected",
        /// The rate of the alternate path is wrong.
        ALTERNATE_RATE = 23 "alternate packet rate rejected",
        /// Another port serves the service.
        REDIRECTION = 24 "port and CM redirection",
        /// Another port of this node serves the service.
        PORT_REDIRECTION = 25 "port redirection",
        /// The MTU is wrong.
        INVALID_MTU = 26 "invalid path MTU",
        /// Too few reads at once.
        INSUFFICIENT_RESPONDER_RESOURCES = 27 "insufficient responder resources",
        /// The consumer refuses; it says why in private data.
        CONSUMER = 28 "consumer reject",
        /// The count of retries after "not ready" is wrong.
        RNR_RETRY_COUNT = 29 "RNR retry count rejected",
        /// The number of the connection is in use.
        DUPLICATE_COMM_ID = 30 "duplicate local communication ID",
        /// The version of the class is not supported.
        UNSUPPORTED_VERSION = 31 "unsupported class version",
        /// The flow label of the primary path is wrong.
        PRIMARY_FLOW_LABEL = 32 "primary flow label rejected",
        /// The flow label of the alternate path is wrong.
        ALTERNATE_FLOW_LABEL = 33 "alternate flow label rejected",
    }
}

crate::layout! {
    /// The refusal of a message.
    pub struct Rej: 232 {
        /// The sender's number of the connection; zero when it has none.
        pub local_comm_id: u32 = bits(0, 0, 32),
        /// The receiver's number of the connection.
        pub remote_comm_id: u32 = bits(4, 0, 32),
        /// What is refused.
        pub message: Refused = bits(8, 0, 2),
        /// The bytes of `info` that mean something, 0 to 72.
        pub info_length: u8 = bits(9, 0, 7),
        /// Why.
        pub reason: RejectReason = bits(10, 0, 16),
        /// Further information by reason.
        pub info: [u8; 72] = bits(12, 0, 576),
        /// What the consumers say.
        pub private_data: [u8; 148] = bits(84, 0, 1184),
    }
}

attribute!(Rej = CM_REJ in COMMUNICATION);

crate::layout! {
    /// The message came; its answer takes longer.
    pub struct Mra: 232 {
        /// The sender's number of the connection.
        pub local_comm_id: u32 = bits(0, 0, 32),
        /// The receiver's number of the connection.
        pub remote_comm_id: u32 = bits(4, 0, 32),
        /// What came.
        pub message: Refused = bits(8, 0, 2),
        /// How long the answer takes: 4.096 µs × 2^value.
        pub service_timeout: u8 = bits(9, 0, 5),
        /// What the consumers say.
        pub private_data: [u8; 222] = bits(10, 0, 1776),
    }
}

attribute!(Mra = CM_MRA in COMMUNICATION);
