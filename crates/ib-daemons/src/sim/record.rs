//! `--record` writes each input of a fabric with its time, and `--replay` repeats the inputs. `--log` writes the
//! simulator's log.
//!
//! ```text
//! ibfabric record 4
//! with seed 0             conditions of the run, one per line
//! @ 1234567 4321          time in nanoseconds and number of simulation steps before the following input
//! attach 0 17 1 0 - 1     client, port, is an SM, queue pair, class, gets loss notifications
//! mad 0 4 1 1 2147549184 0 65535 0 - 256 0104…
//!                         client, DLID, QP numbers (remote, local), Q_Key, path bits, P_Key, SL, GRH, length, MAD
//! sm 0 1                  client, is an SM
//! detach 0
//! done unlink "S"[1]      a command of the console that succeeded
//! failed link "S"[1] "T"  a command of the console that failed
//! open 17                 an HCA was attached to a port; close, down and up have the same form
//! packet 17 3 4 0 - 2464… port, SLID, DLID, SL, GRH, bytes from the BTH on
//! take 17 4               number of packets that were received from a port
//! ```

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use ib_link::{Datagram, Remote};
use ib_sim::{ClientId, ClientOptions, Command, Packet, Payload, Sim};
use ib_topology::PortId;
use ib_types::text::escaped_lines;
use ib_types::{Instant, PKey, QKey, Qpn, ServiceLevel};
use ib_wire::mad::{Mad, MgmtClass};
use ib_wire::packet::Grh;

use super::capture::Capture;
use super::config::SimConfig;
use super::sink::Sink;
use crate::error::{DaemonError, Verdict};
use crate::input::text;
use crate::message::say;
use crate::own_capture;

const FIRST_LINE: &str = "ibfabric record 4";

/// Prefix of console commands that succeeded.
const DONE: &str = "done";
/// Prefix of console commands that failed.
const FAILED: &str = "failed";

