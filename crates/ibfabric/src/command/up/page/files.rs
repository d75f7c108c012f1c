//! The files of the page, which are part of the program.

use ib_net::web::File;

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Makes the table of files out of their names and media types; the first one is the page itself.
macro_rules! files {
    ($page:literal, $($name:literal: $kind:expr),* $(,)?) => {
        &[
            file!("", "text/html; charset=utf-8", $page),
            $(file!($name, $kind, $name)),*
        ]
    };
}

macro_rules! file {
    ($name:expr, $kind:expr, $path:literal) => {
        File {
            name: $name,
            kind: $kind,
            content: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/page/", $path)),
        }
    };
}

/// All files.
pub(super) const FILES: &[File] = files!["index.html",];
