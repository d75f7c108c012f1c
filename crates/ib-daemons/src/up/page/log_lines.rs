//! Condenses the log lines of the simulator for the page.

use std::borrow::Cow;

/// Maximum number of lines about attached clients. If there are more, one line replaces them.
const MOST: usize = 8;

/// Returns the lines of a log. If more than [`MOST`] lines report attached clients, one line with the count replaces
/// them.
pub(super) fn condensed(log: &str) -> Vec<Cow<'_, str>> {
    let is_attach = |line: &&str| line.ends_with(" attached") && line.contains(" client ");
    let count = log.lines().filter(is_attach).count();
    if count <= MOST {
        return log.lines().map(Cow::Borrowed).collect();
    }
    let mut is_counted = false;
    let line = |line| match is_attach(&line) {
        false => Some(Cow::Borrowed(line)),
        true if std::mem::replace(&mut is_counted, true) => None,
        true => {
            let at = line.split_once(' ').map_or("", |(at, _)| at);
            Some(Cow::Owned(format!("{at} {count} clients attached")))
        }
    };
    log.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attach_lines_of_many_clients_are_condensed() {
        let attached = |count: usize| {
            let line = |number| format!("0.5 \"H\"[1] client {number} attached\n");
            (0..count).map(line).collect::<String>()
        };
        assert_eq!(condensed(&attached(MOST)).len(), MOST);
        let log = format!("0.4 \"H\"[1] link up\n{}0.6 command dump\n", attached(1000));
        let expected = ["0.4 \"H\"[1] link up", "0.5 1000 clients attached", "0.6 command dump"];
        assert_eq!(condensed(&log), expected);
    }
}
