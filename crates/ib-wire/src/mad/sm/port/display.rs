//! Implements `Display` for port attributes in the format of smpquery.

use std::fmt;

use super::{MlnxExtPortInfo, PortInfo, PortInfoExtended};
use crate::mad::dump::{Hex, OneOf, line, mask_line};
use crate::mad::sm::{
    CapabilityMask, CapabilityMask2, LinkSpeedExtMask, LinkSpeedMask, LinkWidthMask, MtuCode,
    PhysState, PortState, VlCap,
};

const WIDTHS: [&str; 5] = ["1X", "4X", "8X", "12X", "2X"];
const SPEEDS: [&str; 3] = ["2.5 Gbps", "5.0 Gbps", "10.0 Gbps"];
const EXTENDED_SPEEDS: [&str; 4] = ["14.0625 Gbps", "25.78125 Gbps", "53.125 Gbps", "106.25 Gbps"];

impl fmt::Display for PortInfo {
    /// Writes the lines that `smpquery portinfo` prints, each with a newline. The M_Key is hidden.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(f, "Mkey", "<not displayed>")?;
        line(f, "GidPrefix", Hex(self.gid_prefix, 16))?;
        line(f, "Lid", self.lid)?;
        line(f, "SMLid", self.master_sm_lid)?;
        // The output lacks the name of the CableInfo bit, since libibmad has no name for it.
        let known =
            CapabilityMask::NAMES.iter().filter(|(bit, _)| *bit != CapabilityMask::CABLE_INFO);
        let names = known.map(|&(bit, name)| (bit.0, name));
        mask_line(f, "CapMask", self.capability_mask.0, names)?;
        line(f, "DiagCode", Hex(self.diag_code.into(), 4))?;
        line(f, "MkeyLeasePeriod", self.m_key_lease_period)?;
        line(f, "LocalPort", self.local_port)?;
        self.link(f)?;
        self.limits(f)?;
        line(f, "ClientReregister", u8::from(self.client_reregister))?;
        line(f, "McastPkeyTrapSuppressionEnabled", self.multicast_p_key_trap_suppression)?;
        line(f, "SubnetTimeout", self.subnet_timeout)?;
        line(f, "RespTimeVal", self.resp_time_value)?;
        line(f, "LocalPhysErr", self.local_phy_errors)?;
        line(f, "OverrunErr", self.overrun_errors)?;
        line(f, "MaxCreditHint", self.max_credit_hint)?;
        line(f, "RoundTrip", self.link_round_trip_latency)?;
        let names = CapabilityMask2::NAMES.iter().map(|&(bit, name)| (bit.0.into(), name));
        mask_line(f, "CapabilityMask2", self.capability_mask2.0.into(), names)?;
        line(f, "LinkSpeedExtActive", extended_speed(self.link_speed_ext_active))?;
        line(f, "LinkSpeedExtSupported", extended_speeds(self.link_speed_ext_supported))?;
        match self.link_speed_ext_enabled.0 {
            30 => line(f, "LinkSpeedExtEnabled", "Extended link speeds disabled"),
            _ => line(f, "LinkSpeedExtEnabled", extended_speeds(self.link_speed_ext_enabled)),
        }
    }
}

impl PortInfo {
    fn link(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(f, "LinkWidthEnabled", widths(self.link_width_enabled))?;
        let is_unlisted = is_unlisted_width(self.link_width_supported);
        line(f, "LinkWidthSupported", Extension(widths(self.link_width_supported), is_unlisted))?;
        line(f, "LinkWidthActive", width(self.link_width_active))?;
        line(f, "LinkSpeedSupported", speeds(self.link_speed_supported))?;
        line(f, "LinkState", state(self.port_state))?;
        line(f, "PhysLinkState", phys_state(self.phys_state, 7))?;
        line(f, "LinkDownDefState", phys_state(self.link_down_default_state, 2))?;
        line(f, "ProtectBits", self.m_key_protect)?;
        line(f, "LMC", self.lmc)?;
        line(f, "LinkSpeedActive", speed(self.link_speed_active))?;
        line(f, "LinkSpeedEnabled", speeds(self.link_speed_enabled))?;
        line(f, "NeighborMTU", mtu(self.neighbor_mtu))?;
        line(f, "SMSL", self.master_sm_sl)
    }

    fn limits(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(f, "VLCap", lanes(self.vl_cap))?;
        line(f, "InitType", Hex(self.init_type.into(), 2))?;
        line(f, "VLHighLimit", self.vl_high_limit)?;
        line(f, "VLArbHighCap", self.vl_arbitration_high_cap)?;
        line(f, "VLArbLowCap", self.vl_arbitration_low_cap)?;
        line(f, "InitReply", Hex(self.init_type_reply.into(), 2))?;
        line(f, "MtuCap", mtu(self.mtu_cap))?;
        line(f, "VLStallCount", self.vl_stall_count)?;
        line(f, "HoqLife", self.hoq_life)?;
        match self.operational_vls {
            VlCap(0) => line(f, "OperVLs", "No change")?,
            operational => line(f, "OperVLs", lanes(operational))?,
        }
        line(f, "PartEnforceInb", u8::from(self.partition_enforcement_inbound))?;
        line(f, "PartEnforceOutb", u8::from(self.partition_enforcement_outbound))?;
        line(f, "FilterRawInb", u8::from(self.filter_raw_inbound))?;
        line(f, "FilterRawOutb", u8::from(self.filter_raw_outbound))?;
        line(f, "MkeyViolations", self.m_key_violations)?;
        line(f, "PkeyViolations", self.p_key_violations)?;
        line(f, "QkeyViolations", self.q_key_violations)?;
        line(f, "GuidCap", self.guid_cap)
    }
}

