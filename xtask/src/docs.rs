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
    let names: Vec<String> =
        command.get_subcommands().map(|sub| format!("ibfabric-{}", sub.get_name())).collect();
    let mut pages = vec![(directory.join("ibfabric.1"), page(&command, "ibfabric", &names)?)];
    for (sub, name) in command.get_subcommands().zip(&names) {
        pages.push((directory.join(format!("{name}.1")), page(sub, name, &names)?));
    }
    put(&directory, pages, check)
}

/// Makes one page.
fn page(
    command: &clap::Command,
    name: &str,
    names: &[String],
) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let subcommand = command.get_name();
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
    if subcommand == "gen" {
        section(&mut out, "KINDS");
        verbatim(&mut out, &ibfabric::cli::kinds());
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
    let statuses = [
        (0, "The answer is good."),
        (
            1,
            "The answer is bad: something is unreachable, packets can loop or deadlock, or no engine of the list can route the fabric.",
        ),
        (2, "The input or the command line is unusable."),
    ];
    for (status, meaning) in statuses {
        out.extend(format!(".TP\n\\fB{status}\\fR\n{meaning}\n").bytes());
    }
    section(&mut out, "SEE ALSO");
    let others =
        names.iter().map(String::as_str).chain(["ibfabric"]).filter(|&other| other != name);
    let mut others: Vec<String> =
        others.map(|other| format!("\\fB{}\\fR(1)", escaped(other))).collect();
    others.extend(["opensm", "ibnetdiscover"].map(|other| format!("\\fB{other}\\fR(8)")));
    others.push("the project's docs/fabric\\-files.md for the file formats".to_owned());
    out.extend(format!("{}\n", others.join(", ")).bytes());
    Ok(out)
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
