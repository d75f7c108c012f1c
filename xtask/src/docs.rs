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
    for (status, meaning) in statuses(subcommand) {
        out.extend(format!(".TP\n\\fB{status}\\fR\n{meaning}\n").bytes());
    }
    section(&mut out, "SEE ALSO");
    let others = names.iter().filter(|&&other| other != name);
    let mut others: Vec<String> =
        others.map(|other| format!("\\fB{}\\fR(1)", escaped(other))).collect();
    others.extend(["opensm", "ibnetdiscover"].map(|other| format!("\\fB{other}\\fR(8)")));
    let more = match subcommand {
        "sim" | "ctl" => "docs/simulator.md",
        "capture" | "read" => "docs/capture.md",
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

/// Returns the exit statuses of a subcommand with their meanings.
fn statuses(subcommand: &str) -> [(u8, &'static str); 3] {
    let (good, bad) = match subcommand {
        "gen" => ("The file was written.", "Never."),
        "sim" => ("The simulator was asked to end, or the replay is over.", "Never."),
        "sm" => (
            "The manager was told to end; or, with --once, the subnet is up, and all of it.",
            "With --once: the subnet is up, but something does not answer or cannot be reached.",
        ),
        "sm-ctl" | "status" | "sweep" | "routes" | "metrics" => {
            ("The manager has answered.", "The manager has no answer.")
        }
        "ctl" => ("All commands were done.", "A command was refused."),
        "capture" | "read" => ("The file was read to its end.", "Never."),
        _ => (
            "The answer is good.",
            "The answer is bad: something is unreachable, packets can loop or deadlock, or no engine of the list can route the fabric.",
        ),
    };
    [(0, good), (1, bad), (2, "The input or the command line is unusable.")]
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