/// Conditions of a run, each with its name. A replay requires the conditions of the recorded run.
pub(super) type Conditions = Vec<(&'static str, String)>;

/// An output file that consists of lines. After the first write error, further output is discarded.
struct Lines {
    sink: Sink,
    has_failed: bool,
}

impl Lines {
    fn create(path: &Path) -> Result<Self, DaemonError> {
        Ok(Self { sink: Sink::create(path, std::io::stderr())?, has_failed: false })
    }

    /// Writes text. If it ends with an incomplete line, the text of the next call continues this line.
    fn write(&mut self, text: &str) {
        self.done(|sink| {
            for line in text.split_inclusive('\n') {
                sink.write_all(line.as_bytes())?;
                if line.ends_with('\n') {
                    sink.end_part()?;
                }
            }
            Ok(())
        });
    }

    fn flush(&mut self) {
        self.done(Sink::flush);
    }

    /// Runs a write operation on the file. After the first error nothing more is written, but the fabric keeps running.
    fn done(&mut self, act: impl FnOnce(&mut Sink) -> std::io::Result<()>) {
        if self.has_failed {
            return;
        }
        if let Err(error) = act(&mut self.sink) {
            let path = self.sink.path().display();
            say!("{path}: {error}: the file ends here, the fabric keeps running");
            self.has_failed = true;
            own_capture::note_failure();
        }
    }
}

/// The file of the option `--log`.
pub(super) struct Log(Lines);

impl Log {
    pub(super) fn create(path: &Path) -> Result<Self, DaemonError> {
        Lines::create(path).map(Self)
    }

    pub(super) fn write(&mut self, text: &str) {
        if !text.is_empty() {
            self.0.write(&escaped_lines(text).to_string());
            self.0.flush();
        }
    }
}

/// The file of the option `--record`.
pub(super) struct Recorder {
    lines: Lines,
    /// The fabric's time and number of simulation steps at the last call of `mark`. The `@` line before the next input
    /// contains both.
    state: (Instant, u64),
    /// The time and the number of simulation steps in the last `@` line of the file; `None` if it has no such line.
    written: Option<(Instant, u64)>,
}

impl Recorder {
    pub(super) fn create(path: &Path, conditions: &Conditions) -> Result<Self, DaemonError> {
        let mut lines = Lines::create(path)?;
        lines.write(&format!("{FIRST_LINE}\n"));
        for (name, value) in conditions {
            lines.write(&format!("with {name} {value}\n"));
        }
        Ok(Self { lines, state: (Instant::ZERO, 0), written: None })
    }

    /// Keeps the fabric's time and number of simulation steps for the `@` line before the next input.
    pub(super) const fn mark(&mut self, sim: &Sim) {
        self.state = (sim.now(), sim.steps());
    }

    fn line(&mut self, text: &str) {
        if self.written != Some(self.state) {
            self.written = Some(self.state);
            let (time, steps) = self.state;
            self.lines.write(&format!("@ {} {steps}\n", time.as_nanos()));
        }
        self.lines.write(text);
        self.lines.write("\n");
    }

    pub(super) fn attach(&mut self, client: ClientId, port: PortId, options: ClientOptions) {
        let (is_sm, queue_pair) = (u8::from(options.is_sm), options.queue_pair);
        let class = options.class.map_or_else(|| "-".to_owned(), |class| class.0.to_string());
        let gets_losses = u8::from(options.reports_losses);
        self.line(&format!(
            "attach {client} {} {is_sm} {queue_pair} {class} {gets_losses}",
            port.0
        ));
    }

    pub(super) fn detach(&mut self, client: ClientId) {
        self.line(&format!("detach {client}"));
    }

    pub(super) fn set_is_sm(&mut self, client: ClientId, is_sm: bool) {
        self.line(&format!("sm {client} {}", u8::from(is_sm)));
    }

    pub(super) fn submit(&mut self, client: ClientId, datagram: &Datagram) {
        let Datagram { remote, local_qpn, length, mad } = datagram;
        let mut text = format!(
            "mad {client} {} {} {} {} {} {} {} {} {length} ",
            remote.lid,
            remote.qpn.get(),
            local_qpn.get(),
            remote.q_key.0,
            remote.path_bits,
            remote.p_key.0,
            remote.sl.get(),
            header(remote.grh.as_ref()),
        );
        hex(&mut text, &mad.0);
        self.line(&text);
    }

    /// Records an event at a port: `open`, `close`, `down` or `up`.
    pub(super) fn port(&mut self, what: &str, port: PortId) {
        self.line(&format!("{what} {}", port.0));
    }

    pub(super) fn packet(&mut self, port: PortId, packet: &Packet) {
        let Packet { slid, dlid, sl, grh, payload } = packet;
        let Payload::Transport(bytes) = payload else { return };
        let grh = header(grh.as_ref());
        let mut text = format!("packet {} {slid} {dlid} {} {grh} ", port.0, sl.get());
        hex(&mut text, bytes);
        self.line(&text);
    }

    pub(super) fn record_taken(&mut self, port: PortId, count: usize) {
        self.line(&format!("take {} {count}", port.0));
    }

    pub(super) fn command(&mut self, command: &str, done: bool) {
        self.line(&format!("{} {command}", if done { DONE } else { FAILED }));
    }

    pub(super) fn flush(&mut self) {
        self.lines.flush();
    }

    /// Writes the time and the number of simulation steps at the end of the run, so that a replay ends there.
    pub(super) fn finish(mut self, sim: &Sim) {
        let (time, steps) = (sim.now(), sim.steps());
        self.lines.write(&format!("@ {} {steps}\n", time.as_nanos()));
        self.flush();
    }
}

/// Replays a record on a fabric.
pub(super) fn replay(
    sim: &mut Sim,
    config: &SimConfig,
    conditions: &Conditions,
    path: &Path,
) -> Result<Verdict, DaemonError> {
    let text = text(path)?;
    let mut log = config.log.as_deref().map(Log::create).transpose()?;
    let mut capture = config.pcap.as_deref().map(Capture::create).transpose()?;
    let mut lines = text.lines().enumerate().peekable();
    let wrong = |line: usize, found: &str, expected: &str| {
        let place = path.display();
        DaemonError::Failed(format!("{place}:{}: found {found:?}, expected {expected}", line + 1))
    };
    let first = lines.next().map_or("", |(_, line)| line);
    if first != FIRST_LINE {
        return Err(wrong(0, first, &format!("{FIRST_LINE:?}")));
    }
    for (name, value) in conditions {
        let expected = format!("with {name} {value}");
        match lines.next() {
            Some((_, line)) if line == expected => {}
            Some((number, line)) => {
                let expected =
                    format!("{expected:?}: a replay needs the conditions of the recorded run");
                return Err(wrong(number, line, &expected));
            }
            None => return Err(wrong(text.lines().count(), "", &format!("{expected:?}"))),
        }
    }
    for (number, line) in lines {
        if let Some(state) = line.strip_prefix("@ ") {
            let state = state.split_once(' ').and_then(|(time, steps)| {
                Some((Instant::from_nanos(time.parse().ok()?), steps.parse().ok()?))
            });
            let (time, steps) =
                state.ok_or_else(|| wrong(number, line, "nanoseconds and steps after @"))?;
            sim.repeat(steps, time);
            drain(sim);
            if sim.steps() != steps {
                let expected = format!("at most {} steps", sim.steps());
                return Err(wrong(number, &steps.to_string(), &expected));
            }
        } else {
            replay_line(sim, line).map_err(|expected| {
                wrong(number, line.split(' ').next().unwrap_or_default(), expected)
            })?;
        }
        if let Some(log) = &mut log {
            log.write(&sim.take_log());
        }
        if let Some(writing) = &mut capture
            && !writing.write(sim)
        {
            capture = None;
        }
    }
    if let Some(mut capture) = capture {
        capture.write(sim);
    }
    Ok(Verdict::Good)
}

/// Discards the MADs that clients receive, because a replay has no clients to read them.
fn drain(sim: &mut Sim) {
    while let Some(client) = sim.next_woken() {
        while sim.receive(client).is_some() {}
    }
}

fn replay_line(sim: &mut Sim, line: &str) -> Result<(), &'static str> {
    const SYNTAX: &str = "attach, detach, sm, mad, done, failed or @ with their arguments";
    let (word, rest) = line.split_once(' ').ok_or(SYNTAX)?;
    if word == DONE || word == FAILED {
        let command: Command = rest.parse().map_err(|_| "a command of the console")?;
        return match (word == DONE, sim.run(&command)) {
            (true, Ok(())) | (false, Err(_)) => Ok(()),
            (true, Err(_)) => Err("a command that succeeds: it failed in the replay"),
            (false, Ok(())) => Err("a command that fails: it succeeded in the replay"),
        };
    }
    let mut words = rest.split(' ');
    if matches!(word, "open" | "close" | "down" | "up" | "packet" | "take") {
        return replay_port(sim, word, &mut words);
    }
    let mut number = || words.next().and_then(|word| word.parse::<u32>().ok()).ok_or(SYNTAX);
    let client = ClientId(number()?);
    match word {
        "attach" => {
            let port = PortId(number()?);
            let (is_sm, queue_pair) = (number()? != 0, number()?);
            let class = match words.next().ok_or(SYNTAX)? {
                "-" => None,
                class => Some(MgmtClass(class.parse().map_err(|_| "a class")?)),
            };
            let reports_losses = words.next() == Some("1");
            let options = ClientOptions { is_sm, queue_pair, class, reports_losses };
            if !sim.has_port(port) {
                return Err("a port of this fabric");
            }
            if sim.attach(port, options) != Ok(client) {
                return Err("the next free client number");
            }
        }
        "detach" => sim.detach(client),
        "sm" => {
            let is_sm = number()? != 0;
            sim.set_is_sm(client, is_sm);
        }
        "mad" => {
            let lid = number()?.try_into().map_err(|_| "a LID")?;
            let (theirs, own) = (Qpn::truncated(number()?), Qpn::truncated(number()?));
            let q_key = QKey(number()?);
            let path_bits = number()?.try_into().map_err(|_| "path bits")?;
            let p_key = PKey(number()?.try_into().map_err(|_| "a P_Key")?);
            let sl = level(number()?)?;
            let grh = words.next().and_then(parsed_header).ok_or("a header")?;
            let mut number = || words.next().and_then(|word| word.parse::<u32>().ok());
            let length = number().and_then(|length| length.try_into().ok()).ok_or("a length")?;
            let mad = words.next().and_then(bytes).and_then(|bytes| bytes.try_into().ok());
            let mad = mad.ok_or("256 bytes in hexadecimal")?;
            let remote = Remote { lid, qpn: theirs, q_key, sl, p_key, path_bits, grh };
            sim.submit(client, &Datagram { remote, local_qpn: own, length, mad: Mad(mad) });
        }
        _ => return Err(SYNTAX),
    }
    Ok(())
}

