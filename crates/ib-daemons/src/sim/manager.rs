//! `ibfabric sim --sm`: a subnet manager at the first host, which keeps the fabric up.

use ib_os::alarm::Alarm;
use ib_sim::{ClientId, ClientOptions, Sim};
use ib_topology::PortId;
use ib_types::Instant;

use super::record::Recorder;
use crate::error::DaemonError;
use crate::log::Listener;
use crate::message::say;
use crate::sm::{Daemon, ManagerOptions, News, Shown, hosted};

/// A manager in the process of its fabric.
pub(crate) struct Manager {
    daemon: Daemon,
    pub(super) client: ClientId,
    pub(super) alarm: Alarm,
    /// Whether the subnet was up.
    pub(super) was_up: bool,
}

/// What the manager's port has of the simulator.
pub(super) const OPTIONS: ClientOptions =
    ClientOptions { is_sm: true, queue_pair: 0, class: None, told_of_losses: true };

impl Manager {
    /// Starts a manager with a list of engines at a client's port.
    pub(super) fn start(
        sim: &Sim,
        (client, port): (ClientId, PortId),
        options: &ManagerOptions,
        now: Instant,
    ) -> Result<Self, DaemonError> {
        let alarm = Alarm::new().map_err(DaemonError::failed)?;
        let guid = sim.link_port(port).port_guid;
        let daemon = hosted(options, guid, now, &alarm)?;
        Ok(Self { daemon, client, alarm, was_up: false })
    }

    /// Returns when it has something to do.
    pub(super) fn due(&self) -> Option<Instant> {
        self.daemon.poll_timeout()
    }

    /// Returns whether something has come for it that it has not taken yet.
    pub(super) fn is_asked(&self, sim: &Sim) -> bool {
        sim.has_incoming(self.client)
    }

    /// Returns what it is and has done.
    pub(crate) fn shown(&self) -> Shown {
        self.daemon.shown()
    }

    /// Returns its place at the fabric.
    pub(crate) const fn client(&self) -> ClientId {
        self.client
    }

    /// Has somebody told each line of its log.
    pub(crate) fn listen(&self, listener: Listener) {
        self.daemon.listen(listener);
    }

    /// Takes what has come for it and sends what it has to say, until neither is left.
    pub(super) fn work(
        &mut self,
        sim: &mut Sim,
        mut recorder: Option<&mut Recorder>,
        now: Instant,
    ) -> Result<(), DaemonError> {
        self.alarm.silence();
        self.daemon.handle_timeout(now);
        loop {
            let mut sent = false;
            let news = self.daemon.work(now, &mut |datagram| {
                sent = true;
                if let Some(recorder) = &mut recorder {
                    recorder.mark(sim);
                }
                sim.submit(self.client, datagram);
                // One after the other they find the caches warm and the queues empty.
                sim.keep_up(now);
                if let Some(recorder) = &mut recorder {
                    recorder.submit(self.client, datagram);
                }
                Ok(())
            })?;
            for news in news {
                match news {
                    News::Up(_) => self.was_up = true,
                    // It was logged, which is said on standard error here.
                    News::NoPlan(_) if !self.was_up => return Err(DaemonError::Reported),
                    News::NoPlan(_) => {}
                    News::Standby(other) => {
                        say!("the fabric has another subnet manager: {other}");
                        self.was_up = true;
                    }
                }
            }
            let mut received = false;
            while let Some(incoming) = sim.receive(self.client) {
                received = true;
                self.daemon.handle(now, &incoming);
            }
            if !sent && !received {
                return Ok(());
            }
        }
    }
}