impl fmt::Display for MlnxExtPortInfo {
    /// Writes the lines that `smpquery mlnxextportinfo` prints, each with a newline.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(f, "StateChangeEnable", Hex(self.state_change_enable.into(), 2))?;
        line(f, "LinkSpeedSupported", Hex(self.link_speed_supported.0.into(), 2))?;
        line(f, "LinkSpeedEnabled", Hex(self.link_speed_enabled.0.into(), 2))?;
        line(f, "LinkSpeedActive", Hex(self.link_speed_active.0.into(), 2))
    }
}

impl fmt::Display for PortInfoExtended {
    /// Writes the lines that `smpquery portinfoextended` prints, each with a newline.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(f, "CapMask", Hex(self.capability_mask.into(), 8))?;
        for (name, mode) in [
            ("FECModeActive", self.fec_mode_active),
            ("FDRFECModeSupported", self.fdr_fec_mode_supported),
            ("FDRFECModeEnabled", self.fdr_fec_mode_enabled),
            ("EDRFECModeSupported", self.edr_fec_mode_supported),
            ("EDRFECModeEnabled", self.edr_fec_mode_enabled),
            ("HDRFECModeSupported", self.hdr_fec_mode_supported),
            ("HDRFECModeEnabled", self.hdr_fec_mode_enabled),
            ("NDRFECModeSupported", self.ndr_fec_mode_supported),
            ("NDRFECModeEnabled", self.ndr_fec_mode_enabled),
        ] {
            line(f, name, Hex(mode.into(), 4))?;
        }
        Ok(())
    }
}

/// Displays the first field. If the second field is true, appends ` (IBA extension)`: the specification does not list
/// the value.
struct Extension<T>(T, bool);

impl<T: fmt::Display> fmt::Display for Extension<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.0, if self.1 { " (IBA extension)" } else { "" })
    }
}

/// Displays the first field, a name. If it is `None`, displays the second field, and the third field in parentheses.
struct Named(Option<&'static str>, &'static str, u8);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) => f.write_str(name),
            None => write!(f, "{}({})", self.1, self.2),
        }
    }
}

fn widths(mask: LinkWidthMask) -> OneOf<'static> {
    OneOf { value: mask.0, names: &WIDTHS, zero: "undefined (0)" }
}

/// Returns true if the specification does not list this combination of widths.
fn is_unlisted_width(mask: LinkWidthMask) -> bool {
    mask.0 < 32 && !matches!(mask.0, 1 | 3 | 7 | 11 | 15 | 17 | 19 | 23 | 27 | 31)
}

fn width(mask: LinkWidthMask) -> Named {
    let bit = mask.0.trailing_zeros() as usize;
    let name = mask.0.is_power_of_two().then(|| WIDTHS.get(bit)).flatten();
    Named(name.copied(), "undefined ", mask.0)
}

fn speeds(mask: LinkSpeedMask) -> impl fmt::Display {
    let is_unlisted = matches!(mask.0, 0 | 2 | 4 | 6);
    Extension(OneOf { value: mask.0, names: &SPEEDS, zero: "undefined (0)" }, is_unlisted)
}

fn speed(mask: LinkSpeedMask) -> Named {
    let bit = mask.0.trailing_zeros() as usize;
    let name = mask.0.is_power_of_two().then(|| SPEEDS.get(bit)).flatten().copied();
    Named(if mask.0 == 0 { Some("Extended speed") } else { name }, "undefined ", mask.0)
}

fn extended_speeds(mask: LinkSpeedExtMask) -> OneOf<'static> {
    OneOf { value: mask.0, names: &EXTENDED_SPEEDS, zero: "0" }
}

fn extended_speed(mask: LinkSpeedExtMask) -> Named {
    let bit = mask.0.trailing_zeros() as usize;
    let name = mask.0.is_power_of_two().then(|| EXTENDED_SPEEDS.get(bit)).flatten().copied();
    Named(if mask.0 == 0 { Some("No Extended Speed") } else { name }, "undefined ", mask.0)
}

fn state(state: PortState) -> Named {
    // libibmad has no name for ActiveDefer.
    Named(state.name().filter(|_| state <= PortState::ACTIVE), "?", state.0)
}

fn phys_state(state: PhysState, highest: u8) -> Named {
    Named(state.name().filter(|_| state.0 <= highest), "?", state.0)
}

fn mtu(mtu: MtuCode) -> Named {
    Named(mtu.name(), "?", mtu.0)
}

fn lanes(lanes: VlCap) -> Named {
    Named(lanes.name(), "?", lanes.0)
}
