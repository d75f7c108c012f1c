//! Two network namespaces, connected by a wire that loses, corrupts, delays, reorders and duplicates RoCEv2 packets.
//! One of the namespaces may be that of a Linux guest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::AsFd as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ib_os::tap::Tap;
use ib_types::rng::Rng;
use ib_wire::packet::{RoceAddresses, RoceNetwork};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

type Failed = Box<dyn std::error::Error>;

/// The IPv4 addresses of the two ends of the wire.
pub(crate) const ADDRESSES: [&str; 2] = ["192.168.78.1", "192.168.78.2"];

/// How the wire impairs the packets that one end sends: probabilities and times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Impairment {
    pub(crate) loss: f64,
    /// The probability that a packet is corrupted. Its UDP checksum is then set to zero.
    pub(crate) corruption: f64,
    pub(crate) double: f64,
    pub(crate) late: f64,
    /// The maximum random delay that is added to a late packet. A packet is late with probability `late`.
    pub(crate) late_by: Duration,
    /// The minimum delay of every packet.
    pub(crate) delay: Duration,
    /// The maximum random delay that is added to the minimum delay of a packet.
    pub(crate) jitter: Duration,
}

/// How many of the frames that an end has sent were delivered, lost, delayed, duplicated or corrupted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fates {
    pub(crate) passed: u64,
    pub(crate) lost: u64,
    pub(crate) late: u64,
    pub(crate) doubled: u64,
    pub(crate) corrupted: u64,
}

/// Returns a random time below the bound; zero if the bound is zero.
fn draw_time(rng: &mut Rng, bound: Duration) -> Duration {
    Duration::from_nanos(rng.next_u64() % (bound.as_nanos() as u64).max(1))
}

/// A wire between two network namespaces. When dropped, removes the namespaces that it has created, and kills the
/// processes in them. The namespace of a guest is kept.
pub(crate) struct Wire {
    names: Vec<String>,
    stops: Arc<AtomicBool>,
    relay: Option<JoinHandle<[Fates; 2]>>,
}

impl Wire {
    /// Connects two new namespaces. `impairment` applies to the packets that each end sends.
    pub(crate) fn new(mtu: u32, impairment: [Impairment; 2], seed: u64) -> Result<Self, Failed> {
        let mut wire = Self { names: Vec::new(), stops: Arc::default(), relay: None };
        let taps = [
            wire.end("a", &format!("{}/24", ADDRESSES[0]), mtu)?,
            wire.end("b", &format!("{}/24", ADDRESSES[1]), mtu)?,
        ];
        wire.start(taps, impairment, seed);
        Ok(wire)
    }

    /// Connects the namespace of a guest (end 0) with a new namespace (end 1). Moves `address`, at which the guest
    /// reaches the host, to the new namespace.
    pub(crate) fn to_guest(
        (namespace, device): (&str, &str),
        (address, mtu): (&str, u32),
        impairment: [Impairment; 2],
        seed: u64,
    ) -> Result<Self, Failed> {
        const BRIDGE: &str = "ibw-bridge";
        let mut wire = Self { names: Vec::new(), stops: Arc::default(), relay: None };
        if ip(&["-netns", namespace, "link", "show", BRIDGE]).is_err() {
            ip(&[
                "-netns",
                namespace,
                "link",
                "add",
                BRIDGE,
                "mtu",
                &mtu.to_string(),
                "type",
                "bridge",
            ])?;
            ip(&["-netns", namespace, "addr", "flush", "dev", device])?;
            ip(&["-netns", namespace, "link", "set", device, "master", BRIDGE])?;
            ip(&["-netns", namespace, "link", "set", BRIDGE, "up"])?;
        }
        let (guest, name) = tap("a", namespace, mtu)?;
        ip(&["-netns", namespace, "link", "set", &name, "master", BRIDGE])?;
        let taps = [guest, wire.end("b", &format!("{address}/24"), mtu)?];
        wire.start(taps, impairment, seed);
        Ok(wire)
    }

