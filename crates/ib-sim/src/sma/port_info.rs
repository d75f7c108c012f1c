//! Handles a Set of PortInfo (IBTA volume 1, chapter 14.2.5.6).

use ib_topology::PortId;
use ib_wire::mad::MadStatus;
use ib_wire::mad::sm::{
    LinkSpeedExt2Mask, LinkSpeedExtMask, LinkSpeedMask, LinkWidthMask, MlnxExtPortInfo, PhysState,
    PortInfo, PortState, VlCap,
};

use crate::network::Network;
use crate::port::Port;

/// Writes the writable fields of PortInfo. Writes no field if a value is out of range.
pub(super) fn set(net: &mut Network, port: PortId, to: &PortInfo) -> Result<(), MadStatus> {
    let state = net.fabric.port(port);
    let (number, now) = (state.number, state.info);
    let is_switch = net.fabric.is_switch(state.node);
    let is_end = number == 0 || !is_switch;
    check_values(&now, to, is_end)?;
    // Port 0 of a switch has no link whose state could be changed.
    let has_link = !(is_switch && number == 0);
    if has_link {
        check_states(&now, to)?;
        if to.neighbor_mtu.0 > now.mtu_cap.0 {
            return Err(MadStatus::BAD_FIELD);
        }
    }
    let state = net.fabric.port_mut(port);
    if is_end {
        state.registrations += u32::from(to.client_reregister);
    }
    let info = &mut state.info;
    if is_end {
        info.m_key = to.m_key;
        info.gid_prefix = to.gid_prefix;
        info.lid = to.lid;
        info.lmc = to.lmc;
        info.master_sm_lid = to.master_sm_lid;
        info.master_sm_sl = to.master_sm_sl;
        info.m_key_lease_period = to.m_key_lease_period;
        info.m_key_protect = to.m_key_protect;
        info.subnet_timeout = to.subnet_timeout;
        info.client_reregister = false;
        // A Set clears a violation counter by writing zero.
        info.m_key_violations = kept(info.m_key_violations, to.m_key_violations);
        info.q_key_violations = kept(info.q_key_violations, to.q_key_violations);
    }
    info.p_key_violations = kept(info.p_key_violations, to.p_key_violations);
    info.vl_high_limit = to.vl_high_limit;
    info.init_type_reply = to.init_type_reply;
    if to.neighbor_mtu.0 != 0 {
        info.neighbor_mtu = to.neighbor_mtu;
    }
    if to.operational_vls.0 != 0 {
        info.operational_vls = to.operational_vls;
    }
    info.vl_stall_count = to.vl_stall_count;
    info.hoq_life = to.hoq_life;
    info.partition_enforcement_inbound = to.partition_enforcement_inbound;
    info.partition_enforcement_outbound = to.partition_enforcement_outbound;
    info.filter_raw_inbound = to.filter_raw_inbound;
    info.filter_raw_outbound = to.filter_raw_outbound;
    info.local_phy_errors = to.local_phy_errors;
    info.overrun_errors = to.overrun_errors;
    if to.link_down_default_state != PhysState::NO_CHANGE {
        info.link_down_default_state = to.link_down_default_state;
    }
    set_enabled(info, to);
    if has_link {
        set_states(net, port, to);
    }
    net.open_ports.wake(port);
    Ok(())
}

fn set_states(net: &mut Network, port: PortId, to: &PortInfo) {
    let state = &mut net.fabric.port_mut(port).info.phys_state;
    let trains = match to.phys_state {
        PhysState::DISABLED => {
            *state = PhysState::DISABLED;
            net.update_link(port);
            false
        }
        PhysState::POLLING | PhysState::SLEEP => {
            if *state == PhysState::DISABLED {
                *state = PhysState::POLLING;
            }
            true
        }
        _ => to.port_state == PortState::DOWN,
    };
    if trains {
        net.retrain(port);
    }
    if matches!(to.port_state, PortState::ARMED | PortState::ACTIVE)
        && net.fabric.port(port).is_up()
    {
        net.set_state(port, to.port_state);
    }
}

