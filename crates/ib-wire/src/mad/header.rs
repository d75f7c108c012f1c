//! The common header of all MADs, and its codes; IBTA volume 1, chapter 13.4.3.
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
    /// The common header of MADs.
    pub struct MadHeader: 24 {
        /// The base version: 1.
        pub base_version: u8 = bits(0, 0, 8),
        /// The management class.
        pub class: MgmtClass = bits(1, 0, 8),
        /// The class version.
        pub class_version: u8 = bits(2, 0, 8),
        /// The method, including the response bit.
        pub method: Method = bits(3, 0, 8),
        /// The status. In a directed-route SMP, bit 15 is the direction.
        pub status: MadStatus = bits(4, 0, 16),
        /// A class-specific field. In a directed-route SMP, it contains the hop pointer and the hop
        /// count.
        pub class_specific: u16 = bits(6, 0, 16),
        /// The transaction ID.
        pub transaction_id: TransactionId = bits(8, 0, 64),
        /// The attribute ID.
        pub attribute_id: AttributeId = bits(16, 0, 16),
        /// The attribute modifier, which selects an instance of the attribute or a part of it.
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
        /// Subnet administration (SA).
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
        /// Address resolution by multicast between ACM services.
        ACM = 0x2c "ACM",
        /// Messages between ibtracer and its agents.
        TRACER = 0x30 "ibtracer",
        /// `ibping` of infiniband-diags.
        PING = 0x32 "ibping",
        /// `ibsysstat` of infiniband-diags.
        SYSTEM_STATUS = 0x33 "ibsysstat",
    }
}

impl MgmtClass {
    /// Returns true for the two classes of SMPs, which are sent on QP0 and VL15.
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

    /// Returns true if the class may use RMPP.
    #[must_use]
    pub const fn may_use_rmpp(self) -> bool {
        matches!(self.0, 0x03 | 0x06 | 0x10 | 0x12 | 0x30..=0x4f)
    }

    /// Returns the byte offset of the attribute data in a MAD of the class.
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

    /// Returns the byte offset of the end of the attribute data.
    ///
    /// The end is at byte 128 for SMPs, which have 64 bytes of data, and at byte 256 for other
    /// classes.
    #[inline]
    #[must_use]
    pub const fn data_end(self) -> usize {
        if self.is_smp() { 128 } else { 256 }
    }

    /// Returns the class version that this crate implements.
    #[must_use]
    pub const fn version(self) -> u8 {
        match self.0 {
            0x03 | 0x07 | 0x21 => 2,
            _ => 1,
        }
    }
}

codes! {
    /// A method; IBTA volume 1, chapter 13.4.5. Bit 7 is the response bit.
    Method(u8) {
        /// Reads an attribute.
        GET = 0x01 "Get",
        /// Writes an attribute.
        SET = 0x02 "Set",
        /// The response to Get or Set.
        GET_RESP = 0x81 "GetResp",
        /// A MAD that requires no response.
        SEND = 0x03 "Send",
        /// A notice to the SM or another class manager.
        TRAP = 0x05 "Trap",
        /// A notice forwarded to a subscriber.
        REPORT = 0x06 "Report",
        /// Response to Report.
        REPORT_RESP = 0x86 "ReportResp",
        /// Acknowledges a Trap. The response bit is not set.
        TRAP_REPRESS = 0x07 "TrapRepress",
        /// Reads all records that match the request.
        GET_TABLE = 0x12 "GetTable",
        /// Response to GetTable.
        GET_TABLE_RESP = 0x92 "GetTableResp",
        /// Reads one `TraceRecord` for each node of a path.
        GET_TRACE_TABLE = 0x13 "GetTraceTable",
        /// Response to GetTraceTable.
        GET_TRACE_TABLE_RESP = 0x93 "GetTraceTableResp",
        /// Reads records. The request can have several RMPP segments.
        GET_MULTI = 0x14 "GetMulti",
        /// Response to GetMulti.
        GET_MULTI_RESP = 0x94 "GetMultiResp",
        /// Deletes a record.
        DELETE = 0x15 "Delete",
        /// Response to Delete.
        DELETE_RESP = 0x95 "DeleteResp",
    }
}

