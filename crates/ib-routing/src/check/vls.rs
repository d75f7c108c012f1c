//! The VLs that packets of a service level use on each link.

use ib_types::{ServiceLevel, VirtualLane};

use super::wiring::{Channel, Hop, Wiring};
use crate::subnet::SwitchId;

/// The SL-to-VL tables of all switches; IBTA volume 1, chapter 7.6.6.
///
/// Without SL-to-VL tables, packets of SL n use VL n on every link, as configured by OpenSM for its layered engines.
pub trait VlMap: Sync {
    /// Returns the VL on which a switch forwards packets of a service level from `in_port` to `out_port`. If `in_port`
    /// is 0, the packets start at the switch itself.
    ///
    /// If the VL is 15, the switch discards the packets; the check counts them as unreachable.
    fn vl(&self, switch: SwitchId, in_port: u8, out_port: u8, level: ServiceLevel) -> VirtualLane;
}

impl<F> VlMap for F
where
    F: Fn(SwitchId, u8, u8, ServiceLevel) -> VirtualLane + Sync,
{
    fn vl(&self, switch: SwitchId, in_port: u8, out_port: u8, level: ServiceLevel) -> VirtualLane {
        self(switch, in_port, out_port, level)
    }
}

/// Number of VLs, and of service levels.
pub(super) const MAX_VLS: usize = 16;

const DISCARDS: u8 = 15;

/// A rule by which packets change VLs from link to link. It is applied to sets of packets, not to single packets.
pub(super) trait VlRule: Sync {
    /// A set of packets: the service levels and VLs of the packets to one LID that leave a switch.
    type Set: Copy + Default + PartialEq + Send;

    /// True if [`Self::pass`] can discard packets.
    const DISCARDS: bool;

    /// Adds packets that start at the switch `at` to `set`, the packets that leave this switch. The packets have the
    /// service level `level`, enter at the ports `ins` and leave through the port `out`. If packets of an input port
    /// are discarded, returns the first such port.
    fn start(
        &self,
        set: &mut Self::Set,
        at: SwitchId,
        ins: &[u8],
        out: u8,
        level: ServiceLevel,
    ) -> Option<u8>;

    /// Adds the packets `arrived`, which a switch receives over a channel, to `set`, the packets that leave this
    /// switch. `turn_at` is the channel and the output port. Calls `turn` with each pair of VLs that packets have
    /// before and after the switch. If packets of a service level are discarded, returns the lowest such service level.
    fn pass(
        &self,
        set: &mut Self::Set,
        arrived: Self::Set,
        turn_at: (Channel, u8),
        turn: impl FnMut(u8, u8),
    ) -> Option<ServiceLevel>;
}

/// The rule that packets of SL n use VL n. A set of packets has one bit per service level.
pub(super) struct SameNumber;

impl VlRule for SameNumber {
    type Set = u16;

    const DISCARDS: bool = false;

    fn start(
        &self,
        set: &mut u16,
        _: SwitchId,
        ins: &[u8],
        _: u8,
        level: ServiceLevel,
    ) -> Option<u8> {
        if level.get() == DISCARDS {
            return ins.first().copied();
        }
        *set |= u16::from(!ins.is_empty()) << level.get();
        None
    }

    fn pass(
        &self,
        set: &mut u16,
        arrived: u16,
        _: (Channel, u8),
        mut turn: impl FnMut(u8, u8),
    ) -> Option<ServiceLevel> {
        *set |= arrived;
        for vl in bits(u64::from(arrived)) {
            turn(vl, vl);
        }
        None
    }
}

/// The rule of SL-to-VL tables. A set of packets has one bit for each pair of a service level and a VL.
pub(super) struct Mapped<'a> {
    pub(super) map: &'a dyn VlMap,
    pub(super) wiring: &'a Wiring,
}

impl Mapped<'_> {
    fn vl(&self, at: SwitchId, from: u8, out: u8, level: ServiceLevel) -> Option<u8> {
        let vl = self.map.vl(at, from, out, level).get();
        (vl != DISCARDS).then_some(vl)
    }
}

impl VlRule for Mapped<'_> {
    type Set = [u16; MAX_VLS];

    const DISCARDS: bool = true;

    fn start(
        &self,
        set: &mut Self::Set,
        at: SwitchId,
        ins: &[u8],
        out: u8,
        level: ServiceLevel,
    ) -> Option<u8> {
        let mut discarded = None;
        for &from in ins {
            match self.vl(at, from, out, level) {
                Some(vl) => set[usize::from(level.get())] |= 1 << vl,
                None => discarded = discarded.or(Some(from)),
            }
        }
        discarded
    }

    fn pass(
        &self,
        set: &mut Self::Set,
        arrived: Self::Set,
        (channel, out): (Channel, u8),
        mut turn: impl FnMut(u8, u8),
    ) -> Option<ServiceLevel> {
        let Hop::Switch(at, from) = self.wiring.hop(channel) else { return None };
        let mut discarded = None;
        for (number, &before) in (0u8..).zip(&arrived) {
            if before == 0 {
                continue;
            }
            let level = ServiceLevel::new(number).expect("the number is below 16");
            let Some(after) = self.vl(SwitchId(at), from, out, level) else {
                discarded = discarded.or(Some(level));
                continue;
            };
            set[usize::from(number)] |= 1 << after;
            for vl in bits(u64::from(before)) {
                turn(vl, after);
            }
        }
        discarded
    }
}

/// Returns the indices of the bits that are set in `set`, in ascending order.
pub(super) fn bits(mut set: u64) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let lowest = set.trailing_zeros() as u8;
        set &= set.wrapping_sub(1);
        (lowest < 64).then_some(lowest)
    })
}
