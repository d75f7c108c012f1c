//! Random reads over loopback between two threads: how many there are in a second.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant as WallClock};

use ib_hca::Memory;
use ib_net::clock;
use ib_net::device::{Device, DeviceEvent, DeviceOptions};
use ib_net::rtrs::Devices;
use ib_rtrs::{
    Client, ClientConfig, Direction, Errno, Request, RequestError, Segment, Server, ServerConfig,
};

use crate::Done;

const DISK: u64 = 256 << 20;
const SERVER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

pub(crate) fn run(seconds: u64, depth: usize, size: u32, rest: &[&str]) -> Done<()> {
    let option = |name: &str| rest.contains(&name);
    let ends = Arc::new(AtomicBool::new(false));
    let config = ServerConfig {
        always_invalidate: !option("keep"),
        max_io_size: 256 << 10,
        ..ServerConfig::default()
    };
    let spin = Duration::from_micros(if option("spin") { 100 } else { 0 });
    let open = |address: Ipv4Addr| -> Done<Devices> {
        let mut options = DeviceOptions::new(IpAddr::V4(address));
        options.spin = spin;
        let mut devices = Devices::new();
        devices.add(Device::open(options)?);
        Ok(devices)
    };
    let mut near = open(CLIENT)?;
    let mut far = open(SERVER)?;
    let told = Arc::clone(&ends);
    let serving =
        thread::spawn(move || serve(&mut far, config, &told).map_err(|it| it.to_string()));
    let config = ClientConfig {
        connections: if option("one") { 1 } else { 2 },
        need_invalidation: option("invalidate"),
        ..ClientConfig::new("bench")
    };
    let mut client = Client::new(config, ib_net::random()?);
    let adapter = ib_rtrs::AdapterId(0);
    thread::sleep(Duration::from_millis(100));
    let spec = near.path_to(adapter, SocketAddr::new(IpAddr::V4(SERVER), 1234))?;
    client.add_path(clock::now(), &mut near, spec)?;
    let memory = Memory::zeroed(size as usize * depth)?;
    let buffer = client.register(&mut near, memory)?;
    let mut free: Vec<usize> = (0..depth).collect();
    let (mut done, mut random) = (0_u64, 1_u64);
    let (mut begun, mut taken) = (None, Vec::new());
    let mut asked = vec![clock::now(); depth];
    loop {
        let moved = step(&mut near, &mut client)?;
        while let Some(completion) = client.poll_completion() {
            if !completion.errno.is_ok() {
                return Err(completion.errno.to_string().into());
            }
            taken.push(clock::now().since(asked[completion.user as usize]).as_nanos() as u32);
            free.push(completion.user as usize);
            done += 1;
        }
        while let Some(slot) = free.pop() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (random >> 20) % (DISK / u64::from(size)) * u64::from(size);
            let data = [Segment { buffer, offset: slot * size as usize, length: size }];
            let request = Request {
                cpu: 0,
                direction: Direction::Read,
                header: &at.to_le_bytes(),
                data: &data,
                user: slot as u64,
                is_admin: false,
            };
            match client.request(clock::now(), &mut near, &request) {
                Ok(_) => asked[slot] = clock::now(),
                Err(RequestError::NoPath | RequestError::NoPermit(_)) => {
                    free.push(slot);
                    break;
                }
                Err(error) => return Err(error.into()),
            }
            begun.get_or_insert_with(WallClock::now);
        }
        if begun.is_some_and(|begun: WallClock| begun.elapsed().as_secs() >= seconds) {
            break;
        }
        if !moved {
            near.wait(clock::now() + Duration::from_millis(50))?;
        }
    }
    ends.store(true, Ordering::Relaxed);
    let took = begun.expect("requests were made").elapsed().as_secs_f64();
    taken.sort_unstable();
    let at = |part: f64| f64::from(taken[(taken.len() as f64 * part) as usize]) / 1000.0;
    let stats = client.stats(client.paths().next().expect("there is one")).expect("it is there");
    crate::say(&format!(
        "{:.0} reads of {size} bytes per second at depth {depth}, {:.0} MiB/s; p50 {:.1} us, p99 {:.1} us; \
         {} completions at once on the average",
        done as f64 / took,
        done as f64 / took * f64::from(size) / f64::from(1 << 20),
        at(0.5),
        at(0.99),
        stats.completions.average(),
    ));
    serving.join().map_err(|_| "the server has panicked")??;
    Ok(())
}

fn step(devices: &mut Devices, client: &mut Client) -> Done<bool> {
    let moved = devices.progress(|devices, adapter, event| {
        let now = clock::now();
        match event {
            DeviceEvent::Hca(event) => client.handle_hca(now, devices, 0, adapter, &event),
            DeviceEvent::Cm(event) => drop(client.handle_cm(now, devices, adapter, event)),
        }
    })?;
    if client.poll_timeout().is_some_and(|at| at <= clock::now()) {
        client.handle_timeout(clock::now(), devices);
    }
    Ok(moved)
}

fn serve(devices: &mut Devices, config: ServerConfig, ends: &AtomicBool) -> Done<()> {
    let mut server = Server::new(config, ib_net::random()?);
    server.listen(devices, ib_rtrs::AdapterId(0), 1234)?;
    let disk = Memory::zeroed(DISK as usize)?;
    let mut bytes = vec![0; 256 << 10];
    while !ends.load(Ordering::Relaxed) {
        let moved = devices.progress(|devices, adapter, event| {
            let now = clock::now();
            match event {
                DeviceEvent::Hca(event) => server.handle_hca(now, devices, 0, adapter, &event),
                DeviceEvent::Cm(event) => drop(server.handle_cm(now, devices, adapter, event)),
            }
        })?;
        while let Some(request) = server.poll_request() {
            let mut at = [0; 8];
            let memory = server.memory(request.session).expect("it is kept");
            memory.read(request.header_offset, &mut at)?;
            let bytes = &mut bytes[..request.data_length as usize];
            disk.read(u64::from_le_bytes(at) as usize, bytes)?;
            memory.write(request.data_offset, bytes)?;
            let length = request.data_length;
            server.complete(clock::now(), devices, request.id, Errno::OK, length);
        }
        if server.poll_timeout().is_some_and(|at| at <= clock::now()) {
            server.handle_timeout(clock::now(), devices);
        }
        while server.poll_event().is_some() {}
        if !moved {
            devices.wait(clock::now() + Duration::from_millis(50))?;
        }
    }
    Ok(())
}
