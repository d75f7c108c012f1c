//! How a directed-route SMP hops; IBTA volume 1, chapter 14.2.2.
//!
//! With hp for the hop pointer and hc for the hop count, a node that an SMP arrives at does:
//!
//! | direction | condition | action |
//! |---|---|---|
//! | out | hp = 0 < hc, switch, `DrSLID` ≠ 0xffff | a LID-routed leg ended here: hp ← 1, leave by `InitialPath`\[1\] |
//! | out | 1 ≤ hp < hc, switch | `ReturnPath`\[hp\] ← arrival port, hp + 1, leave by `InitialPath`\[hp\] |
//! | out | hp = hc | `ReturnPath`\[hc\] ← arrival port (hc > 0), hp + 1; deliver, or LID-route on to `DrDLID` |
//! | out | hp = hc + 1 | deliver |
//! | back | hp = hc + 1, hc > 0, switch | a LID-routed leg ended here: hp ← hc, leave by `ReturnPath`\[hc\] |
//! | back | 2 ≤ hp ≤ hc, switch | hp − 1, leave by `ReturnPath`\[hp\] |
//! | back | hp = 1 | hp ← 0; deliver, or LID-route on to `DrSLID` |
//! | back | hp = 0 | deliver |
//! | any | anything else | drop |
//!
//! Only a switch forwards and LID-routes; a port number of zero or beyond the node's ports drops.

use ib_types::NodeKind;

use super::{INITIAL_PATH, MAX_HOPS, PERMISSIVE_LID, RETURN_PATH};
use crate::mad::Mad;

/// The node that handles an SMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopNode {
    /// What it is; only a switch passes SMPs on.
    pub kind: NodeKind,
    /// The number of its external ports.
    pub ports: u8,
}

/// What becomes of an SMP at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopAction {
    /// It is for this node: for its agent when it goes out, for its manager when it returns.
    Deliver,
    /// It leaves by this external port.
    Forward(u8),
    /// The directed part is over; it goes on to this LID by the forwarding table.
    RouteByLid(u16),
    /// It is dropped.
    Drop(DropReason),
}

/// Why an SMP is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DropReason {
    /// The hop count is too high.
    #[error("hop count {0} is above 63")]
    HopCount(u8),
    /// The hop pointer contradicts the hop count or the direction.
    #[error("hop pointer {pointer} does not fit hop count {count}")]
    HopPointer {
        /// The hop pointer.
        pointer: u8,
        /// The hop count.
        count: u8,
    },
    /// The path goes on, but the node is no switch.
    #[error("the path goes on behind a node that is no switch")]
    NotASwitch,
    /// The path names a port that the node does not have.
    #[error("the path leaves by port {port}: expected 1 to {ports}")]
    NoSuchPort {
        /// The port of the path.
        port: u8,
        /// The node's number of ports.
        ports: u8,
    },
}

/// Decides about a directed-route SMP that arrived by a port, and steps its hop pointer.
///
/// A dropped SMP is left as it was. The rules are in the [module's table](self).
pub fn receive(mad: &mut Mad, node: HopNode, arrival_port: u8) -> HopAction {
    let (pointer, count) = (mad.hop_pointer(), mad.hop_count());
    let switch = node.kind.is_switch();
    if count > MAX_HOPS {
        return HopAction::Drop(DropReason::HopCount(count));
    }
    if mad.is_returning() {
        return match pointer {
            0 => HopAction::Deliver,
            1 => end(mad, switch, 0, mad.dr_slid()),
            _ if pointer > count + 1 => stray(pointer, count),
            _ if !switch => HopAction::Drop(DropReason::NotASwitch),
            _ => forward(mad, node, RETURN_PATH, pointer - 1),
        };
    }
    if pointer == 0 && count > 0 {
        let leg_ended = switch && mad.dr_slid() != PERMISSIVE_LID;
        return if leg_ended { forward(mad, node, INITIAL_PATH, 1) } else { stray(pointer, count) };
    }
    if pointer == count + 1 {
        return HopAction::Deliver;
    }
    if pointer > count {
        return stray(pointer, count);
    }
    if pointer < count && !switch {
        return HopAction::Drop(DropReason::NotASwitch);
    }
    let action = if pointer < count {
        forward(mad, node, INITIAL_PATH, pointer + 1)
    } else {
        end(mad, switch, count + 1, mad.dr_dlid())
    };
    if pointer > 0 && !matches!(action, HopAction::Drop(_)) {
        mad.0[RETURN_PATH + usize::from(pointer)] = arrival_port;
    }
    action
}

/// Decides about a directed-route SMP that the node itself sends, and steps its hop pointer.
///
/// A request starts with hop pointer 0 and leaves by the first port of its path, a response (see
/// [`answer`](super::answer)) starts behind the end of the path and leaves by the last port of the
/// return path. [`HopAction::Deliver`] means that the SMP stays in the node.
pub fn send(mad: &mut Mad, node: HopNode) -> HopAction {
    let (pointer, count) = (mad.hop_pointer(), mad.hop_count());
    if count > MAX_HOPS {
        return HopAction::Drop(DropReason::HopCount(count));
    }
    let switch = node.kind.is_switch();
    match (mad.is_returning(), pointer) {
        (false, 0) if count > 0 => forward(mad, node, INITIAL_PATH, 1),
        (false, _) if pointer == count => end(mad, switch, count + 1, mad.dr_dlid()),
        (false, _) if pointer == count + 1 => HopAction::Deliver,
        (true, _) if count > 0 && pointer == count + 1 => forward(mad, node, RETURN_PATH, count),
        (true, 1) => end(mad, switch, 0, mad.dr_slid()),
        (true, 0) => HopAction::Deliver,
        _ => stray(pointer, count),
    }
}

/// Lets the SMP leave by the port that a path names for a hop.
fn forward(mad: &mut Mad, node: HopNode, path: usize, pointer: u8) -> HopAction {
    let port = mad.0[path + usize::from(pointer)];
    if port == 0 || port > node.ports {
        return HopAction::Drop(DropReason::NoSuchPort { port, ports: node.ports });
    }
    mad.set_hop_pointer(pointer);
    HopAction::Forward(port)
}

/// Ends the directed part.
fn end(mad: &mut Mad, switch: bool, pointer: u8, lid: u16) -> HopAction {
    if lid != PERMISSIVE_LID && !switch {
        return HopAction::Drop(DropReason::NotASwitch);
    }
    mad.set_hop_pointer(pointer);
    if lid == PERMISSIVE_LID { HopAction::Deliver } else { HopAction::RouteByLid(lid) }
}

const fn stray(pointer: u8, count: u8) -> HopAction {
    HopAction::Drop(DropReason::HopPointer { pointer, count })
}
