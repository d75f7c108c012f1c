//! `ibfabric sim --sm`: runs an SM at the first host of the fabric.

use ib_os::alarm::Alarm;
use ib_sim::{ClientId, ClientOptions, Sim};
use ib_topology::PortId;
use ib_types::Instant;

use super::record::Recorder;
use crate::error::DaemonError;
use crate::log::Listener;
use crate::message::note;
use crate::sm::{Daemon, ManagerOptions, News, Shown, hosted};

/// An SM that runs within the simulator's process.
pub(crate) struct Manager {
    daemon: Daemon,
    pub(super) client: ClientId,
    pub(super) alarm: Alarm,
    /// True once the SM has brought the subnet up or another SM is the master.
    pub(super) was_up: bool,
}

/// Options with which the SM attaches to the simulator.
pub(super) const OPTIONS: ClientOptions =
    ClientOptions { is_sm: true, queue_pair: 0, class: None, reports_losses: true };

impl Manager {
    /// Starts an SM at a port. The SM uses the given simulator client, which is attached to this port.
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

    /// Returns the time at which the SM's next timer expires.
    pub(super) fn due(&self) -> Option<Instant> {
        self.daemon.poll_timeout()
    }

    /// Returns true if the SM has received MADs that it has not handled.
    pub(super) fn has_input(&self, sim: &Sim) -> bool {
        sim.has_incoming(self.client)
    }

    /// Returns the state of the SM.
    pub(crate) fn shown(&self) -> Shown {
        self.daemon.shown()
    }

    /// Returns the simulator client that belongs to the SM.
    pub(crate) const fn client(&self) -> ClientId {
        self.client
    }

    /// Sets a callback that receives the SM's log lines.
    pub(crate) fn listen(&self, listener: Listener) {
        self.daemon.listen(listener);
    }

    /// Handles the SM's input and timers and sends its MADs until nothing is left to do.
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
                // Delivering each MAD before the next one is submitted keeps CPU caches warm and queues short.
                sim.keep_up(now);
                if let Some(recorder) = &mut recorder {
                    recorder.submit(self.client, datagram);
                }
                Ok(())
            })?;
            for news in news {
                match news {
                    News::Up(_) => self.was_up = true,
                    // The SM has already logged on standard error why the subnet cannot be routed.
                    News::NoPlan(_) if !self.was_up => return Err(DaemonError::Reported),
                    News::NoPlan(_) => {}
                    News::Standby(other) => {
                        note!("the fabric has another SM: {other}");
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