/// Handles a Set of Mellanox's vendor attribute `MlnxExtPortInfo`.
pub(super) fn set_mellanox(port: &mut Port, to: &MlnxExtPortInfo) {
    let own = &mut port.mellanox;
    // Bit 0 of StateChangeEnable lets the Set change LinkSpeedEnabled.
    if to.state_change_enable & 1 != 0 {
        own.link_speed_enabled = to.link_speed_enabled;
    }
}

/// Returns the value of a violation counter after a write: the new value, unless it is above the
/// old value.
const fn kept(old: u16, new: u16) -> u16 {
    if new <= old { new } else { old }
}

/// Checks the values in a Set of PortInfo whose validity does not depend on the link state.
fn check_values(now: &PortInfo, to: &PortInfo, is_end: bool) -> Result<(), MadStatus> {
    let vls = |cap: VlCap| cap.lanes().unwrap_or(0);
    let bad = is_end && (to.lid >= 0xc000 || to.master_sm_lid >= 0xc000)
        || to.neighbor_mtu.0 > 5
        || to.operational_vls.0 != 0 && !(1..=vls(now.vl_cap)).contains(&vls(to.operational_vls))
        || !matches!(
            to.link_down_default_state,
            PhysState::NO_CHANGE | PhysState::SLEEP | PhysState::POLLING
        )
        || !is_enabled(
            to.link_width_enabled.0,
            LinkWidthMask::ALL_SUPPORTED.0,
            now.link_width_supported.0,
        )
        || !is_enabled(to.link_speed_enabled.0, 15, now.link_speed_supported.0)
        || to.link_speed_ext_enabled.0 != 30
            && !is_enabled(to.link_speed_ext_enabled.0, 31, now.link_speed_ext_supported.0);
    if bad { Err(MadStatus::BAD_FIELD) } else { Ok(()) }
}

/// Returns true if an enable mask is "no change", "all", or a subset of the supported values.
const fn is_enabled(mask: u8, all: u8, supported: u8) -> bool {
    mask == 0 || mask == all || mask & !supported == 0
}

/// Checks that the requested states can be reached from the current states.
fn check_states(now: &PortInfo, to: &PortInfo) -> Result<(), MadStatus> {
    let phys_fits = matches!(
        to.phys_state,
        PhysState::NO_CHANGE | PhysState::SLEEP | PhysState::POLLING | PhysState::DISABLED
    );
    let state_fits = match to.port_state {
        PortState::NO_CHANGE | PortState::DOWN => true,
        PortState::ARMED => matches!(now.port_state, PortState::INIT | PortState::ARMED),
        PortState::ACTIVE => matches!(now.port_state, PortState::ARMED | PortState::ACTIVE),
        _ => false,
    };
    // A request for a physical state must not also request a port state other than Down.
    let together = to.phys_state == PhysState::NO_CHANGE
        || matches!(to.port_state, PortState::NO_CHANGE | PortState::DOWN);
    if phys_fits && state_fits && together { Ok(()) } else { Err(MadStatus::BAD_FIELD) }
}

/// Writes the enabled widths and speeds, which take effect at the next link training.
fn set_enabled(info: &mut PortInfo, to: &PortInfo) {
    info.link_width_enabled = match to.link_width_enabled {
        LinkWidthMask(0) => info.link_width_enabled,
        LinkWidthMask::ALL_SUPPORTED => info.link_width_supported,
        mask => mask,
    };
    info.link_speed_enabled = match to.link_speed_enabled {
        LinkSpeedMask(0) => info.link_speed_enabled,
        LinkSpeedMask(15) => info.link_speed_supported,
        mask => mask,
    };
    info.link_speed_ext_enabled = match to.link_speed_ext_enabled {
        LinkSpeedExtMask(0) => info.link_speed_ext_enabled,
        LinkSpeedExtMask(30) => LinkSpeedExtMask(0),
        LinkSpeedExtMask(31) => info.link_speed_ext_supported,
        mask => mask,
    };
    info.link_speed_ext2_enabled = match to.link_speed_ext2_enabled {
        LinkSpeedExt2Mask(0) => info.link_speed_ext2_enabled,
        mask => LinkSpeedExt2Mask(mask.0 & info.link_speed_ext2_supported.0),
    };
}

#[cfg(test)]
mod tests;
