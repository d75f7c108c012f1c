//! Builds the documents as a book.
//!
//! The program that builds it is the crate `book`. It has a lock file of its own, so that mdBook's dependencies are not
//! built with the workspace.

use std::process::Command;

use crate::{TaskResult, root};

/// Builds the book in `target/book`.
pub(crate) fn run() -> TaskResult {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--quiet", "--locked", "--target-dir", "target/book-builder"])
        .args(["--manifest-path", "book/Cargo.toml", "--", "docs"])
        .current_dir(root())
        .status()?;
    if !status.success() {
        return Err("the book could not be built".into());
    }
    eprintln!("built the book: {}", root().join("target/book/index.html").display());
    Ok(())
}
