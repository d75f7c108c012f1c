//! Codes and masks of PortInfo: state, MTU, VLs, width and speed; IBTA volume 1, chapter 14.2.5.6.

use ib_types::{LinkSpeed, LinkWidth};

use crate::mad::codes::{codes, masks};

codes! {
    /// The state of a port.
    PortState(u8) {
        /// Only in a Set: leaves the state of the port unchanged.
        NO_CHANGE = 0 "NoChange",
        /// The link is down.
        DOWN = 1 "Down",
        /// The link is up, but only SMPs are sent and received.
        INIT = 2 "Initialize",
        /// The port is configured, but sends no data packets yet.
        ARMED = 3 "Armed",
        /// The port sends and receives all packets.
        ACTIVE = 4 "Active",
        /// The port was active, and the physical link is being retrained.
        ACTIVE_DEFER = 5 "ActiveDefer",
    }
}

codes! {
    /// The state of the physical port.
    PhysState(u8) {
        /// Only in a Set: leaves the state of the physical port unchanged.
        NO_CHANGE = 0 "NoChange",
        /// Sleep.
        SLEEP = 1 "Sleep",
        /// The port polls for the other end of the link.
        POLLING = 2 "Polling",
        /// Disabled.
        DISABLED = 3 "Disabled",
        /// The ports at both ends of the link negotiate its width and speed.
        TRAINING = 4 "PortConfigurationTraining",
        /// The physical link is up.
        LINK_UP = 5 "LinkUp",
        /// The port recovers from link errors.
        ERROR_RECOVERY = 6 "LinkErrorRecovery",
        /// Test mode of the physical layer.
        PHY_TEST = 7 "PhyTest",
    }
}

codes! {
    /// The code of an MTU.
    MtuCode(u8) {
        /// 256 bytes.
        MTU_256 = 1 "256",
        /// 512 bytes.
        MTU_512 = 2 "512",
        /// 1024 bytes.
        MTU_1024 = 3 "1024",
        /// 2048 bytes.
        MTU_2048 = 4 "2048",
        /// 4096 bytes.
        MTU_4096 = 5 "4096",
    }
}

impl MtuCode {
    /// Returns the MTU in bytes; `None` for an unknown code.
    #[must_use]
    pub const fn bytes(self) -> Option<u16> {
        if matches!(self.0, 1..=5) { Some(128 << self.0) } else { None }
    }
}

codes! {
    /// The code of a range of data VLs, such as 0 to 3.
    VlCap(u8) {
        /// VL 0.
        VL0 = 1 "VL0",
        /// VLs 0 and 1.
        VL0_1 = 2 "VL0-1",
        /// VLs 0 to 3.
        VL0_3 = 3 "VL0-3",
        /// VLs 0 to 7.
        VL0_7 = 4 "VL0-7",
        /// VLs 0 to 14.
        VL0_14 = 5 "VL0-14",
    }
}

impl VlCap {
    /// Returns the number of data VLs; `None` for an unknown code.
    #[must_use]
    pub const fn lanes(self) -> Option<u8> {
        match self.0 {
            1..=4 => Some(1 << (self.0 - 1)),
            5 => Some(15),
            _ => None,
        }
    }
}

masks! {
    /// Mask of link widths. `PortInfo::link_width_active` has one bit set. In
    /// `PortInfo::link_width_enabled`, 255 enables all supported widths.
    LinkWidthMask(u8) {
        /// One lane.
        X1 = 0 "1X",
        /// Four lanes.
        X4 = 1 "4X",
        /// Eight lanes.
        X8 = 2 "8X",
        /// Twelve lanes.
        X12 = 3 "12X",
        /// Two lanes.
        X2 = 4 "2X",
    }
}

impl LinkWidthMask {
    /// The value of `PortInfo::link_width_enabled` that enables all supported widths in a Set.
    pub const ALL_SUPPORTED: Self = Self(255);

    /// Returns the width if exactly one known bit is set.
    #[must_use]
    pub const fn active(self) -> Option<LinkWidth> {
        match self {
            Self::X1 => Some(LinkWidth::X1),
            Self::X2 => Some(LinkWidth::X2),
            Self::X4 => Some(LinkWidth::X4),
            Self::X8 => Some(LinkWidth::X8),
            Self::X12 => Some(LinkWidth::X12),
            _ => None,
        }
    }

    /// Returns the widths whose bits are set, in ascending order.
    pub fn widths(self) -> impl Iterator<Item = LinkWidth> {
        LinkWidth::ALL.into_iter().filter(move |&width| self.contains(width.into()))
    }
}

impl From<LinkWidth> for LinkWidthMask {
    fn from(width: LinkWidth) -> Self {
        match width {
            LinkWidth::X1 => Self::X1,
            LinkWidth::X2 => Self::X2,
            LinkWidth::X4 => Self::X4,
            LinkWidth::X8 => Self::X8,
            LinkWidth::X12 => Self::X12,
        }
    }
}

impl FromIterator<LinkWidth> for LinkWidthMask {
    fn from_iter<I: IntoIterator<Item = LinkWidth>>(widths: I) -> Self {
        widths.into_iter().fold(Self(0), |mask, width| mask | width.into())
    }
}

