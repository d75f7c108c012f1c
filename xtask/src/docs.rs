//! Generates man pages and shell completions from the clap definition of the command line.

use std::fs;
use std::path::{Path, PathBuf};

use clap_complete::{Shell, generate};
use ibfabric::cli::statuses::{STATUSES, exit_statuses};

use crate::{TaskResult, root};

/// Generates `docs/man`: one page for the program, and one for each subcommand; and
/// `docs/reference/exit-status.md`.
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
    put(&directory, pages, check)?;
    let directory = root().join("docs/reference");
    put(&directory, vec![(directory.join("exit-status.md"), status_table(&names)?)], check)?;
    crate::commands::write(&commands, check)
}

/// Collects a command and its subcommands, each with the name of its man page.
pub(crate) fn collect<'a>(
    command: &'a clap::Command,
    name: &str,
    found: &mut Vec<(String, &'a clap::Command)>,
) {
    found.push((name.to_owned(), command));
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        collect(sub, &format!("{name}-{}", sub.get_name()), found);
    }
}

/// Returns the name by which `cli::examples` knows a command.
pub(crate) fn key<'a>(name: &str, command: &'a clap::Command) -> &'a str {
    match name {
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
    }
}

/// Generates the man page of a command.
fn page(
    command: &clap::Command,
    name: &str,
    names: &[&str],
) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let subcommand = key(name, command);
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
        out.extend(format!(".TP\n\\fB{status}\\fR\n{}\n", escaped(meaning)).bytes());
    }
    section(&mut out, "SEE ALSO");
    let others = names.iter().filter(|&&other| other != name);
    let mut others: Vec<String> =
        others.map(|other| format!("\\fB{}\\fR(1)", escaped(other))).collect();
    others.extend(["opensm", "ibnetdiscover"].map(|other| format!("\\fB{other}\\fR(8)")));
    let more = match subcommand {
        "sim" | "ctl" => "docs/reference/simulator.md",
        _ if name.starts_with("ibfabric-capture") => "docs/reference/capture.md",
        _ if name.starts_with("ibfabric-acm") => "docs/reference/acm.md",
        _ if name.starts_with("ibfabric-rdma") => "docs/reference/rdma.md",
        _ if name.starts_with("ibfabric-rtrs") || subcommand == "nbd" => "docs/reference/rtrs.md",
        "sm" | "sm-ctl" | "status" | "sweep" | "routes" | "metrics" => "docs/reference/sm.md",
        _ => "docs/reference/fabric-files.md for the file formats",
    };
    others.push(format!("the project's {}", escaped(more)));
    out.extend(format!("{}\n", others.join(", ")).bytes());
    let text = String::from_utf8_lossy(&out).replace("\\fR", "");
    if text.contains(&format!("{}(1)", escaped(name))) {
        return Err(format!("the page of {name} refers to itself").into());
    }
    Ok(out)
}

/// Returns the exit statuses of the command with this man page.
///
/// # Errors
/// Fails if the command line does not define them.
pub(crate) fn statuses(page: &str) -> Result<Vec<(u8, &'static str)>, String> {
    exit_statuses(page).ok_or_else(|| {
        format!("crates/ibfabric/src/cli/statuses.rs: expected the exit statuses of {page}")
    })
}

/// Generates `docs/reference/exit-status.md`, the exit statuses of all commands.
fn status_table(names: &[&str]) -> Result<Vec<u8>, String> {
    let mut text = STATUS_HEAD.to_owned();
    for (status, meaning) in STATUSES {
        text.push_str(&format!("| {status} | {meaning} |\n"));
    }
    text.push_str("\n## By command\n| command | status | meaning |\n|---|---|---|\n");
    for name in names.iter().filter(|name| **name != "ibfabric") {
        let command = name.replace('-', " ");
        for (status, meaning) in statuses(name)? {
            if !matches!(status, 130 | 143) {
                text.push_str(&format!("| `{command}` | {status} | {meaning} |\n"));
            }
        }
    }
    Ok(text.into_bytes())
}

const STATUS_HEAD: &str = "\
# Exit statuses
`cargo xtask man` writes this document from the command line. The man page of each command has its own statuses.

| status | meaning |
|---|---|
";

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

/// Generates `docs/schemas`: the JSON Schema of the output of each command with `--json`.
pub(crate) fn schemas(check: bool) -> TaskResult {
    let directory = root().join("docs/schemas");
    let file = |(name, schema): (&str, _)| {
        let text = serde_json::to_string_pretty(&schema).map(|text| text + "\n");
        Ok((directory.join(format!("{name}.json")), text?.into_bytes()))
    };
    let files: serde_json::Result<Vec<_>> =
        ibfabric::schemas::schemas().into_iter().map(file).collect();
    put(&directory, files?, check)
}

pub(crate) fn put(directory: &Path, files: Vec<(PathBuf, Vec<u8>)>, check: bool) -> TaskResult {
    if !check {
        fs::create_dir_all(directory)?;
    }
    for (path, wanted) in files {
        if !check {
            fs::write(&path, wanted)?;
        } else if fs::read(&path).ok().as_deref() != Some(&wanted[..]) {
            return Err(format!(
                "{} differs from the command line: run `cargo xtask man`, `cargo xtask completions` \
                 and `cargo xtask schemas`",
                path.display()
            )
            .into());
        }
    }
    Ok(())
}
