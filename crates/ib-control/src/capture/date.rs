//! Dates of the calendar, as names of files have them.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns a time of UTC as `YYYYmmddHHMMSS`.
pub(super) fn compact(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}")
}

/// Returns the date that is so many days after the first of 1970.
fn date(days: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let (mut year, mut left) = (1970, days);
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if left < length {
            break;
        }
        left -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in months {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let at = |seconds| compact(UNIX_EPOCH + Duration::from_secs(seconds));
        // As `date -u -d @N +%Y%m%d%H%M%S` tells them.
        assert_eq!(at(0), "19700101000000");
        assert_eq!(at(951_782_399), "20000228235959");
        assert_eq!(at(951_782_400), "20000229000000");
        assert_eq!(at(1_709_251_199), "20240229235959");
        assert_eq!(at(1_798_761_599), "20261231235959");
        assert_eq!(at(4_107_542_400), "21000301000000");
    }
}
