//! From a path to a file.

use std::collections::BTreeMap;

use super::TreeError;
use super::layout::{File, Files, Layout, PATHS, STATS};
use ib_types::Errno;

/// What something in the tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It can be listed.
    Directory,
    /// It can be read, and written if it says so.
    File {
        /// Whether anything may be written.
        is_writable: bool,
    },
}

/// Something in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
}

/// The sessions and paths that there are.
pub(super) trait Sessions {
    type Session: Copy;
    type Path: Copy;

    /// Returns sessions with their names.
    fn sessions(&self) -> Vec<(String, Self::Session)>;

    /// Returns the paths of a session with their names.
    fn paths(&self, session: Self::Session) -> Vec<(String, Self::Path)>;
}

/// Where a path leads to.
pub(super) enum Place<S, P> {
    Root,
    Side,
    Session(&'static Layout, S),
    Paths(S),
    Path(&'static Layout),
    Stats(&'static Layout),
    File(&'static Layout, Option<P>, File),
}

/// The place of the sessions of something.
type PlaceOf<S> = Place<<S as Sessions>::Session, <S as Sessions>::Path>;

/// Finds what a path leads to. Slashes at both ends, and several in place of one, count for nothing.
pub(super) fn find<S: Sessions>(
    layouts: [&'static Layout; 2],
    sessions: &S,
    path: &str,
) -> Result<PlaceOf<S>, TreeError> {
    let wrong = |errno, what: &str| TreeError::new(errno, path, what);
    let no_such = || wrong(Errno::ENOENT, "there is no such file or directory");
    let mut names = path.split('/').filter(|name| !name.is_empty());
    let Some(name) = names.next() else { return Ok(Place::Root) };
    let layout = layouts.into_iter().find(|layout| layout.root == name).ok_or_else(no_such)?;
    let Some(name) = names.next() else { return Ok(Place::Side) };
    let session = named(sessions.sessions(), name).ok_or_else(no_such)?;
    let Some(name) = names.next() else { return Ok(Place::Session(layout, session)) };
    let file = |files, name, path| {
        file(files, name).map(|file| Place::File(layout, path, file)).ok_or_else(no_such)
    };
    let place = if name == PATHS {
        let Some(name) = names.next() else { return Ok(Place::Paths(session)) };
        let path = named(sessions.paths(session), name).ok_or_else(no_such)?;
        match names.next() {
            None => return Ok(Place::Path(layout)),
            Some(STATS) => match names.next() {
                None => return Ok(Place::Stats(layout)),
                Some(name) => file(layout.stats, name, Some(path))?,
            },
            Some(name) => file(layout.path, name, Some(path))?,
        }
    } else {
        file(layout.session, name, None)?
    };
    match names.next() {
        None => Ok(place),
        Some(_) => Err(wrong(Errno::ENOTDIR, "what is before the last slash is no directory")),
    }
}

fn named<T>(all: Vec<(String, T)>, name: &str) -> Option<T> {
    all.into_iter().find(|(own, _)| own == name).map(|(_, it)| it)
}

fn file(files: Files, name: &str) -> Option<File> {
    files.iter().find(|(own, _)| *own == name).map(|&(_, file)| file)
}

/// Returns what is in a directory.
pub(super) fn list<S: Sessions>(
    layouts: [&'static Layout; 2],
    sessions: &S,
    path: &str,
) -> Result<Vec<Entry>, TreeError> {
    let directory = |name: String| Entry { name, kind: Kind::Directory };
    let files = |files: Files| {
        let entry =
            |&(name, file): &(&str, File)| Entry { name: name.to_owned(), kind: kind(file) };
        files.iter().map(entry).collect::<Vec<_>>()
    };
    let with = |listed: Files, name: &str| {
        let mut entries = files(listed);
        entries.push(directory(name.to_owned()));
        entries
    };
    Ok(match find(layouts, sessions, path)? {
        Place::Root => layouts.map(|layout| directory(layout.root.to_owned())).into(),
        Place::Side => sessions.sessions().into_iter().map(|(name, _)| directory(name)).collect(),
        Place::Session(layout, _) => with(layout.session, PATHS),
        Place::Paths(session) => {
            sessions.paths(session).into_iter().map(|(name, _)| directory(name)).collect()
        }
        Place::Path(layout) => with(layout.path, STATS),
        Place::Stats(layout) => files(layout.stats),
        Place::File(..) => return Err(TreeError::new(Errno::ENOTDIR, path, "it is no directory")),
    })
}

/// Returns what a path leads to.
pub(super) fn kind_of<S: Sessions>(
    layouts: [&'static Layout; 2],
    sessions: &S,
    path: &str,
) -> Result<Kind, TreeError> {
    Ok(match find(layouts, sessions, path)? {
        Place::File(_, _, file) => kind(file),
        _ => Kind::Directory,
    })
}

const fn kind(file: File) -> Kind {
    Kind::File { is_writable: file.is_writable() }
}

/// Returns the file that a path leads to.
pub(super) fn find_file<S: Sessions>(
    layouts: [&'static Layout; 2],
    sessions: &S,
    path: &str,
) -> Result<(&'static Layout, Option<S::Path>, File), TreeError> {
    match find(layouts, sessions, path)? {
        Place::File(layout, of, file) => Ok((layout, of, file)),
        _ => Err(TreeError::new(Errno::EISDIR, path, "it is a directory")),
    }
}

/// Returns paths with names of which no two are the same: the second of a name has `#2` behind it, and so on.
pub(super) fn distinct<P>(paths: impl Iterator<Item = (String, P)>) -> Vec<(String, P)> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let mut named = Vec::new();
    for (name, path) in paths {
        let count = counts.entry(name.clone()).and_modify(|count| *count += 1).or_insert(1);
        named.push((if *count == 1 { name } else { format!("{name}#{count}") }, path));
    }
    named
}

/// Returns the name of a session as that of a directory: what is no text, or not to be seen, is written as `\xNN`.
pub(super) fn session_name(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(text) if !text.contains(|it: char| it.is_control() || it == '\\') => text.to_owned(),
        _ => name.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests;
