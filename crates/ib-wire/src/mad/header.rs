//! The common header of all management datagrams and its codes; IBTA volume 1, chapter 13.4.3.
//!
//! ```text
//!  0 BaseVersion  1 MgmtClass  2 ClassVersion  3 R | Method
//!  4 Status (2)                6 class specific (2)
//!  8 TransactionID (8)
//! 16 AttributeID (2)          18 reserved (2)
//! 20 AttributeModifier (4)
//! ```

use std::fmt;

use super::codes::codes;
use crate::mad::AttributeId;

crate::layout! {
    /// The common header.
    pub struct MadHeader: 24 {
        /// The version of the common header: 1.
        pub base_version: u8 = bits(0, 0, 8),
        /// The management class.
        pub class: MgmtClass = bits(1, 0, 8),
        /// The version of the class.
        pub class_version: u8 = bits(2, 0, 8),
        /// The method, the response bit included.
        pub method: Method = bits(3, 0, 8),
        /// The status; bit 15 is the direction of a directed-route SMP.
        pub status: MadStatus = bits(4, 0, 16),
        /// What the class makes of bytes 6 and 7: hop pointer and hop count of a directed-route SMP.
        pub class_specific: u16 = bits(6, 0, 16),
        /// The transaction that the datagram belongs to.
        pub transaction_id: TransactionId = bits(8, 0, 64),
        /// The attribute.
        pub attribute_id: AttributeId = bits(16, 0, 16),
        /// Which part or instance of the attribute.
        pub attribute_modifier: u32 = bits(20, 0, 32),
    }
}

codes! {
    /// A management class; IBTA volume 1, table 108.
    MgmtClass(u8) {
        /// Subnet management, LID routed.
        SUBN_LID_ROUTED = 0x01 "SubnMgtLID",
        /// Subnet management, directed route.
        SUBN_DIRECTED_ROUTE = 0x81 "SubnMgtDR",
        /// Subnet administration.
        SUBN_ADM = 0x03 "SubnAdm",
        /// Performance management.
        PERFORMANCE = 0x04 "Perf",
        /// Baseboard management.
        BASEBOARD = 0x05 "BM",
        /// Device management.
        DEVICE_MANAGEMENT = 0x06 "DevMgt",
        /// Communication management.
        COMMUNICATION = 0x07 "ComMgt",
        /// SNMP tunnelling.
        SNMP = 0x08 "SNMP",
        /// Device administration.
        DEVICE_ADMINISTRATION = 0x10 "DevAdm",
        /// Boot management.
        BOOT = 0x11 "BootMgt",
        /// Bus-attached instrumentation.
        BIS = 0x12 "BIS",
        /// Congestion control.
        CONGESTION_CONTROL = 0x21 "CongMgt",
        /// The multicast address resolution of IB ACM.
        ACM = 0x2c "ACM",
        /// The source-route agent of ibtracer.
        TRACER = 0x30 "ibtracer",
        /// The ping of OpenIB.
        PING = 0x32 "ibping",
        /// The system status of OpenIB.
        SYSTEM_STATUS = 0x33 "ibsysstat",
    }
}

impl MgmtClass {
    /// Returns true for the two classes of SMPs, which travel on QP0 and VL15.
    #[inline]
    #[must_use]
    pub const fn is_smp(self) -> bool {
        self.0 & 0x7f == 1
    }

    /// Returns true for the vendor classes with an OUI, 0x30 to 0x4f.
    #[must_use]
    pub const fn has_oui(self) -> bool {
        matches!(self.0, 0x30..=0x4f)
    }

    /// Returns true when the class may use RMPP.
    #[must_use]
    pub const fn may_use_rmpp(self) -> bool {
        matches!(self.0, 0x03 | 0x06 | 0x10 | 0x12 | 0x30..=0x4f)
    }

    /// Returns the byte of the datagram where the attribute's data starts.
    #[inline]
    #[must_use]
    pub const fn data_offset(self) -> usize {
        match self.0 {
            0x03 => 56,
            0x07 | 0x09..=0x0f | 0x2c => 24,
            0x30..=0x4f => 40,
            _ => 64,
        }
    }

    /// Returns the byte of the datagram after the attribute's data.
    ///
    /// An SMP has 64 bytes of data; those of other classes reach to the end.
    #[inline]
    #[must_use]
    pub const fn data_end(self) -> usize {
        if self.is_smp() { 128 } else { 256 }
    }

    /// Returns the class version that this crate speaks.
    #[must_use]
    pub const fn version(self) -> u8 {
        match self.0 {
            0x03 | 0x07 | 0x21 => 2,
            _ => 1,
        }
    }
}

codes! {
    /// What a datagram asks for; IBTA volume 1, chapter 13.4.5. Bit 7 marks a response.
    Method(u8) {
        /// Read an attribute.
        GET = 0x01 "Get",
        /// Write an attribute.
        SET = 0x02 "Set",
        /// The answer of Get and of Set.
        GET_RESP = 0x81 "GetResp",
        /// A datagram without an answer.
        SEND = 0x03 "Send",
        /// A notice to a manager.
        TRAP = 0x05 "Trap",
        /// A notice forwarded to a subscriber.
        REPORT = 0x06 "Report",
        /// The answer of Report.
        REPORT_RESP = 0x86 "ReportResp",
        /// The acknowledgement of a Trap; it has no response bit.
        TRAP_REPRESS = 0x07 "TrapRepress",
        /// Read all records that match.
        GET_TABLE = 0x12 "GetTable",
        /// The answer of GetTable.
        GET_TABLE_RESP = 0x92 "GetTableResp",
        /// Read the trace of a path.
        GET_TRACE_TABLE = 0x13 "GetTraceTable",
        /// The answer of GetTraceTable.
        GET_TRACE_TABLE_RESP = 0x93 "GetTraceTableResp",
        /// Read with a request of several segments.
        GET_MULTI = 0x14 "GetMulti",
        /// The answer of GetMulti.
        GET_MULTI_RESP = 0x94 "GetMultiResp",
        /// Delete a record.
        DELETE = 0x15 "Delete",
        /// The answer of Delete.
        DELETE_RESP = 0x95 "DeleteResp",
    }
}

