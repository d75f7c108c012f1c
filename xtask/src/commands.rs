//! Generates `docs/reference/commands`, the man pages as documents.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Arg, Command};

use crate::docs::{key, put, statuses};
use crate::paths::GENERATED;
use crate::{TaskResult, root};

/// The line before the contents of each generated document.
const ORIGIN: &str = "<!-- `cargo xtask man` generates this document. -->\n";

/// Generates a document for each command of the program, which also describes its subcommands. `commands` has all commands and subcommands with the names of their man pages.
pub(crate) fn write(commands: &[(String, &Command)], check: bool) -> TaskResult {
    let mut documents: BTreeMap<PathBuf, String> = BTreeMap::new();
    for (name, command) in commands {
        let words: Vec<&str> = name.split('-').collect();
        let file = words.get(1).map_or("ibfabric", |word| word);
        let text = documents
            .entry(PathBuf::from(format!("{file}.md")))
            .or_insert_with(|| ORIGIN.to_owned());
        describe(text, &words, name, command)?;
    }
    let documents = documents.into_iter().map(|(path, text)| (path, text.into_bytes()));
    let directory = root().join(GENERATED);
    let files = documents.map(|(path, text)| (directory.join(path), text)).collect();
    put(&directory, files, check)
}

/// Appends the section of a command.
fn describe(text: &mut String, words: &[&str], name: &str, command: &Command) -> TaskResult {
    let depth = if words.len() <= 2 { "#" } else { "##" };
    writeln!(text, "{depth} {}", words.join(" "))?;
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string);
    writeln!(text, "{}\n", escaped(&about.unwrap_or_default()))?;
    let usage = command.clone().bin_name(words.join(" ")).render_usage().to_string();
    for line in usage.trim_start_matches("Usage:").lines() {
        writeln!(text, "    {}", line.trim())?;
    }
    if command.has_subcommands() {
        writeln!(text, "\n| subcommand | purpose |\n|---|---|")?;
        for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            let anchor = format!("{}-{}", words.join("-"), sub.get_name());
            let target = if words.len() == 1 {
                format!("{}.md", sub.get_name())
            } else {
                format!("#{anchor}")
            };
            let about = escaped(&about).replace('|', "\\|");
            writeln!(text, "| [`{}`]({target}) | {about} |", sub.get_name())?;
        }
    }
    let mut groups: Vec<(&str, Vec<&Arg>)> = Vec::new();
    for argument in command.get_arguments().filter(|it| !it.is_hide_set()) {
        let heading = argument.get_help_heading();
        let heading =
            heading.unwrap_or(if argument.is_positional() { "Arguments" } else { "Options" });
        match groups.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, group)) => group.push(argument),
            None => groups.push((heading, vec![argument])),
        }
    }
    for (heading, group) in groups {
        writeln!(text, "\n**{heading}**\n")?;
        for argument in group {
            option(text, argument)?;
        }
    }
    let key = key(name, command);
    match key {
        "gen" => verbatim(text, "Kinds", &ibfabric::cli::kinds())?,
        "ctl" => {
            verbatim(text, "Commands", ibfabric::cli::sim::CONSOLE)?;
            writeln!(text, "\n{}", escaped(ibfabric::cli::sim::CONSOLE_NAMES))?;
        }
        _ => {}
    }
    for (what, line) in ibfabric::cli::examples(key) {
        verbatim(text, &format!("Example: {what}"), line)?;
    }
    writeln!(text, "\n**Exit status**\n\n| status | when |\n|---|---|")?;
    for (status, meaning) in statuses(name)? {
        writeln!(text, "| {status} | {} |", plain(meaning))?;
    }
    writeln!(text)?;
    Ok(())
}

/// Appends a text with its line breaks, below a heading. It is indented and not fenced, so that the test of the
/// documents does not run it.
fn verbatim(text: &mut String, heading: &str, lines: &str) -> TaskResult {
    writeln!(text, "\n**{}**\n", escaped(heading))?;
    for line in lines.lines() {
        writeln!(text, "{}", format!("    {line}").trim_end())?;
    }
    Ok(())
}

/// Appends an option or an argument, as an entry of a list.
fn option(text: &mut String, argument: &Arg) -> TaskResult {
    let spelling = argument.to_string();
    let short = argument.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    let short = if argument.get_long().is_some() { short } else { String::new() };
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string);
    let help = help.unwrap_or_default();
    let mut help = help.split("\n\n").map(|part| escaped(&part.replace('\n', " ")));
    write!(text, "* `{short}{spelling}`: {}", help.next().unwrap_or_default())?;
    if argument.get_action().takes_values() {
        let defaults: Vec<_> =
            argument.get_default_values().iter().map(|it| it.to_string_lossy()).collect();
        if !defaults.concat().is_empty() {
            write!(text, " [default: {}]", escaped(&defaults.join(" ")))?;
        }
        let values = argument.get_possible_values();
        let names: Vec<_> = values.iter().map(PossibleValue::get_name).collect();
        if !names.is_empty() {
            write!(text, " [possible values: {}]", escaped(&names.join(", ")))?;
        }
    }
    writeln!(text)?;
    for part in help {
        writeln!(text, "\n  {part}")?;
    }
    Ok(())
}

/// Removes the escapes of roff from a text.
fn plain(text: &str) -> String {
    escaped(&text.replace("\\-", "-"))
}

/// Escapes characters outside of backquotes that have a special meaning in Markdown.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for (index, part) in text.split('`').enumerate() {
        if index > 0 {
            escaped.push('`');
        }
        if index % 2 == 1 {
            escaped.push_str(part);
            continue;
        }
        for character in part.chars() {
            if matches!(character, '<' | '*' | '_') {
                escaped.push('\\');
            }
            escaped.push(character);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_outside_of_code_is_escaped() {
        assert_eq!(escaped("a_b `c_d` <e>"), "a\\_b `c_d` \\<e>");
        assert_eq!(plain("with \\-\\-once"), "with --once");
    }
}