/// Replays a recorded event at a port.
fn replay_port<'a>(
    sim: &mut Sim,
    word: &str,
    words: &mut impl Iterator<Item = &'a str>,
) -> Result<(), &'static str> {
    let mut number = || words.next().and_then(|word| word.parse::<u32>().ok()).ok_or("a number");
    let port = PortId(number()?);
    if !sim.has_port(port) {
        return Err("a port of this fabric");
    }
    match word {
        "open" => sim.open_held(port),
        "close" => sim.close(port),
        "down" => sim.hold_down(port),
        "up" => sim.release_hold(port),
        "take" => {
            for _ in 0..number()? {
                sim.receive_packet(port).ok_or("packets that have arrived at the port")?;
            }
        }
        _ => {
            let [slid, dlid] = [number()?, number()?].map(u16::try_from);
            let (Ok(slid), Ok(dlid)) = (slid, dlid) else { return Err("LIDs") };
            let sl = level(number()?)?;
            let grh = words.next().and_then(parsed_header).ok_or("a header")?;
            let bytes = words.next().and_then(bytes).ok_or("bytes in hexadecimal")?;
            let payload = Payload::Transport(bytes);
            sim.send_packet(port, Packet { slid, dlid, sl, grh, payload });
        }
    }
    Ok(())
}

fn level(number: u32) -> Result<ServiceLevel, &'static str> {
    let level = u8::try_from(number).ok().and_then(ServiceLevel::new);
    level.ok_or("a service level of 0 to 15")
}

/// Formats an optional GRH for a record.
fn header(grh: Option<&Grh>) -> String {
    let Some(grh) = grh else { return "-".to_owned() };
    let (mut bytes, mut text) = ([0; Grh::LENGTH], String::new());
    grh.emit(&mut bytes);
    hex(&mut text, &bytes);
    text
}

fn parsed_header(text: &str) -> Option<Option<Grh>> {
    match text {
        "-" => Some(None),
        text => Some(Some(Grh::parse(bytes(text)?.first_chunk()?))),
    }
}

fn hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        write!(text, "{byte:02x}").expect("writing to a string succeeds");
    }
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).ok();
    (0..text.len()).step_by(2).map(byte).collect()
}