impl Method {
    /// The bit of a response.
    pub const RESPONSE_BIT: u8 = 0x80;

    /// Returns true when the response bit is set or the method is `TrapRepress`.
    #[inline]
    #[must_use]
    pub const fn is_response(self) -> bool {
        self.0 & Self::RESPONSE_BIT != 0 || self.0 == Self::TRAP_REPRESS.0
    }

    /// Returns the method that answers this one; `None` for one that has no answer.
    #[must_use]
    pub const fn response(self) -> Option<Self> {
        match self {
            Self::SET => Some(Self::GET_RESP),
            Self::TRAP => Some(Self::TRAP_REPRESS),
            Self::SEND | Self::TRAP_REPRESS => None,
            Self(code) if code & Self::RESPONSE_BIT != 0 => None,
            Self(code) => Some(Self(code | Self::RESPONSE_BIT)),
        }
    }
}

/// The status of a datagram; IBTA volume 1, chapter 13.4.7.
///
/// Bit 0 busy, bit 1 redirection required, bits 2 to 4 a code of invalid fields, bits 8 to 15 what the
/// class makes of them. The direction bit of a directed-route SMP is not part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MadStatus(pub u16);

crate::field!(MadStatus(u16));

impl MadStatus {
    /// All is well.
    pub const OK: Self = Self(0);
    /// The agent is busy; the request was dropped.
    pub const BUSY: Self = Self(0x0001);
    /// Another port serves the class; `ClassPortInfo` names it.
    pub const REDIRECT: Self = Self(0x0002);
    /// The base or class version is not supported.
    pub const BAD_VERSION: Self = Self(0x0004);
    /// The method is not supported.
    pub const BAD_METHOD: Self = Self(0x0008);
    /// The method is not supported for the attribute.
    pub const BAD_METHOD_ATTRIBUTE: Self = Self(0x000c);
    /// A field of the attribute or its modifier has an illegal value.
    pub const BAD_FIELD: Self = Self(0x001c);
    /// Subnet administration: out of resources.
    pub const SA_NO_RESOURCES: Self = Self(0x0100);
    /// Subnet administration: the request is invalid.
    pub const SA_REQUEST_INVALID: Self = Self(0x0200);
    /// Subnet administration: no record matches.
    pub const SA_NO_RECORDS: Self = Self(0x0300);
    /// Subnet administration: more than one record matches a Get.
    pub const SA_TOO_MANY_RECORDS: Self = Self(0x0400);
    /// Subnet administration: a GID is invalid.
    pub const SA_INVALID_GID: Self = Self(0x0500);
    /// Subnet administration: components that the request needs are missing.
    pub const SA_INSUFFICIENT_COMPONENTS: Self = Self(0x0600);
    /// Subnet administration: the request is denied.
    pub const SA_REQUEST_DENIED: Self = Self(0x0700);
    /// Subnet administration: a priority is suggested.
    pub const SA_PRIORITY_SUGGESTED: Self = Self(0x0800);

    /// Returns true for zero.
    #[must_use]
    pub const fn is_ok(self) -> bool {
        self.0 == 0
    }

    /// Returns true when the agent may answer later: [`MadStatus::BUSY`] is set.
    ///
    /// Nobody who is busy names another port: where [`MadStatus::REDIRECT`] is set as well, an agent has put the bare
    /// code of a bad field, 7, where the whole status is, and means what it says.
    #[must_use]
    pub const fn is_busy(self) -> bool {
        self.0 & Self::BUSY.0 != 0 && self.0 & Self::REDIRECT.0 == 0
    }

    /// Returns the code of invalid fields, 0 to 7.
    #[must_use]
    pub const fn field_code(self) -> u8 {
        (self.0 >> 2 & 7) as u8
    }

    /// Returns the part of the class.
    #[must_use]
    pub const fn class_specific(self) -> u8 {
        (self.0 >> 8) as u8
    }
}

impl fmt::Display for MadStatus {
    /// Writes `ok` or the number and what its common part says.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_ok() {
            return f.write_str("ok");
        }
        write!(f, "0x{:04x}", self.0)?;
        let field = match self.field_code() {
            0 => None,
            1 => Some("bad version"),
            2 => Some("bad method"),
            3 => Some("bad method for attribute"),
            7 => Some("bad field"),
            _ => Some("reserved"),
        };
        let parts = [
            (self.0 & 1 != 0).then_some("busy"),
            (self.0 & 2 != 0).then_some("redirect"),
            field,
            (self.class_specific() != 0).then_some("class specific"),
        ];
        for (index, part) in parts.into_iter().flatten().enumerate() {
            write!(f, "{}{part}", if index == 0 { " (" } else { ", " })?;
        }
        if self.0 & 0xff1f != 0 { f.write_str(")") } else { Ok(()) }
    }
}

/// The number that ties a response to its request.
///
/// Linux lets the upper 32 bits tell its agents apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(pub u64);

crate::field!(TransactionId(u64));

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:016x}", self.0)
    }
}