    /// Creates a namespace and a device with the given address in it.
    fn end(&mut self, end: &str, address: &str, mtu: u32) -> Result<Tap, Failed> {
        let name = format!("ibfabric-wire-{}-{end}", std::process::id());
        ip(&["netns", "add", &name])?;
        self.names.push(name.clone());
        ip(&["-netns", &name, "link", "set", "lo", "up"])?;
        let (tap, device) = tap(end, &name, mtu)?;
        ip(&["-netns", &name, "addr", "add", address, "dev", &device])?;
        Ok(tap)
    }

    fn start(&mut self, taps: [Tap; 2], impairment: [Impairment; 2], seed: u64) {
        let stops = Arc::clone(&self.stops);
        let relay = Relay {
            taps,
            impairment,
            rng: Rng::new(seed),
            queue: BinaryHeap::new(),
            number: 0,
            fates: <[Fates; 2]>::default(),
        };
        self.relay = Some(thread::spawn(move || relay.run(&stops)));
    }

    /// Returns a command that runs a program in a namespace that the wire has created. `namespace` is an index of these
    /// namespaces. The caller adds the arguments.
    pub(crate) fn command(&self, namespace: usize, program: &std::path::Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[namespace]]).arg(program);
        command
    }

    /// Stops the wire. Returns what happened to the frames of both ends.
    pub(crate) fn stop(&mut self) -> [Fates; 2] {
        self.stops.store(true, Ordering::Relaxed);
        self.relay.take().and_then(|relay| relay.join().ok()).unwrap_or_default()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.stop();
        for name in &self.names {
            let pids = ip(&["netns", "pids", name]).unwrap_or_default();
            for pid in pids.lines().filter_map(|pid| Pid::from_raw(pid.trim().parse().ok()?)) {
                kill_process(pid, Signal::KILL).ok();
            }
            ip(&["netns", "del", name]).ok();
        }
    }
}

/// Creates a TAP device in a namespace. Also returns its name.
fn tap(end: &str, namespace: &str, mtu: u32) -> Result<(Tap, String), Failed> {
    let name = format!("ibw{}{end}", std::process::id() % 1_000_000_000);
    let tap = Tap::create(&name).map_err(|why| format!("TAP device {name}: {why}"))?;
    ip(&["link", "set", &name, "netns", namespace])?;
    // Each end has a fixed hardware address. A guest may outlive the device, and then still has this address in its ARP
    // cache.
    let address = if end == "a" { "02:00:00:00:78:01" } else { "02:00:00:00:78:02" };
    ip(&["-netns", namespace, "link", "set", &name, "address", address])?;
    ip(&["-netns", namespace, "link", "set", &name, "mtu", &mtu.to_string(), "up"])?;
    Ok((tap, name))
}

/// A frame in flight: arrival time, sequence number, index of the receiving end, and bytes. The sequence number keeps
/// frames with equal arrival times in order.
type InFlight = (Instant, u64, usize, Vec<u8>);

/// The thread that moves frames between the two ends.
struct Relay {
    taps: [Tap; 2],
    impairment: [Impairment; 2],
    rng: Rng,
    /// Frames in flight, sorted by the time at which they arrive at the other end.
    queue: BinaryHeap<Reverse<InFlight>>,
    number: u64,
    fates: [Fates; 2],
}

/// Maximum number of frames that are read from one end before frames are read from the other end.
const BATCH: usize = 64;

/// Maximum time between two checks of whether the wire must stop.
const TURN: Duration = Duration::from_millis(50);

impl Relay {
    fn run(mut self, stops: &AtomicBool) -> [Fates; 2] {
        let mut frame = vec![0; 1 << 16];
        while !stops.load(Ordering::Relaxed) {
            self.wait();
            for from in [0, 1] {
                for _ in 0..BATCH {
                    let Ok(length) = self.taps[from].read(&mut frame) else { break };
                    self.take(from, &frame[..length]);
                }
            }
            let now = Instant::now();
            while let Some(Reverse((at, ..))) = self.queue.peek()
                && *at <= now
            {
                let Some(Reverse((_, _, to, frame))) = self.queue.pop() else { break };
                // An error is ignored. If the queue of the TAP device is full, the frame is lost.
                self.taps[to].write(&frame).ok();
            }
        }
        self.fates
    }

