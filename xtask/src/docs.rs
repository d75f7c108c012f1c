//! Generates man pages and shell completions from the clap definition of the command line.

use std::fs;
use std::path::{Path, PathBuf};

use clap_complete::{Shell, generate};

use crate::{TaskResult, root};

/// Generates `docs/man`: one page for the program, and one for each subcommand.
pub(crate) fn man(check: bool) -> TaskResult {
    let directory = root().join("docs/man");
    let mut command = ibfabric::cli::command().disable_help_subcommand(true);
    command.build();
    let mut commands = Vec::new();
    collect(&command, "ibfabric", &mut commands);
    let names: Vec<&str> = commands.iter().map(|(name, _)| name.as_str()).collect();
    let mut pages = Vec::new();
    for (name, command) in &commands {
        pages.push((directory.join(format!("{name}.1")), page(command, name, &names)?));
    }
    put(&directory, pages, check)
}

/// Collects a command and its subcommands, each with the name of its man page.
fn collect<'a>(
    command: &'a clap::Command,
    name: &str,
    found: &mut Vec<(String, &'a clap::Command)>,
) {
    found.push((name.to_owned(), command));
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        collect(sub, &format!("{name}-{}", sub.get_name()), found);
    }
}

/// Generates the man page of a command.
fn page(
    command: &clap::Command,
    name: &str,
    names: &[&str],
) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let subcommand = match name {
        "ibfabric-sm-ctl" => "sm-ctl",
        "ibfabric-acm-ctl" => "acm-ctl",
        "ibfabric-acm-ctl-status" => "acm-status",
        "ibfabric-acm-ctl-cache" => "acm-cache",
        "ibfabric-acm-ctl-flush" => "acm-flush",
        "ibfabric-acm-ctl-reload" => "acm-reload",
        "ibfabric-acm-ctl-metrics" => "acm-metrics",
        "ibfabric-rtrs-serve" => "rtrs-serve",
        "ibfabric-rtrs-bench" => "rtrs-bench",
        "ibfabric-rtrs-ctl" => "rtrs-ctl",
        "ibfabric-rtrs-ctl-get" => "rtrs-ctl-get",
        "ibfabric-rtrs-ctl-set" => "rtrs-ctl-set",
        "ibfabric-rtrs-ctl-list" => "rtrs-ctl-list",
        "ibfabric-rtrs-ctl-metrics" => "rtrs-ctl-metrics",
        "ibfabric-rtrs-mount" => "rtrs-mount",
        _ => command.get_name(),
    };
    let man = clap_mangen::Man::new(command.clone()).title(name.to_uppercase());
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut out)?;
    }
    man.render_options_section(&mut out)?;
    match subcommand {
        "gen" => {
            section(&mut out, "KINDS");
            verbatim(&mut out, &ibfabric::cli::kinds());
        }
        "ctl" => {
            section(&mut out, "COMMANDS");
            verbatim(&mut out, ibfabric::cli::sim::CONSOLE);
            out.extend(format!(".PP\n{}", escaped(ibfabric::cli::sim::CONSOLE_NAMES)).bytes());
            out.push(b'\n');
        }
        _ => {}
    }
    let examples = ibfabric::cli::examples(subcommand);
    if !examples.is_empty() {
        section(&mut out, "EXAMPLES");
    }
    for (what, line) in examples {
        out.extend(format!(".PP\n{}\n.PP\n", escaped(what)).bytes());
        verbatim(&mut out, &format!("    {line}"));
    }
    section(&mut out, "EXIT STATUS");
    for (status, meaning) in statuses(name)? {
        out.extend(format!(".TP\n\\fB{status}\\fR\n{meaning}\n").bytes());
    }
    section(&mut out, "SEE ALSO");
    let others = names.iter().filter(|&&other| other != name);
    let mut others: Vec<String> =
        others.map(|other| format!("\\fB{}\\fR(1)", escaped(other))).collect();
    others.extend(["opensm", "ibnetdiscover"].map(|other| format!("\\fB{other}\\fR(8)")));
    let more = match subcommand {
        "sim" | "ctl" => "docs/simulator.md",
        _ if name.starts_with("ibfabric-capture") => "docs/capture.md",
        _ if name.starts_with("ibfabric-acm") => "docs/acm.md",
        _ if name.starts_with("ibfabric-rdma") => "docs/rdma.md",
        _ if name.starts_with("ibfabric-rtrs") || subcommand == "nbd" => "docs/rtrs.md",
        "sm" | "sm-ctl" | "status" | "sweep" | "routes" | "metrics" => "docs/sm.md",
        _ => "docs/fabric-files.md for the file formats",
    };
    others.push(format!("the project's {}", escaped(more)));
    out.extend(format!("{}\n", others.join(", ")).bytes());
    let text = String::from_utf8_lossy(&out).replace("\\fR", "");
    if text.contains(&format!("{}(1)", escaped(name))) {
        return Err(format!("the page of {name} refers to itself").into());
    }
    Ok(out)
}

