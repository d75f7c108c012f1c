//! The exit statuses of all commands: the source of the help, of the man pages and of the documents.

/// The exit statuses of the program. Each command has some of them, see [`exit_statuses`].
pub const STATUSES: [(u8, &str); 9] = [
    (0, "Success: no problems found, or a signal stopped a program that runs until it is stopped."),
    (
        1,
        "Problems found, such as an unreachable LID, a credit loop, wrong data or an incomplete file.",
    ),
    (2, "The command line, the input or the environment is unusable. The message names the cause."),
    (3, "Inconclusive: no problem was found, but not everything could be checked (check, tracer)."),
    (126, "`run`: the program cannot be run."),
    (127, "`run`: there is no such program."),
    (130, INTERRUPTED),
    (143, TERMINATED),
    (255, "`acme`: a path was not resolved, as for `ib_acme`."),
];

const INTERRUPTED: &str =
    "SIGINT (Ctrl-C) stopped the command before it had finished its task, or before it was ready.";
const TERMINATED: &str =
    "SIGTERM stopped the command before it had finished its task, or before it was ready.";

/// Returns the exit statuses as one line for the help.
pub(super) fn summary() -> &'static str {
    "Exit status: 0 no problems found, 1 problems found, 2 unusable input, 3 inconclusive; 130 and 143 if \
     SIGINT or SIGTERM stopped the command early. The man page of each command lists its exit statuses."
}

/// Returns the exit statuses of the command with this man page, such as `ibfabric-sim-ctl`, and their meanings; `None`
/// if there is no such command.
#[must_use]
pub fn exit_statuses(page: &str) -> Option<Vec<(u8, &'static str)>> {
    let mut statuses = own_statuses(page)?;
    let signals = [(130, INTERRUPTED), (143, TERMINATED)];
    let at = statuses.iter().position(|&(status, _)| status > 130).unwrap_or(statuses.len());
    if page != "ibfabric" {
        statuses.splice(at..at, signals);
    }
    Some(statuses)
}

