//! Contents of sysfs files, in the formats of the kernel.

use ib_wire::mad::sm::{
    LinkSpeedExtMask, LinkSpeedMask, LinkWidthMask, PhysState, PortInfo, PortState,
};

/// Formats a GUID as four groups of hexadecimal digits.
pub(crate) fn guid(guid: u64) -> String {
    groups(&guid.to_be_bytes())
}

/// Formats a GID as eight groups of hexadecimal digits.
pub(crate) fn gid(gid: [u8; 16]) -> String {
    groups(&gid)
}

fn groups(bytes: &[u8]) -> String {
    let groups: Vec<String> =
        bytes.chunks_exact(2).map(|pair| format!("{:02x}{:02x}", pair[0], pair[1])).collect();
    groups.join(":")
}

/// Returns names and contents of the files with a port's variable attributes.
pub(super) fn port_files(info: &PortInfo, gid: [u8; 16]) -> Vec<(&'static str, String)> {
    vec![
        ("lid", format!("0x{:x}", info.lid)),
        ("lid_mask_count", info.lmc.to_string()),
        ("sm_lid", format!("0x{:x}", info.master_sm_lid)),
        ("sm_sl", info.master_sm_sl.to_string()),
        ("state", state(info.port_state)),
        ("phys_state", phys_state(info.phys_state)),
        ("rate", rate(info)),
        ("cap_mask", format!("0x{:08x}", info.capability_mask.0)),
        ("link_layer", "InfiniBand".to_owned()),
        ("gids/0", groups(&gid)),
    ]
}

fn state(state: PortState) -> String {
    let names = ["NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"];
    format!("{}: {}", state.0, names.get(usize::from(state.0)).unwrap_or(&"<unknown>"))
}

fn phys_state(state: PhysState) -> String {
    let name = match state.0 {
        1 => "Sleep",
        2 => "Polling",
        3 => "Disabled",
        4 => "PortConfigurationTraining",
        5 => "LinkUp",
        6 => "LinkErrorRecover",
        7 => "Phy Test",
        _ => "<unknown>",
    };
    format!("{}: {name}", state.0)
}

/// Formats the rate, width and speed of a link. As in the kernel, an unknown speed is reported as
/// SDR.
fn rate(info: &PortInfo) -> String {
    let width = match info.link_width_active {
        LinkWidthMask(2) => 4,
        LinkWidthMask(4) => 8,
        LinkWidthMask(8) => 12,
        LinkWidthMask(16) => 2,
        _ => 1,
    };
    let (name, tenths) = match (info.link_speed_ext_active, info.link_speed_active) {
        (LinkSpeedExtMask(1), _) => (" FDR", 140),
        (LinkSpeedExtMask(2), _) => (" EDR", 250),
        (LinkSpeedExtMask(4), _) => (" HDR", 500),
        (LinkSpeedExtMask(8), _) => (" NDR", 1_000),
        (_, LinkSpeedMask(2)) => (" DDR", 50),
        (_, LinkSpeedMask(4)) => (" QDR", 100),
        _ => ("", 25),
    };
    let rate = tenths * width;
    let fraction = if rate % 10 == 0 { String::new() } else { format!(".{}", rate % 10) };
    format!("{}{fraction} Gb/sec ({width}X{name})", rate / 10)
}