masks! {
    /// Mask of link speeds SDR to QDR. In `PortInfo::link_speed_enabled`, 15 enables all supported speeds.
    LinkSpeedMask(u8) {
        /// 2.5 Gbit/s per lane.
        SDR = 0 "2.5 Gbps",
        /// 5 Gbit/s per lane.
        DDR = 1 "5.0 Gbps",
        /// 10 Gbit/s per lane.
        QDR = 2 "10.0 Gbps",
    }
}

masks! {
    /// Mask of link speeds FDR to NDR. In `PortInfo::link_speed_ext_enabled`, 30 disables all of these speeds, and 31
    /// enables all supported speeds.
    LinkSpeedExtMask(u8) {
        /// 14.0625 Gbit/s per lane.
        FDR = 0 "14.0625 Gbps",
        /// 25.78125 Gbit/s per lane.
        EDR = 1 "25.78125 Gbps",
        /// 53.125 Gbit/s per lane.
        HDR = 2 "53.125 Gbps",
        /// 106.25 Gbit/s per lane.
        NDR = 3 "106.25 Gbps",
    }
}

masks! {
    /// Mask of link speeds XDR and above.
    LinkSpeedExt2Mask(u8) {
        /// 212.5 Gbit/s per lane.
        XDR = 0 "212.5 Gbps",
    }
}

masks! {
    /// Mask of link speeds in Mellanox's `MlnxExtPortInfo`.
    MlnxSpeedMask(u8) {
        /// 10.3125 Gbit/s per lane.
        FDR10 = 0 "FDR10",
    }
}

/// A set of link speeds, encoded by four masks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SpeedSet {
    /// The speeds SDR, DDR and QDR, from PortInfo.
    pub speed: LinkSpeedMask,
    /// The speeds FDR, EDR, HDR and NDR, from PortInfo.
    pub extended: LinkSpeedExtMask,
    /// The speed XDR, from PortInfo.
    pub extended2: LinkSpeedExt2Mask,
    /// The speed FDR10, from [`MlnxExtPortInfo`](super::MlnxExtPortInfo).
    pub mellanox: MlnxSpeedMask,
}

impl SpeedSet {
    /// Returns true if the set contains the speed.
    #[must_use]
    pub const fn contains(self, speed: LinkSpeed) -> bool {
        match speed {
            LinkSpeed::Sdr => self.speed.contains(LinkSpeedMask::SDR),
            LinkSpeed::Ddr => self.speed.contains(LinkSpeedMask::DDR),
            LinkSpeed::Qdr => self.speed.contains(LinkSpeedMask::QDR),
            LinkSpeed::Fdr10 => self.mellanox.contains(MlnxSpeedMask::FDR10),
            LinkSpeed::Fdr => self.extended.contains(LinkSpeedExtMask::FDR),
            LinkSpeed::Edr => self.extended.contains(LinkSpeedExtMask::EDR),
            LinkSpeed::Hdr => self.extended.contains(LinkSpeedExtMask::HDR),
            LinkSpeed::Ndr => self.extended.contains(LinkSpeedExtMask::NDR),
            LinkSpeed::Xdr => self.extended2.contains(LinkSpeedExt2Mask::XDR),
        }
    }

    /// Returns the speeds in ascending order.
    pub fn speeds(self) -> impl Iterator<Item = LinkSpeed> {
        LinkSpeed::ALL.into_iter().filter(move |&speed| self.contains(speed))
    }

    /// Returns the fastest speed of the set; `None` if the set is empty.
    ///
    /// For the set of [`PortInfo::active_speeds`](super::PortInfo::active_speeds), this is the active speed of the
    /// link. Ports can also report slower speeds in this set.
    #[must_use]
    pub fn active(self) -> Option<LinkSpeed> {
        self.speeds().last()
    }

    /// Returns the set that a port reports in its active speed masks if this speed is active.
    ///
    /// For speeds above QDR, the set also contains QDR: HCAs and ibsim report both speeds.
    #[must_use]
    pub fn from_active(speed: LinkSpeed) -> Self {
        let mut set: Self = [speed].into_iter().collect();
        if speed > LinkSpeed::Qdr {
            set.speed = LinkSpeedMask::QDR;
        }
        set
    }
}

impl FromIterator<LinkSpeed> for SpeedSet {
    fn from_iter<I: IntoIterator<Item = LinkSpeed>>(speeds: I) -> Self {
        let mut set = Self::default();
        for speed in speeds {
            match speed {
                LinkSpeed::Sdr => set.speed = set.speed | LinkSpeedMask::SDR,
                LinkSpeed::Ddr => set.speed = set.speed | LinkSpeedMask::DDR,
                LinkSpeed::Qdr => set.speed = set.speed | LinkSpeedMask::QDR,
                LinkSpeed::Fdr10 => set.mellanox = MlnxSpeedMask::FDR10,
                LinkSpeed::Fdr => set.extended = set.extended | LinkSpeedExtMask::FDR,
                LinkSpeed::Edr => set.extended = set.extended | LinkSpeedExtMask::EDR,
                LinkSpeed::Hdr => set.extended = set.extended | LinkSpeedExtMask::HDR,
                LinkSpeed::Ndr => set.extended = set.extended | LinkSpeedExtMask::NDR,
                LinkSpeed::Xdr => set.extended2 = LinkSpeedExt2Mask::XDR,
            }
        }
        set
    }
}