/// Returns the exit statuses of a command, and what they mean.
///
/// # Errors
/// Fails if this function does not know the page.
fn statuses(page: &str) -> Result<Vec<(u8, &'static str)>, String> {
    const UNUSABLE: &str = "The input or the command line is unusable.";
    let all = |good, bad, unusable| vec![(0, good), (1, bad), (2, unusable)];
    let two = |good| vec![(0, good), (2, UNUSABLE)];
    const UNREACHABLE: &str =
        "Unusable address, peer or option, or interrupted by a signal before completion.";
    const UNWRITTEN: &str = "The file of \\-\\-capture is incomplete.";
    Ok(match page {
        "ibfabric" | "ibfabric-capture" | "ibfabric-rdma" | "ibfabric-rtrs" => {
            all("No problems found.", "Problems found; see the page of each command.", UNUSABLE)
        }
        "ibfabric-rtrs-serve" | "ibfabric-acm" | "ibfabric-agent" => two("Stopped by a signal."),
        "ibfabric-gen" => two("The file was written."),
        "ibfabric-rtrs-bench" => all(
            "All requests succeeded, and all verified data was correct.",
            "A request failed, or data was incorrect.",
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
        "ibfabric-nbd" => vec![
            (0, "Stopped by a signal."),
            (2, "The server, its device or the command line is unusable."),
        ],
        "ibfabric-sim" => two("Stopped by a signal or by `quit`, or the replay is complete."),
        "ibfabric-sim-ctl" => all("All commands succeeded.", "A command failed.", UNUSABLE),
        "ibfabric-sm" => all(
            "Stopped by a signal; or, with \\-\\-once, the whole subnet is up.",
            "With \\-\\-once: the subnet is up, but a node does not respond or is unreachable.",
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
            "Stopped by a signal; or, with \\-\\-check, all checks passed.",
            "With \\-\\-check: problems found.",
            "The fabric, a path or the command line is unusable, or the self-test was interrupted.",
        ),
        "ibfabric-capture-list" => two("The programs were listed, even if there are none."),
        "ibfabric-capture-start" => all(
            "The capture was started; or, with \\-w \\-, it is complete, or its reader closed the stream.",
            "With \\-w \\-: writing the stream failed; missing packets are counted as not written.",
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
            (0, "The file was read to its end, or up to the limit of \\-\\-count."),
            (2, "The command line is unusable, or the file is not a capture or is cut off."),
        ],
        "ibfabric-capture-correlate" => all(
            "Packets were matched.",
            "No packet was captured at both ends, both files are the same, there is no such queue pair, or no event of \\-\\-to follows one of \\-\\-from.",
            "The command line is unusable, or a file cannot be read, is cut off, or has no RDMA packets.",
        ),
        "ibfabric-rdma-devinfo" => two("The HCA was printed."),
        "ibfabric-rdma-serve" => all(
            "All clients were served, or stopped by a signal.",
            UNWRITTEN,
            "An address or an option is unusable; or, with \\-\\-clients, a client violated its protocol.",
        ),
        "ibfabric-rdma-ping" => all(
            "All pings returned unchanged.",
            "A ping returned with wrong data, or the file of \\-\\-capture is incomplete.",
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
            (2, "The command line is unusable, or there is no such simulator or node."),
            (126, "The program cannot be run."),
            (127, "There is no such program."),
        ],
        _ => return Err(format!("xtask/src/docs.rs: expected the exit statuses of {page}")),
    })
}

fn section(out: &mut Vec<u8>, heading: &str) {
    out.extend(format!(".SH \"{heading}\"\n").bytes());
}

/// Appends text to a man page so that the line breaks of the text are kept.
fn verbatim(out: &mut Vec<u8>, text: &str) {
    out.extend(format!(".nf\n{}\n.fi\n", escaped(text)).bytes());
}

/// Escapes characters that have a special meaning in roff.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let guarded = |line: &str| match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line.to_owned(),
    };
    text.lines().map(guarded).collect::<Vec<_>>().join("\n")
}

/// Generates `docs/completions`, with one file for each shell.
pub(crate) fn completions(check: bool) -> TaskResult {
    let directory = root().join("docs/completions");
    let files =
        [(Shell::Bash, "ibfabric.bash"), (Shell::Fish, "ibfabric.fish"), (Shell::Zsh, "_ibfabric")]
            .into_iter()
            .map(|(shell, name)| {
                let mut file = Vec::new();
                generate(shell, &mut ibfabric::cli::command(), "ibfabric", &mut file);
                (directory.join(name), file)
            })
            .collect();
    put(&directory, files, check)
}

fn put(directory: &Path, files: Vec<(PathBuf, Vec<u8>)>, check: bool) -> TaskResult {
    if !check {
        fs::create_dir_all(directory)?;
    }
    for (path, wanted) in files {
        if !check {
            fs::write(&path, wanted)?;
        } else if fs::read(&path).ok().as_deref() != Some(&wanted[..]) {
            return Err(format!(
                "{} differs from the command line: run `cargo xtask man` and `cargo xtask \
                 completions`",
                path.display()
            )
            .into());
        }
    }
    Ok(())
}
