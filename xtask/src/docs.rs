//! Man pages and completions, made from the command line itself.

use std::fs;
use std::path::{Path, PathBuf};

use clap_complete::{Shell, generate};

use crate::{Chored, root};

/// Makes `docs/man`, one page for the program and one for each subcommand.
pub(crate) fn man(check: bool) -> Chored {
    let directory = root().join("docs/man");
    let mut pages = Vec::new();
    let mut command = ibfabric::cli::command();
    command.build();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    pages.push((directory.join("ibfabric.1"), page));
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        let name = format!("ibfabric-{}", sub.get_name());
        let mut page = Vec::new();
        clap_mangen::Man::new(sub.clone()).title(name.to_uppercase()).render(&mut page)?;
        pages.push((directory.join(format!("{name}.1")), page));
    }
    put(&directory, pages, check)
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
