//! Forwarding of directed-route SMPs; IBTA volume 1, chapter 14.2.2.
//!
//! The action of a node that receives an SMP depends on the direction, the hop pointer (hp) and the hop count (hc). A
//! request goes `out`, a response goes `back`. The steps of an action are executed from left to right:
//!
//! | direction | condition | action |
//! |---|---|---|
//! | out | hp = 0 < hc, switch, `DrSLID` ≠ 0xffff | start of the directed route: hp ← 1, forward to `InitialPath`\[1\] |
//! | out | 1 ≤ hp < hc, switch | `ReturnPath`\[hp\] ← ingress port, hp ← hp + 1, forward to `InitialPath`\[hp\] |
//! | out | hp = hc | `ReturnPath`\[hc\] ← ingress port (if hc > 0), hp ← hp + 1; deliver, or route by LID to `DrDLID` |
//! | out | hp = hc + 1 | deliver |
//! | back | hp = hc + 1, hc > 0, switch | start of the return path: hp ← hc, forward to `ReturnPath`\[hc\] |
//! | back | 2 ≤ hp ≤ hc, switch | hp ← hp − 1, forward to `ReturnPath`\[hp\] |
//! | back | hp = 1 | hp ← 0; deliver, or route by LID to `DrSLID` |
//! | back | hp = 0 | deliver |
//! | any | anything else | drop |
//!
//! At the end of the directed route, the node delivers the SMP if `DrDLID` (out) or `DrSLID` (back) is
//! 0xffff. Otherwise it routes the SMP by LID. Only switches forward SMPs and route them by LID. A node
//! drops an SMP whose path names port 0, or a port that the node does not have.

use ib_types::NodeKind;

use super::{INITIAL_PATH, MAX_HOPS, PERMISSIVE_LID, RETURN_PATH};
use crate::mad::Mad;

/// The node that handles an SMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopNode {
    /// The type of the node. Only switches forward SMPs.
    pub kind: NodeKind,
    /// The number of external ports.
    pub ports: u8,
}

/// What a node does with an SMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopAction {
    /// Delivers the SMP at this node: a request to the SMA, a response to the SM.
    Deliver,
    /// Sends the SMP out of this external port.
    Forward(u8),
    /// Ends the directed route: the switch forwards the SMP to this LID by its LFT.
    RouteByLid(u16),
    /// Drops the SMP.
    Drop(DropReason),
}

/// The reason why a node drops an SMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DropReason {
    /// The hop count is above 63.
    #[error("the hop count is {0}: expected at most 63")]
    HopCount(u8),
    /// The hop pointer contradicts the hop count or the direction.
    #[error("the hop pointer {pointer} contradicts the hop count {count}")]
    HopPointer {
        /// The hop pointer.
        pointer: u8,
        /// The hop count.
        count: u8,
    },
    /// The SMP must be forwarded or routed by LID, but the node is not a switch.
    #[error("the directed route continues after a node that is not a switch")]
    NotASwitch,
    /// The path names a port that the node does not have.
    #[error("the directed route names egress port {port}: expected 1 to {ports}")]
    NoSuchPort {
        /// The egress port that the path names.
        port: u8,
        /// The number of ports of the node.
        ports: u8,
    },
}

/// Determines what the node does with a directed-route SMP that it has received at this port.
/// Updates the hop pointer and the return path of the SMP.
///
/// Does not change the SMP if it is dropped. See the [table of the module](self).
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

/// Determines what the node does with a directed-route SMP that originates at this node. Updates the
/// hop pointer of the SMP.
///
/// A request has hop pointer 0 and is sent out of the first port of its path. A response (see
/// [`answer`](super::answer)) has a hop pointer of one more than its hop count, and is sent out of the last port of
/// the return path. [`HopAction::Deliver`] means that the node itself is the destination.
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

/// Forwards the SMP out of the port that `path` names for hop `pointer`.
fn forward(mad: &mut Mad, node: HopNode, path: usize, pointer: u8) -> HopAction {
    let port = mad.0[path + usize::from(pointer)];
    if port == 0 || port > node.ports {
        return HopAction::Drop(DropReason::NoSuchPort { port, ports: node.ports });
    }
    mad.set_hop_pointer(pointer);
    HopAction::Forward(port)
}

/// Ends the directed route: delivers the SMP, or routes it to `lid`.
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
