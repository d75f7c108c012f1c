//! Computes forwarding tables and service levels from routes and layers.

use rayon::prelude::*;

use super::network::{NONE, Network};
use super::routes::Layout;
use crate::layers::Layers;
use crate::lft::Lfts;
use crate::subnet::{Attachment, Subnet, SwitchId};

/// Returns the forwarding tables. If a channel has several links, the LIDs reached over the channel are assigned to
/// these links in turn.
pub(super) fn lfts(subnet: &Subnet<'_>, network: &Network<'_>, layout: &Layout) -> Lfts {
    let mut lfts = Lfts::new(subnet);
    lfts.par_tables_mut().enumerate().for_each(|(switch, table)| {
        let links = links(subnet, network, switch);
        let mut turns = vec![0; links.len()];
        for lid in 1..=subnet.max_lid() {
            let Some(port) = subnet.lid_owner(lid).map(|id| subnet.end_port(id)) else {
                continue;
            };
            let Some(to) = port.attachment.switch() else {
                continue;
            };
            if to.index() == switch {
                table[usize::from(lid)] = match port.attachment {
                    Attachment::Port(_, number) => number,
                    Attachment::Management(_) | Attachment::Direct => 0,
                };
                continue;
            }
            let slot = layout.routes.to(to.index())[switch];
            if slot == NONE {
                continue;
            }
            let (links, turn) = (&links[usize::from(slot)], &mut turns[usize::from(slot)]);
            table[usize::from(lid)] = links[*turn];
            *turn = (*turn + 1) % links.len();
        }
    });
    lfts
}

/// Returns the ports of a switch, grouped by the channel to which their links belong. The channels are in the order of
/// their slots.
fn links(subnet: &Subnet<'_>, network: &Network<'_>, switch: usize) -> Vec<Vec<u8>> {
    let mut links = vec![Vec::new(); network.neighbours(switch).len()];
    for (port, other, _) in subnet.switch_links(SwitchId(switch as u16)) {
        let channel = network.channel_to(switch, other.index()).expect("every link has a channel");
        links[network.slot(channel)].push(port);
    }
    links
}

/// Returns the service level of each pair of switches, which is its layer plus the first VL.
pub(super) fn levels(layout: &Layout, switches: usize, first_vl: u8) -> Layers {
    let level = |&layer: &u8| if layer == NONE { first_vl } else { first_vl + layer };
    Layers::per_pair(switches, layout.layers.iter().map(level).collect())
}
