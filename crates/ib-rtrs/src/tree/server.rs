//! The files of a server's sessions.

use ib_types::Instant;

use super::client::last;
use super::layout::{File, Layout};
use super::walk::{Sessions, distinct, find_file, kind_of, list, session_name};
use super::{Entry, Kind, Ports, Tree, TreeError, ibtrs, metrics, rtrs, value};
use crate::server::{Server, ServerPathId, SessionId};
use crate::stats::ServerStat;
use ib_types::Errno;

const LAYOUTS: [&Layout; 2] = [&ibtrs::SERVER, &rtrs::SERVER];

/// The files of a server: those of all sessions that have a connected path.
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

impl Tree for ServerTree {
    type Engine = Server;

    fn list(&self, server: &Server, path: &str) -> Result<Vec<Entry>, TreeError> {
        list(LAYOUTS, server, path)
    }

    fn kind(&self, server: &Server, path: &str) -> Result<Kind, TreeError> {
        kind_of(LAYOUTS, server, path)
    }

    fn read(&self, server: &Server, ports: &impl Ports, path: &str) -> Result<String, TreeError> {
        let (layout, of, file) = find_file(LAYOUTS, server, path)?;
        let gone = || TreeError::new(Errno::ENODEV, path, "the path was removed");
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

    fn metrics(&self, server: &Server) -> String {
        let sessions = Sessions::sessions(server).into_iter();
        let sessions: Vec<_> =
            sessions.map(|(name, id)| (name, Sessions::paths(server, id))).collect();
        metrics::server(server, &sessions)
    }
}

impl ServerTree {
    /// Writes a file. A write to `disconnect` returns before the client has responded.
    ///
    /// # Errors
    /// Fails with the errors of [`Tree::read`], with [`Errno::EACCES`] if the file is read-only, and with
    /// [`Errno::EINVAL`] if the value is invalid.
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
            return Err(TreeError::new(Errno::EACCES, path, "the file is read-only"));
        }
        let wrong = |reason: String| TreeError::new(Errno::EINVAL, path, reason);
        let text = value::text(bytes).map_err(wrong)?;
        let gone = || TreeError::new(Errno::ENODEV, path, "the path was removed");
        let id = of.ok_or_else(gone)?;
        if file == File::Disconnect {
            value::action(text).map_err(wrong)?;
            server.disconnect_path(now, ports, id);
            return Ok(());
        }
        value::reset(text).map_err(wrong)?;
        let stat = match file {
            File::Traffic => ServerStat::Traffic,
            File::Completions => ServerStat::Completions,
            File::ResetAll
            | File::AddPath
            | File::MaxReconnectAttempts
            | File::Policy
            | File::State
            | File::Reconnect
            | File::Disconnect
            | File::RemovePath
            | File::HcaName
            | File::HcaPort
            | File::SourceAddress
            | File::DestinationAddress
            | File::HeartbeatLatency
            | File::SgEntries
            | File::CpuMigration
            | File::MigratedFrom
            | File::MigratedTo
            | File::Reconnects
            | File::Latencies => ServerStat::All,
        };
        server.reset_stats(id, stat);
        Ok(())
    }
}
