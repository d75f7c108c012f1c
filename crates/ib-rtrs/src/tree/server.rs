//! The files of a server's sessions.

use ib_types::Instant;

use super::client::last;
use super::layout::{File, Layout};
use super::walk::{Sessions, distinct, find_file, kind_of, list, session_name};
use super::{Entry, Kind, Ports, TreeError, ibtrs, metrics, rtrs, value};
use crate::server::{Server, ServerPathId, SessionId};
use crate::stats::ServerStat;
use ib_types::Errno;

const LAYOUTS: [&Layout; 2] = [&ibtrs::SERVER, &rtrs::SERVER];

/// The tree of a server: sessions with a path that is connected.
#[derive(Debug, Default)]
pub struct ServerTree;

impl Sessions for Server {
    type Session = SessionId;
    type Path = ServerPathId;

    fn sessions(&self) -> Vec<(String, SessionId)> {
        Server::sessions(self)
            .map(|id| (session_name(self.name(id).unwrap_or_default()), id))
            .collect()
    }

    fn paths(&self, session: SessionId) -> Vec<(String, ServerPathId)> {
        let paths = self.connected_paths(session);
        distinct(paths.filter_map(|id| Some((self.address(id)?.to_string(), id))))
    }
}

impl ServerTree {
    /// Returns what is in a directory.
    ///
    /// # Errors
    /// Fails with [`Errno::ENOENT`] when there is nothing of the name, with [`Errno::ENOTDIR`] when it is a file.
    pub fn list(&self, server: &Server, path: &str) -> Result<Vec<Entry>, TreeError> {
        list(LAYOUTS, server, path)
    }

    /// Returns what a path leads to.
    ///
    /// # Errors
    /// Fails with [`Errno::ENOENT`] when there is nothing of the name, with [`Errno::ENOTDIR`] when it goes on behind a
    /// file.
    pub fn kind(&self, server: &Server, path: &str) -> Result<Kind, TreeError> {
        kind_of(LAYOUTS, server, path)
    }

    /// Returns what a file has to say, with a line's end behind it.
    ///
    /// # Errors
    /// As [`ServerTree::kind`], and with [`Errno::EISDIR`] when it is a directory, [`Errno::ENODEV`] when the HCA is
    /// gone.
    pub fn read(
        &self,
        server: &Server,
        ports: &impl Ports,
        path: &str,
    ) -> Result<String, TreeError> {
        let (layout, of, file) = find_file(LAYOUTS, server, path)?;
        let gone = || TreeError::new(Errno::ENODEV, path, "the path is gone");
        let id = of.ok_or_else(gone)?;
        let address = server.address(id).ok_or_else(gone)?;
        let port =
            || server.adapter(id).and_then(|adapter| ports.port_name(adapter)).ok_or_else(gone);
        Ok(match file {
            File::Disconnect => format!("Usage: echo 1 > {}\n", last(path)),
            File::ResetAll => format!("Usage: echo {} > {}\n", layout.formats.reset, last(path)),
            File::HcaName => format!("{}\n", port()?.adapter),
            File::HcaPort => format!("{}\n", port()?.number),
            File::SourceAddress => match address.source {
                Some(source) => format!("{source}\n"),
                None => "\n".to_owned(),
            },
            File::DestinationAddress => format!("{}\n", address.destination),
            file => {
                let stats = server.stats(id).ok_or_else(gone)?;
                (layout.formats.server)(file, stats, server.inflight(id).unwrap_or(0))
            }
        })
    }

    /// Writes to a file. That never takes its time: the client of a path that is disconnected hears of it later.
    ///
    /// # Errors
    /// As [`ServerTree::read`], and with [`Errno::EACCES`] when nothing can be written there, [`Errno::EINVAL`] when it
    /// makes no sense.
    pub fn write(
        &self,
        now: Instant,
        server: &mut Server,
        ports: &mut impl Ports,
        path: &str,
        bytes: &[u8],
    ) -> Result<(), TreeError> {
        let (_, of, file) = find_file(LAYOUTS, server, path)?;
        if !file.is_writable() {
            return Err(TreeError::new(Errno::EACCES, path, "it can only be read"));
        }
        let wrong = |what: String| TreeError::new(Errno::EINVAL, path, what);
        let text = value::text(bytes).map_err(wrong)?;
        let gone = || TreeError::new(Errno::ENODEV, path, "the path is gone");
        let id = of.ok_or_else(gone)?;
        if file == File::Disconnect {
            value::one(text).map_err(wrong)?;
            server.disconnect_path(now, ports, id);
            return Ok(());
        }
        value::reset(text).map_err(wrong)?;
        let stat = match file {
            File::Traffic => ServerStat::Traffic,
            File::Completions => ServerStat::Completions,
            _ => ServerStat::All,
        };
        server.reset_stats(id, stat);
        Ok(())
    }

    /// Returns all numbers in the text format of Prometheus.
    #[must_use]
    pub fn metrics(&self, server: &Server) -> String {
        let sessions = Sessions::sessions(server).into_iter();
        let sessions: Vec<_> =
            sessions.map(|(name, id)| (name, Sessions::paths(server, id))).collect();
        metrics::server(server, &sessions)
    }
}
