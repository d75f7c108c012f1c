//! Man pages and completions, made from the command line itself.

use std::fs;
use std::path::{Path, PathBuf};

use clap_complete::{Shell, generate};

use crate::{Chored, root};

/// Makes `docs/man`, one page for the program and one for each subcommand.
pub(crate) fn man(check: bool) -> Chored {
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

/// Collects a command and all below it with the names of their pages.
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

/// Makes one page.
fn page(
    command: &clap::Command,
    name: &str,
    names: &[&str],
) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let subcommand = match name {
        "ibfabric-sm-ctl" => "sm-ctl",
        "ibfabric-acm-ctl" => "acm-ctl",
        "ibfabric-acm-ctl-status" => "acm-status",
        "ibfabric-acm-ctl-known" => "acm-known",
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
        return Err(format!("the page of {name} refers its reader to itself").into());
    }
    Ok(out)
}

/// Returns the exit statuses of the command of a page with their meanings.
///
/// # Errors
/// Fails for a page of which nothing is written here: what another command does is no guess.
fn statuses(page: &str) -> Result<Vec<(u8, &'static str)>, String> {
    const UNUSABLE: &str = "The input or the command line is unusable.";
    let all = |good, bad, unusable| vec![(0, good), (1, bad), (2, unusable)];
    let two = |good| vec![(0, good), (2, UNUSABLE)];
    const UNREACHABLE: &str = "An address, a peer or an option is unusable, or a signal has ended the command before it was done.";
    const UNWRITTEN: &str = "The file of \\-\\-capture was not written to its end.";
    Ok(match page {
        "ibfabric" | "ibfabric-capture" | "ibfabric-rdma" | "ibfabric-rtrs" => all(
            "The answer is good.",
            "The answer is bad: the page of each command says how.",
            UNUSABLE,
        ),
        "ibfabric-gen" => two("The file was written."),
        "ibfabric-rtrs-serve" => two("The server was told to end."),
        "ibfabric-rtrs-bench" => all(
            "All requests were done, and what was compared was as it was written.",
            "A request has failed, or what was read is not what was written.",
            "The server or its device cannot be used, or the command line.",
        ),
        "ibfabric-rtrs-ctl"
        | "ibfabric-rtrs-ctl-get"
        | "ibfabric-rtrs-ctl-set"
        | "ibfabric-rtrs-ctl-list"
        | "ibfabric-rtrs-ctl-metrics" => all(
            "It was done.",
            "It was not done: the number of the error tells why, as it does for files.",
            "Nobody listens at the socket, or does not answer, or the command line is unusable.",
        ),
        "ibfabric-rtrs-mount" => vec![
            (0, "The command was told to end, or somebody has unmounted the files."),
            (
                2,
                "Nobody listens at a socket, nothing can be mounted, or the command line is unusable.",
            ),
        ],
        "ibfabric-nbd" => vec![
            (0, "The command was told to end."),
            (2, "The server or its device cannot be used, or the command line."),
        ],
        "ibfabric-sim" => two("The simulator was asked to end, or the replay is over."),
        "ibfabric-sim-ctl" => all("All commands were done.", "A command was refused.", UNUSABLE),
        "ibfabric-sm" => all(
            "The manager was told to end; or, with \\-\\-once, the subnet is up, and all of it.",
            "With \\-\\-once: the subnet is up, but something does not answer or cannot be reached.",
            UNUSABLE,
        ),
        "ibfabric-sm-ctl"
        | "ibfabric-sm-ctl-status"
        | "ibfabric-sm-ctl-sweep"
        | "ibfabric-sm-ctl-routes"
        | "ibfabric-sm-ctl-metrics" => {
            all("The manager has answered.", "The manager has no answer.", UNUSABLE)
        }
        "ibfabric-acm" => two("The service was told to end."),
        "ibfabric-acm-ctl"
        | "ibfabric-acm-ctl-status"
        | "ibfabric-acm-ctl-known"
        | "ibfabric-acm-ctl-flush"
        | "ibfabric-acm-ctl-reload"
        | "ibfabric-acm-ctl-metrics" => {
            all("The service has answered.", "The service has no answer.", UNUSABLE)
        }
        "ibfabric-acme" => vec![
            (
                0,
                "The last path was resolved, counters and endpoints are shown, or files were written.",
            ),
            (2, "There is no service, or the command line is unusable."),
            (255, "The last path was not resolved, or subnet administration has another one."),
        ],
        "ibfabric-check" => vec![
            (0, "All checks passed."),
            (1, "Something is unreachable, or packets can loop or deadlock."),
            (2, UNUSABLE),
            (
                3,
                "No problem was found, but a dump has gaps, and not all pairs of a switch and a LID can be judged.",
            ),
        ],
        "ibfabric-route" | "ibfabric-tracer" | "ibfabric-agent" => all(
            "The answer is good.",
            "The answer is bad: something is unreachable, packets can loop or deadlock, or no engine of the list can route the fabric.",
            UNUSABLE,
        ),
        "ibfabric-up" => all(
            "A signal has stopped it; or, with \\-\\-check, all checks passed.",
            "With \\-\\-check: something is not.",
            "The fabric or a place cannot be used, the tour was interrupted, or the command line is wrong.",
        ),
        "ibfabric-capture-list" => two("The programs were listed, even if there are none."),
        "ibfabric-capture-start" => all(
            "The capture was started; or, with \\-w \\-, it has ended as it should, or its reader has left.",
            "With \\-w \\-: something went wrong with the stream, and what is missing there is counted as not written.",
            "The command line is unusable, there is no such program, or it refuses: nothing is captured.",
        ),
        "ibfabric-capture-change" => vec![
            (0, "From now on the capture keeps that."),
            (
                2,
                "The command line is unusable, there is no such program or capture, or it refuses.",
            ),
        ],
        "ibfabric-capture-stop" => all(
            "The captures have ended, and what is said of their files is in them.",
            "A file was not written to its end: the message tells the byte and the reason.",
            "The command line is unusable, or there is no such program or capture.",
        ),
        "ibfabric-capture-read" => vec![
            (0, "The file was read to its end, or so far as \\-\\-count says."),
            (2, "The command line is unusable, or the file: it is no capture, or is cut off."),
        ],
        "ibfabric-capture-correlate" => all(
            "Packets were matched.",
            "No packet was seen at both ends, both files are the same, there is no such queue pair, or no event of the second kind follows one of the first.",
            "The command line is unusable, or a file cannot be read, is cut off, or has no RDMA packets.",
        ),
        "ibfabric-rdma-devinfo" => two("The adapter is shown."),
        "ibfabric-rdma-serve" => all(
            "The clients were served, or a signal has ended the server.",
            UNWRITTEN,
            "An address or an option is unusable; or, with \\-\\-clients, a client was not understood.",
        ),
        "ibfabric-rdma-ping" => all(
            "All pings came back unchanged.",
            "A ping came back changed, or the file of \\-\\-capture was not written to its end.",
            UNREACHABLE,
        ),
        "ibfabric-rdma-cmatose" | "ibfabric-rdma-pingpong" => {
            all("All messages have come.", UNWRITTEN, UNREACHABLE)
        }
        "ibfabric-rdma-bw" | "ibfabric-rdma-lat" => all("It was measured.", UNWRITTEN, UNREACHABLE),
        "ibfabric-run" => vec![
            (0, "The program has exited with status 0; every other status is that of the program."),
            (2, "The command line is unusable, or there is no such simulator or node."),
            (126, "The program cannot be run."),
            (127, "There is no such program."),
        ],
        _ => return Err(format!("xtask/src/docs.rs: no exit statuses are written for {page}")),
    })
}

fn section(out: &mut Vec<u8>, heading: &str) {
    out.extend(format!(".SH \"{heading}\"\n").bytes());
}

/// Adds lines that keep their breaks.
fn verbatim(out: &mut Vec<u8>, text: &str) {
    out.extend(format!(".nf\n{}\n.fi\n", escaped(text)).bytes());
}

/// Escapes what roff would read as more than text.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let guarded = |line: &str| match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line.to_owned(),
    };
    text.lines().map(guarded).collect::<Vec<_>>().join("\n")
}

/// Makes `docs/completions`, one file for each shell.
pub(crate) fn completions(check: bool) -> Chored {
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

fn put(directory: &Path, files: Vec<(PathBuf, Vec<u8>)>, check: bool) -> Chored {
    if !check {
        fs::create_dir_all(directory)?;
    }
    for (path, wanted) in files {
        if !check {
            fs::write(&path, wanted)?;
        } else if fs::read(&path).ok().as_deref() != Some(&wanted[..]) {
            return Err(format!(
                "{} is not what the command line makes of it: run `cargo xtask man` and `cargo \
                 xtask completions`",
                path.display()
            )
            .into());
        }
    }
    Ok(())
}
