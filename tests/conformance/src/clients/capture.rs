//! Captures of `ibfabric sim` while clients run on it.

use std::fs;
use std::path::{Path, PathBuf};

use super::fabrics::{FABRICS, write_net};
use super::manager::{Manager, Options};
use super::program::{Question, Seat};
use super::questions::Actors;
use super::server::start_capturing;
use super::stage::{StageError, socket_name};
use crate::opensm::first_adapter;
use crate::routing::RecipeError;

/// Runs OpenSM and a few clients on the smallest fabric, and returns the capture file of the run.
///
/// The directory must not exist yet, or be empty.
///
/// # Errors
/// See [`StageError`].
pub fn capture(binary: &Path, library: &Path, directory: &Path) -> Result<PathBuf, StageError> {
    let work = directory.join("clients");
    fs::create_dir_all(&work)?;
    let directory = directory.canonicalize()?;
    let (net, file) = (directory.join("net"), directory.join("run.pcapng"));
    let fabric = FABRICS[0].fabric().map_err(RecipeError::from)?;
    write_net(&fabric, &net)?;
    let socket = socket_name();
    let server = start_capturing(binary, &net, &directory, &socket, &file)?;
    let text = fs::read_to_string(&net)?;
    let seat = Seat {
        socket,
        preload: library.to_owned(),
        node: first_adapter(&text).unwrap_or_default().to_owned(),
        directory: work,
    };
    let options = Options { log_flags: 0x43, ..Options::default() };
    let mut manager = Manager::start(&seat, &directory, &options)?;
    let actors = Actors::choose(&fabric, &manager.lids()?).ok_or(StageError::NoActors)?;
    let (host, leaf) = (&actors.last, &actors.leaf);
    let lines = [
        format!("smpquery nodeinfo {}", host.lid),
        format!("smpquery -D portinfo {} 1", host.route),
        format!("smpquery switchinfo {}", leaf.lid),
        format!("perfquery {} 1", host.lid),
        format!("perfquery -x {} {}", leaf.lid, leaf.port),
        format!("saquery NR {}", host.lid),
        format!("saquery LR {}/{}", leaf.lid, leaf.port),
    ];
    for (number, line) in lines.iter().enumerate() {
        let question = Question::new(line);
        let answer = seat.ask(&question, &directory.join(format!("{number:02}")))?;
        if answer.code != Some(0) {
            return Err(StageError::Failed(format!("{line}: {}", answer.errors.trim())));
        }
    }
    manager.stop();
    drop(manager);
    match server.stop() {
        None => Ok(file),
        Some(fault) => Err(StageError::Failed(fault)),
    }
}
