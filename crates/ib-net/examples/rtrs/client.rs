//! The client: opens a block device of a server, writes it and compares what it reads.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant as WallClock};

use ib_hca::Memory;
use ib_net::clock;
use ib_net::device::{Device, DeviceEvent, DeviceOptions};
use ib_net::rtrs::Devices;
use ib_rtrs::{
    AdapterId, BufferId, Client, ClientConfig, ClientEvent, Completion, Direction, PathState,
    Request, RequestError, Segment,
};
use ib_wire::rnbd::{
    AccessMode, Close, Io, IoFlags, MessageType, Open, OpenResponse, Operation, Session,
};

use crate::{Done, say};

/// How much memory requests have each.
const PIECE: usize = 128 << 10;

struct Run {
    devices: Devices,
    client: Client,
    memory: Arc<Memory>,
    buffer: BufferId,
    done: Vec<Completion>,
    /// Since when adapters lose their links in turn, and how often they have.
    flaps: Option<WallClock>,
    flapped: u32,
}

pub(crate) fn run(server: IpAddr, name: &str, rest: &[&str]) -> Done<()> {
    let megabytes: u64 = rest.first().map_or(Ok(4), |text| text.parse())?;
    let (mut devices, adapter) = crate::open(server, false)?;
    let option = |name: &str| rest.contains(&name);
    let config = ClientConfig {
        connections: if option("one") { 1 } else { 3 },
        processors: 2,
        need_invalidation: option("invalidate"),
        reconnect_delay: Duration::from_millis(if option("flap") { 20 } else { 1000 }),
        ..ClientConfig::new("ibfabric-example")
    };
    let mut client = Client::new(config, ib_net::random()?);
    let spec = devices.path_to(adapter, SocketAddr::new(server, 1234))?;
    client.add_path(clock::now(), &mut devices, spec)?;
    for word in rest.iter().filter_map(|word| word.strip_prefix("path=")) {
        let (from, to) = word.split_once('@').ok_or("expected path=SOURCE@DESTINATION")?;
        let other = devices.add(Device::open(DeviceOptions::new(from.parse()?))?);
        let spec = devices.path_to(other, SocketAddr::new(to.parse()?, 1234))?;
        client.add_path(clock::now(), &mut devices, spec)?;
    }
    let memory = Memory::zeroed(PIECE * 512)?;
    let buffer = client.register(&mut devices, Arc::clone(&memory))?;
    let flaps = option("flap").then(WallClock::now);
    let mut run = Run { devices, client, memory, buffer, done: Vec::new(), flaps, flapped: 0 };
    run.until_up()?;
    run.exchange(name, megabytes << 20, option("idle"))?;
    for path in run.client.paths().collect::<Vec<_>>() {
        let stats = run.client.stats(path).expect("it is there");
        let (traffic, reconnects) = (stats.traffic, stats.reconnects);
        say(&format!("{traffic:?}, {reconnects:?}, failed over {}", stats.failed_over));
    }
    run.client.close(clock::now(), &mut run.devices);
    run.until(|run| matches!(run.client.poll_event(), Some(ClientEvent::Closed)))?;
    say("closed");
    Ok(())
}

impl Run {
    fn until_up(&mut self) -> Done<()> {
        let mut failure = None;
        self.until(|run| {
            loop {
                match run.client.poll_event() {
                    None => return false,
                    Some(ClientEvent::Up) => return true,
                    Some(ClientEvent::PathDown { why, .. }) => {
                        failure = Some(why);
                        return true;
                    }
                    Some(_) => {}
                }
            }
        })?;
        if let Some(why) = failure {
            return Err(format!("the path is down: {why}").into());
        }
        let limits = self.client.limits().expect("it is connected");
        say(&format!("connected: {limits:?}"));
        Ok(())
    }

    fn until(&mut self, mut is_done: impl FnMut(&mut Self) -> bool) -> Done<()> {
        let end = WallClock::now() + Duration::from_secs(120);
        while !is_done(self) {
            if WallClock::now() > end {
                return Err("nothing happens any more".into());
            }
            self.step()?;
        }
        Ok(())
    }

    fn step(&mut self) -> Done<()> {
        let Self { devices, client, .. } = self;
        let moved = devices.progress(|devices, adapter, event| {
            let now = clock::now();
            match event {
                DeviceEvent::Hca(event) => client.handle_hca(now, devices, 0, adapter, &event),
                DeviceEvent::Cm(event) => drop(client.handle_cm(now, devices, adapter, event)),
            }
        })?;
        client.handle_timeout(clock::now(), devices);
        if let Some(since) = self.flaps
            && since.elapsed() > Duration::from_millis(50) * (self.flapped + 1)
        {
            // The other one may be connected again by now.
            let up =
                client.paths().filter(|&it| client.path_state(it) == Some(PathState::Connected));
            if up.count() > 1 {
                client.link_down(clock::now(), devices, AdapterId(self.flapped % 2));
                self.flapped += 1;
            }
        }
        if !moved {
            let until = clock::now() + Duration::from_millis(100);
            devices.wait(client.poll_timeout().map_or(until, |at| at.min(until)))?;
        }
        while let Some(completion) = client.poll_completion() {
            self.done.push(completion);
        }
        Ok(())
    }