/// Returns the exit statuses other than those of signals.
fn own_statuses(page: &str) -> Option<Vec<(u8, &'static str)>> {
    const UNUSABLE: &str = "The input or the command line is unusable.";
    const UNREACHABLE: &str = "Unusable address, peer or option.";
    const UNWRITTEN: &str = "The file of --pcap is incomplete.";
    let all = |good, bad, unusable| vec![(0, good), (1, bad), (2, unusable)];
    let two = |good| vec![(0, good), (2, UNUSABLE)];
    Some(match page {
        "ibfabric" => STATUSES.to_vec(),
        "ibfabric-capture" | "ibfabric-rdma" | "ibfabric-rtrs" => {
            all("No problems found.", "Problems found; see the page of each command.", UNUSABLE)
        }
        "ibfabric-hca" => {
            two("Stopped by a signal or for lack of users, or running in the background.")
        }
        "ibfabric-acm" | "ibfabric-agent" => two("Stopped by a signal."),
        "ibfabric-rtrs-serve" => all("Stopped by a signal.", UNWRITTEN, UNUSABLE),
        "ibfabric-gen" => two("The file was written."),
        "ibfabric-rtrs-bench" => all(
            "All requests succeeded, and all verified data was correct.",
            "A request failed, data was incorrect, or the file of --pcap is incomplete.",
            "The server, its device or the command line is unusable.",
        ),
        "ibfabric-rtrs-ctl"
        | "ibfabric-rtrs-ctl-get"
        | "ibfabric-rtrs-ctl-set"
        | "ibfabric-rtrs-ctl-list"
        | "ibfabric-rtrs-ctl-metrics" => all(
            "The request succeeded.",
            "The request failed. The message contains the error code, for example ENOENT.",
            "No program listens at the socket or responds, or the command line is unusable.",
        ),
        "ibfabric-rtrs-mount" => vec![
            (0, "Stopped by a signal, or unmounted by a user."),
            (
                2,
                "No program listens at a socket, the mount failed, or the command line is unusable.",
            ),
        ],
        "ibfabric-nbd" => all(
            "Stopped by a signal.",
            UNWRITTEN,
            "The server, its device or the command line is unusable.",
        ),
        "ibfabric-sim" => all(
            "Stopped by a signal or by `quit`, or the replay is complete.",
            "A file of --pcap, --record or --log is incomplete.",
            UNUSABLE,
        ),
        "ibfabric-sim-ctl" => all("All commands succeeded.", "A command failed.", UNUSABLE),
        "ibfabric-sm" => all(
            "Stopped by a signal; or, with --once, the whole subnet is up.",
            "With --once: the subnet is up, but a node does not respond or is unreachable.",
            UNUSABLE,
        ),
        "ibfabric-sm-ctl"
        | "ibfabric-sm-ctl-status"
        | "ibfabric-sm-ctl-sweep"
        | "ibfabric-sm-ctl-routes"
        | "ibfabric-sm-ctl-metrics"
        | "ibfabric-acm-ctl"
        | "ibfabric-acm-ctl-status"
        | "ibfabric-acm-ctl-cache"
        | "ibfabric-acm-ctl-flush"
        | "ibfabric-acm-ctl-reload"
        | "ibfabric-acm-ctl-metrics" => {
            all("The request succeeded.", "The request failed.", UNUSABLE)
        }
        "ibfabric-acme" => vec![
            (
                0,
                "The last path was resolved, counters and endpoints were printed, or files were written.",
            ),
            (2, "There is no service, or the command line is unusable."),
            (255, "The last path was not resolved, or differs from the path of the SA."),
        ],
        "ibfabric-check" => vec![
            (0, "All checks passed."),
            (1, "Problems found: unreachable LIDs, forwarding loops or credit loops."),
            (2, UNUSABLE),
            (
                3,
                "Inconclusive: no problems found, but a dump has gaps, and some pairs of a switch and a LID could not be checked.",
            ),
        ],
        "ibfabric-route" => all(
            "No problems found.",
            "Problems found: unreachable LIDs, forwarding loops or credit loops, or no engine of the list can route the fabric.",
            UNUSABLE,
        ),
        "ibfabric-tracer" => vec![
            (0, "All paths are proven correct."),
            (1, "A path is proven wrong."),
            (2, UNUSABLE),
            (3, "Inconclusive: some paths could not be proven, and none is proven wrong."),
        ],
        "ibfabric-up" => all(
            "Stopped by a signal.",
            "The file of --pcap is incomplete.",
            "The fabric, a path or the command line is unusable.",
        ),
        "ibfabric-selftest" => all(
            "All checks passed.",
            "Problems found.",
            "The fabric, a path or the command line is unusable.",
        ),
        "ibfabric-completions" => two("The script was printed."),
        "ibfabric-capture-list" => two("The programs were listed; the list may be empty."),
        "ibfabric-capture-start" => all(
            "The capture was started; or, with -w -, it is complete, or its reader closed the stream.",
            "With -w -: writing the stream failed; missing packets are counted as not written.",
            "The command line is unusable, there is no such program, or it rejects the capture.",
        ),
        "ibfabric-capture-change" => vec![
            (0, "The filters were changed."),
            (
                2,
                "The command line is unusable, there is no such program or capture, or the program rejects the change.",
            ),
        ],
        "ibfabric-capture-stop" => all(
            "The captures were stopped, and their files are complete.",
            "A file is incomplete: the message has the offset and the reason.",
            "The command line is unusable, or there is no such program or capture.",
        ),
        "ibfabric-capture-read" => vec![
            (0, "The file was read to its end, or up to the limit of --count."),
            (2, "The command line is unusable, or the file is not a capture or is cut off."),
        ],
        "ibfabric-capture-correlate" => all(
            "Packets were matched.",
            "No packet was captured at both ends, both files are the same, the files do not contain the given queue pair, or no event of --to follows one of --from.",
            "The command line is unusable, or a file cannot be read, is cut off, or has no RDMA packets.",
        ),
        "ibfabric-rdma-devinfo" => two("The HCA was printed."),
        "ibfabric-rdma-serve" => all(
            "All clients were served, or a signal stopped the server.",
            UNWRITTEN,
            "An address or an option is unusable; or, with --exit-after, a client violated its protocol.",
        ),
        "ibfabric-rdma-ping" => all(
            "All pings returned unchanged.",
            "A ping returned with wrong data, or the file of --pcap is incomplete.",
            UNREACHABLE,
        ),
        "ibfabric-rdma-cmatose" | "ibfabric-rdma-pingpong" => {
            all("All messages were received.", UNWRITTEN, UNREACHABLE)
        }
        "ibfabric-rdma-bw" | "ibfabric-rdma-lat" => {
            all("The measurement is complete.", UNWRITTEN, UNREACHABLE)
        }
        "ibfabric-run" => vec![
            (0, "The program has exited with status 0; every other status is that of the program."),
            (
                2,
                "The command line is unusable, there is no such simulator or node, or the address cannot be shared.",
            ),
            (126, "The program cannot be run."),
            (127, "There is no such program."),
        ],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(command: &clap::Command, page: &str) {
        let statuses = exit_statuses(page).unwrap_or_else(|| panic!("{page} has no statuses"));
        assert!(statuses.is_sorted_by(|one, other| one.0 < other.0), "{page}: {statuses:?}");
        let known = |status: u8| STATUSES.iter().any(|&(known, _)| known == status);
        assert!(statuses.iter().all(|&(status, _)| known(status)), "{page}: {statuses:?}");
        for command in command.get_subcommands() {
            visit(command, &format!("{page}-{}", command.get_name()));
        }
    }

    #[test]
    fn every_command_has_known_exit_statuses() {
        visit(&crate::cli::command(), "ibfabric");
        assert_eq!(exit_statuses("ibfabric-none"), None);
    }
}
