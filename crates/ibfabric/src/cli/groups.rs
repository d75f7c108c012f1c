//! The headings under which the help lists the commands.

use std::fmt::Write as _;

/// Each heading, with the names of its commands.
pub(super) const GROUPS: [(&str, &[&str]); 6] = [
    ("Fabric", &["gen", "route", "check", "sim"]),
    ("Management", &["sm", "acm", "acme"]),
    ("Data", &["rdma", "rtrs", "nbd", "run", "hca"]),
    ("Diagnosis", &["tracer", "agent", "capture"]),
    ("Whole stack", &["up", "selftest"]),
    ("Shell", &["completions", "help"]),
];

/// Width of the column of command names, in characters.
const NAME_WIDTH: usize = 13;
/// Width of a line, in characters.
const WIDTH: usize = 80;

/// Returns the template of the help, which lists the commands under their headings. clap has headings for options
/// only.
pub(super) fn help_template(command: &clap::Command) -> String {
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (heading, names) in GROUPS {
        write!(text, "\n{heading}:\n").expect("writes to a String succeed");
        for name in names {
            let about = match *name {
                "help" => "Prints this text, or the help of a command".to_owned(),
                name => {
                    let command = command.find_subcommand(name);
                    let about = command.and_then(clap::Command::get_about);
                    about.map(ToString::to_string).unwrap_or_default()
                }
            };
            let lines = wrapped(&about, WIDTH - NAME_WIDTH - 2);
            for (number, line) in lines.iter().enumerate() {
                let name = if number == 0 { name } else { "" };
                writeln!(text, "  {name:NAME_WIDTH$}{line}").expect("writes to a String succeed");
            }
        }
    }
    text + "\nOptions:\n{options}{after-help}"
}

/// Divides a text into lines of at most `width` characters at its spaces.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Command;

    use super::*;

    #[test]
    fn every_command_has_one_heading() {
        let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let set: BTreeSet<&str> = listed.iter().copied().collect();
        assert_eq!(set.len(), listed.len(), "{listed:?}");
        let command = crate::cli::command();
        let known = command.get_subcommands().map(Command::get_name).chain(["help"]);
        assert_eq!(set, known.collect());
    }

    #[test]
    fn help_lists_commands_below_their_headings() {
        let help = crate::cli::command().render_help().to_string();
        let mut rest = &*help;
        for (heading, names) in GROUPS {
            let names = names.iter().map(|name| format!("\n  {name} "));
            for part in std::iter::once(format!("\n{heading}:\n")).chain(names) {
                let at = rest.find(&part).unwrap_or_else(|| panic!("{part:?} is not in {rest}"));
                rest = &rest[at + part.len() - 1..];
            }
        }
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
        assert!(!help.contains('{') && rest.contains("--quiet"), "{help}");
    }
}