    /// Waits until a frame can be read or must be delivered.
    fn wait(&self) {
        let due = self.queue.peek().map(|Reverse((at, ..))| *at);
        let time = due.map_or(TURN, |at| at.saturating_duration_since(Instant::now()).min(TURN));
        let limit = Timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
        let mut files =
            self.taps.each_ref().map(|tap| PollFd::from_borrowed_fd(tap.as_fd(), PollFlags::IN));
        // An error is ignored, because a signal only ends the wait early.
        poll(&mut files, Some(&limit)).ok();
    }

    fn take(&mut self, from: usize, frame: &[u8]) {
        let impairment = self.impairment[from];
        if !is_roce(frame) {
            return self.pass(from, frame, Duration::ZERO);
        }
        if self.rng.chance(impairment.loss) {
            self.fates[from].lost += 1;
            return;
        }
        self.fates[from].passed += 1;
        let mut frame = frame.to_vec();
        if self.rng.chance(impairment.corruption) {
            self.fates[from].corrupted += 1;
            corrupt(&mut frame, &mut self.rng);
        }
        let copies = 1 + u64::from(self.rng.chance(impairment.double));
        self.fates[from].doubled += copies - 1;
        for _ in 0..copies {
            let mut delay = impairment.delay + draw_time(&mut self.rng, impairment.jitter);
            if self.rng.chance(impairment.late) {
                self.fates[from].late += 1;
                delay += draw_time(&mut self.rng, impairment.late_by);
            }
            self.pass(from, &frame, delay);
        }
    }

    fn pass(&mut self, from: usize, frame: &[u8], delay: Duration) {
        self.number += 1;
        let arrival = Instant::now() + delay;
        self.queue.push(Reverse((arrival, self.number, 1 - from, frame.to_vec())));
    }
}

/// Corrupts a RoCEv2 frame. Changes one bit, or up to eight bytes, in the UDP ports or after the UDP header. Sets the
/// UDP checksum to zero.
///
/// The ICRC covers the IPv4 identification, which UDP sockets do not report to the receiver. So ibfabric's receiver
/// accepts the ICRC of every identification that ibfabric's HCAs send. Half of the frames get an ICRC that is correct
/// for an identification that these HCAs do not send. The receiver must drop these frames.
fn corrupt(frame: &mut [u8], rng: &mut Rng) {
    const IP: usize = 14;
    const UDP: usize = IP + 20;
    const BTH: usize = UDP + 8;
    const ICRC: usize = 4;
    let before = frame.to_vec();
    let end = frame.len() - ICRC;
    // The UDP length and checksum are not corrupted. If `place` is in these four bytes, `at` is four bytes lower, in
    // the UDP ports.
    let place = UDP + 4 + rng.next_u64() as usize % (end - BTH + 4);
    let at = if place < BTH { place - 4 } else { place };
    if rng.chance(0.5) {
        frame[at] ^= 1 << (rng.next_u64() % 8);
    } else {
        let stop = if at < UDP + 4 { UDP + 4 } else { end };
        for (byte, noise) in frame[at..stop].iter_mut().zip(rng.next_u64().to_le_bytes()) {
            *byte ^= noise;
        }
    }
    frame[UDP + 6..BTH].fill(0);
    let identification = 64 + rng.next_u64() % (65_536 - 64);
    if rng.chance(0.5)
        && frame != before
        && let Ok((mut network, _)) = RoceNetwork::parse(&frame[IP..])
        && let RoceAddresses::V4 { identification: id, .. } = &mut network.addresses
    {
        *id = identification as u16;
        let icrc = network.icrc(&frame[BTH..end]);
        frame[end..].copy_from_slice(&icrc.to_be_bytes());
    }
}

/// Returns true if an Ethernet frame contains a UDP datagram to the RoCEv2 port, in IPv4 without options.
fn is_roce(frame: &[u8]) -> bool {
    frame.get(12..15) == Some(&[8, 0, 0x45])
        && frame.get(23) == Some(&17)
        && frame.get(36..38) == Some(&4791_u16.to_be_bytes())
}

/// Runs `ip`. Returns its output.
fn ip(arguments: &[&str]) -> Result<String, Failed> {
    let output = Command::new("ip").args(arguments).output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(format!("`ip {}` failed: {}", arguments.join(" "), why.trim()).into())
}