    /// Makes a request with a piece of memory; waits until there is room for it.
    fn ask(&mut self, direction: Direction, header: &[u8], piece: usize, length: u32) -> Done<()> {
        let data = [Segment { buffer: self.buffer, offset: piece * PIECE, length }];
        let is_admin = header[0] != 4;
        let user = piece as u64;
        loop {
            let request = Request { cpu: 1, direction, header, data: &data, user, is_admin };
            match self.client.request(clock::now(), &mut self.devices, &request) {
                Ok(_) => return Ok(()),
                Err(RequestError::NoPermit(_) | RequestError::NoPath) => self.step()?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until so many requests have ended well.
    fn all(&mut self, count: usize) -> Done<()> {
        self.until(|run| run.done.len() >= count)?;
        for completion in self.done.drain(..) {
            if !completion.errno.is_ok() {
                return Err(format!("request {}: {}", completion.user, completion.errno).into());
            }
        }
        Ok(())
    }

    fn exchange(&mut self, name: &str, most: u64, is_idle: bool) -> Done<()> {
        let session = Session { message_type: MessageType::SESSION, version: 2 };
        self.ask(Direction::Read, &session.to_bytes(), 0, 36)?;
        self.all(1)?;
        let mut open = Open { message_type: MessageType::OPEN, ..Open::zeroed() };
        open.access_mode = AccessMode::READ_WRITE;
        open.name[..name.len()].copy_from_slice(name.as_bytes());
        self.ask(Direction::Read, &open.to_bytes(), 0, OpenResponse::LENGTH as u32)?;
        self.all(1)?;
        let mut bytes = [0; OpenResponse::LENGTH];
        self.memory.read(0, &mut bytes)?;
        let device = OpenResponse::parse(&bytes);
        say(&format!("{name}: {} sectors of 512 bytes", device.sectors));
        let size = most.min(device.sectors * 512);
        let longest = u64::from(self.client.max_io_size()).min(PIECE as u64) & !511;
        for round in 0..2_u64 {
            let (begun, mut asked, mut at) = (WallClock::now(), 0, 0);
            let permits = usize::from(self.client.limits().map_or(1, |limits| limits.queue_depth));
            let pieces = permits.min(32);
            while at < size {
                if asked == pieces {
                    self.all(asked)?;
                    self.compare(round, asked, at, longest, size)?;
                    asked = 0;
                }
                let length = longest.min(size - at) as u32;
                let (operation, direction) = match round {
                    0 => (Operation::WRITE, Direction::Write),
                    _ => (Operation::READ, Direction::Read),
                };
                if round == 0 {
                    self.memory.write(asked * PIECE, &pattern(at, length))?;
                } else {
                    self.memory.fill(asked * PIECE, length as usize, 0xee)?;
                }
                let io = Io {
                    message_type: MessageType::IO,
                    device_id: device.device_id,
                    sector: at / 512,
                    rw: IoFlags::of(operation, IoFlags(0)),
                    length,
                    priority: 0,
                };
                self.ask(direction, &io.to_bytes(), asked, length)?;
                asked += 1;
                at += u64::from(length);
            }
            self.all(asked)?;
            self.compare(round, asked, at, longest, size)?;
            let seconds = begun.elapsed().as_secs_f64();
            let what = ["written", "read and compared"][round as usize];
            say(&format!("{size} bytes {what} in {seconds:.2} s"));
        }
        if is_idle {
            let end = WallClock::now() + Duration::from_secs(40);
            while WallClock::now() < end {
                self.step()?;
                while let Some(event) = self.client.poll_event() {
                    say(&format!("{event:?}"));
                }
            }
            say(&format!("idle for 40 s; last heartbeat {:?}", self.latency()));
        }
        let close = Close { message_type: MessageType::CLOSE, device_id: device.device_id };
        self.ask(Direction::Write, &close.to_bytes(), 0, 0)?;
        self.all(1)
    }

    fn latency(&self) -> Option<Duration> {
        self.client.paths().next().and_then(|path| self.client.latency(path))
    }

    /// Compares what was read last.
    fn compare(&self, round: u64, asked: usize, end: u64, longest: u64, size: u64) -> Done<()> {
        if round == 0 || asked == 0 {
            return Ok(());
        }
        let last =
            if end == size && !size.is_multiple_of(longest) { size % longest } else { longest };
        let start = end - last - (asked as u64 - 1) * longest;
        for piece in 0..asked {
            let at = start + piece as u64 * longest;
            let length = longest.min(size - at) as u32;
            let read = self.memory.to_vec(piece * PIECE, length as usize)?;
            if read != pattern(at, length) {
                return Err(format!("what was read at byte {at} is not what was written").into());
            }
        }
        Ok(())
    }
}

/// Returns what stands at a place of the device.
fn pattern(at: u64, length: u32) -> Vec<u8> {
    let words = (at / 8..(at + u64::from(length)) / 8).map(|word| word.wrapping_mul(0x9e37_79b9));
    words.flat_map(u64::to_le_bytes).collect()
}