impl Method {
    /// The response bit.
    pub const RESPONSE_BIT: u8 = 0x80;

    /// Returns true if the response bit is set or the method is `TrapRepress`.
    #[inline]
    #[must_use]
    pub const fn is_response(self) -> bool {
        self.0 & Self::RESPONSE_BIT != 0 || self.0 == Self::TRAP_REPRESS.0
    }

    /// Returns the method of the response to this method; `None` if the method has no response.
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

/// The status of a MAD; IBTA volume 1, chapter 13.4.7.
///
/// Bit 0: the agent is busy. Bit 1: redirection is required. Bits 2 to 4: invalid-field code. Bits 8
/// to 15: class specific.
///
/// In a directed-route SMP, bit 15 of the status field is the direction.
/// [`Mad::status`](super::Mad::status) omits this bit; [`MadHeader::status`] contains it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MadStatus(pub u16);

crate::field!(MadStatus(u16));

impl MadStatus {
    /// Success.
    pub const OK: Self = Self(0);
    /// The agent is busy and has dropped the request.
    pub const BUSY: Self = Self(0x0001);
    /// Redirection is required, since another port serves the class; see
    /// [`ClassPortInfo`](super::ClassPortInfo).
    pub const REDIRECT: Self = Self(0x0002);
    /// The base or class version is not supported.
    pub const BAD_VERSION: Self = Self(0x0004);
    /// The method is not supported.
    pub const BAD_METHOD: Self = Self(0x0008);
    /// The method is not supported for the attribute.
    pub const BAD_METHOD_ATTRIBUTE: Self = Self(0x000c);
    /// A field of the attribute, or the attribute modifier, is invalid.
    pub const BAD_FIELD: Self = Self(0x001c);
    /// SA status: the SA is out of resources.
    pub const SA_NO_RESOURCES: Self = Self(0x0100);
    /// SA status: the request is invalid.
    pub const SA_REQUEST_INVALID: Self = Self(0x0200);
    /// SA status: no record matches.
    pub const SA_NO_RECORDS: Self = Self(0x0300);
    /// SA status: more than one record matches a Get.
    pub const SA_TOO_MANY_RECORDS: Self = Self(0x0400);
    /// SA status: a GID in the request is invalid.
    pub const SA_INVALID_GID: Self = Self(0x0500);
    /// SA status: the request does not specify all required components.
    pub const SA_INSUFFICIENT_COMPONENTS: Self = Self(0x0600);
    /// SA status: the request is denied.
    pub const SA_REQUEST_DENIED: Self = Self(0x0700);
    /// SA status: the SA suggests a priority (`PRIO_SUGGESTED` in OpenSM).
    pub const SA_PRIORITY_SUGGESTED: Self = Self(0x0800);

    /// Returns true if the status is zero: success.
    #[must_use]
    pub const fn is_ok(self) -> bool {
        self.0 == 0
    }

    /// Returns true if the agent is busy, so that a retry can succeed.
    ///
    /// Some agents return status 7 for an invalid field, because they do not shift the code 7 to
    /// bits 2 to 4. Status 7 contains both [`MadStatus::BUSY`] and [`MadStatus::REDIRECT`]. No agent
    /// sets these two bits for another reason, so a status with both bits does not count as busy.
    #[must_use]
    pub const fn is_busy(self) -> bool {
        self.0 & Self::BUSY.0 != 0 && self.0 & Self::REDIRECT.0 == 0
    }

    /// Returns the invalid-field code, bits 2 to 4; 0 if no field is invalid.
    #[must_use]
    pub const fn field_code(self) -> u8 {
        (self.0 >> 2 & 7) as u8
    }

    /// Returns the class-specific part, bits 8 to 15.
    #[must_use]
    pub const fn class_specific(self) -> u8 {
        (self.0 >> 8) as u8
    }
}

impl fmt::Display for MadStatus {
    /// Writes `ok`, or the status in hexadecimal and its decoded bits.
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

/// A transaction ID, by which a requester matches a response to its request.
///
/// Linux uses the upper 32 bits to distinguish its MAD agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(pub u64);

crate::field!(TransactionId(u64));

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:016x}", self.0)
    }
}
