//! Codes of rates and packet life times, and the selectors that compare them.

use ib_types::{LinkSpeed, LinkWidth};

use crate::mad::codes::codes;

codes! {
    /// How an MTU, a rate or a life time is compared with the value in the request.
    Selector(u8) {
        /// The MTU, rate or life time must be greater than the requested value.
        GREATER = 0 "greater than",
        /// The MTU, rate or life time must be less than the requested value.
        LESS = 1 "less than",
        /// The MTU, rate or life time must equal the requested value. Responses always have this
        /// selector.
        EXACTLY = 2 "exactly",
        /// The MTU or rate must be the largest possible, or the life time the shortest possible.
        BEST = 3 "best",
    }
}

impl Selector {
    /// Returns true if `offered` satisfies a request with this selector and the value `requested`.
    ///
    /// A higher `T` must mean a higher MTU, rate or life time. So rates must be in Mbit/s, because
    /// the order of [`RateCode`]s is not the order of the rates. [`Selector::BEST`] accepts every value: the
    /// caller must choose the best of the offered values.
    #[must_use]
    pub fn admits<T: PartialOrd>(self, requested: &T, offered: &T) -> bool {
        match self {
            Self::GREATER => offered > requested,
            Self::LESS => offered < requested,
            Self::EXACTLY => offered == requested,
            _ => true,
        }
    }
}

codes! {
    /// The code of a static rate. A higher code does not always mean a higher rate.
    RateCode(u8) {
        /// 2.5 Gbit/s.
        GBPS_2_5 = 2 "2.5 Gbit/s",
        /// 10 Gbit/s.
        GBPS_10 = 3 "10 Gbit/s",
        /// 30 Gbit/s.
        GBPS_30 = 4 "30 Gbit/s",
        /// 5 Gbit/s.
        GBPS_5 = 5 "5 Gbit/s",
        /// 20 Gbit/s.
        GBPS_20 = 6 "20 Gbit/s",
        /// 40 Gbit/s.
        GBPS_40 = 7 "40 Gbit/s",
        /// 60 Gbit/s.
        GBPS_60 = 8 "60 Gbit/s",
        /// 80 Gbit/s.
        GBPS_80 = 9 "80 Gbit/s",
        /// 120 Gbit/s.
        GBPS_120 = 10 "120 Gbit/s",
        /// 14 Gbit/s.
        GBPS_14 = 11 "14 Gbit/s",
        /// 56 Gbit/s.
        GBPS_56 = 12 "56 Gbit/s",
        /// 112 Gbit/s.
        GBPS_112 = 13 "112 Gbit/s",
        /// 168 Gbit/s.
        GBPS_168 = 14 "168 Gbit/s",
        /// 25 Gbit/s.
        GBPS_25 = 15 "25 Gbit/s",
        /// 100 Gbit/s.
        GBPS_100 = 16 "100 Gbit/s",
        /// 200 Gbit/s.
        GBPS_200 = 17 "200 Gbit/s",
        /// 300 Gbit/s.
        GBPS_300 = 18 "300 Gbit/s",
        /// 28 Gbit/s.
        GBPS_28 = 19 "28 Gbit/s",
        /// 50 Gbit/s.
        GBPS_50 = 20 "50 Gbit/s",
        /// 400 Gbit/s.
        GBPS_400 = 21 "400 Gbit/s",
        /// 600 Gbit/s.
        GBPS_600 = 22 "600 Gbit/s",
        /// 800 Gbit/s.
        GBPS_800 = 23 "800 Gbit/s",
        /// 1200 Gbit/s.
        GBPS_1200 = 24 "1200 Gbit/s",
    }
}

impl RateCode {
    /// The codes and their rates in Mbit/s, in ascending order of rates.
    pub const RATES: [(Self, u32); 23] = [
        (Self::GBPS_2_5, 2_500),
        (Self::GBPS_5, 5_000),
        (Self::GBPS_10, 10_000),
        (Self::GBPS_14, 14_000),
        (Self::GBPS_20, 20_000),
        (Self::GBPS_25, 25_000),
        (Self::GBPS_28, 28_000),
        (Self::GBPS_30, 30_000),
        (Self::GBPS_40, 40_000),
        (Self::GBPS_50, 50_000),
        (Self::GBPS_56, 56_000),
        (Self::GBPS_60, 60_000),
        (Self::GBPS_80, 80_000),
        (Self::GBPS_100, 100_000),
        (Self::GBPS_112, 112_000),
        (Self::GBPS_120, 120_000),
        (Self::GBPS_168, 168_000),
        (Self::GBPS_200, 200_000),
        (Self::GBPS_300, 300_000),
        (Self::GBPS_400, 400_000),
        (Self::GBPS_600, 600_000),
        (Self::GBPS_800, 800_000),
        (Self::GBPS_1200, 1_200_000),
    ];

    /// Returns the rate in Mbit/s; `None` for an unknown code.
    #[must_use]
    pub fn megabits_per_second(self) -> Option<u32> {
        Self::RATES.iter().find(|(code, _)| *code == self).map(|&(_, rate)| rate)
    }

    /// Returns the code of a rate in Mbit/s; `None` if the rate has no code.
    #[must_use]
    pub fn from_megabits_per_second(rate: u32) -> Option<Self> {
        Self::RATES.iter().find(|&&(_, known)| known == rate).map(|&(code, _)| code)
    }

    /// Returns the code of a link's nominal rate; `None` if the rate has no code, as for XDR 12x.
    #[must_use]
    pub fn of_link(speed: LinkSpeed, width: LinkWidth) -> Option<Self> {
        let lane = match speed {
            LinkSpeed::Sdr => 2_500,
            LinkSpeed::Ddr => 5_000,
            LinkSpeed::Qdr | LinkSpeed::Fdr10 => 10_000,
            LinkSpeed::Fdr => 14_000,
            LinkSpeed::Edr => 25_000,
            LinkSpeed::Hdr => 50_000,
            LinkSpeed::Ndr => 100_000,
            LinkSpeed::Xdr => 200_000,
        };
        Self::from_megabits_per_second(lane * u32::from(width.lanes()))
    }
}

/// The code of a packet life time, 0 to 63: 4.096 µs × 2^code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LifeTimeCode(pub u8);

crate::field!(LifeTimeCode(u8));
