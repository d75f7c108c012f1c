//! The examples of the help texts and the man pages. Tests parse all of them.

/// Returns the examples of a subcommand: the purpose and the command.
#[must_use]
pub fn examples(subcommand: &str) -> &'static [(&'static str, &'static str)] {
    match subcommand {
        "gen" => &[
            (
                "A three-level tree of 36-port switches with 11,664 hosts:",
                "ibfabric gen xgft 18,18,36 1,18,18 -o tree.net",
            ),
            (
                "A torus of HDR links for ibsim, without 5 % of the links:",
                "ibfabric gen torus 8x8x8 hosts=2 --speed HDR --drop-links 0.05 --seed 7 -o torus.net",
            ),
        ],
        "route" => &[
            (
                "Route the fabric of ibnetdiscover, with an HTML report:",
                "ibnetdiscover | ibfabric route - --engine ftree,updn --html fabric.html",
            ),
            (
                "Route a torus without credit loops, and write OpenSM's dump files:",
                "ibfabric route torus.net --engine lash,no_fallback --dump-dir dumps",
            ),
        ],
        "check" => &[(
            "Check the forwarding tables of a running OpenSM:",
            "ibnetdiscover | ibfabric check - --lfts /var/log/opensm-lfts.dump",
        )],
        "sim" => &[
            (
                "Simulate a fabric, and run an unmodified tool on it:",
                "ibfabric sim tree.net --name lab &
    LD_PRELOAD=/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so IBSIM_SOCKNAME=lab ibnetdiscover",
            ),
            (
                "Simulate ten random faults, with a replayable record and a packet capture:",
                "ibfabric sim tree.net --random-faults 10 --seed 7 --record run.txt --pcap run.pcapng",
            ),
        ],
        "sm" => &[
            (
                "Bring a simulated subnet up, and exit:",
                "ibfabric sm --sim tree.net --engine updn --once",
            ),
            ("Manage the fabric of a running ibsim:", "ibfabric sm --attach lab"),
            (
                "Manage the subnet of a real port, with metrics for Prometheus:",
                "ibfabric sm --umad mlx5_0:1 --engine ftree,updn --metrics 127.0.0.1:9683 --perf-interval 60",
            ),
        ],
        "sm-ctl" => &[
            ("State and problems of the subnet:", "ibfabric sm ctl status"),
            ("Metrics, even of an SM without --metrics:", "ibfabric sm ctl metrics"),
        ],
        "status" => &[("One JSON object, for scripts:", "ibfabric sm ctl status --json")],
        "sweep" => &[("Apply a changed partition file:", "ibfabric sm ctl sweep")],
        "routes" => &[
            ("The routing engine's result:", "ibfabric sm ctl routes"),
            ("The LFT of a switch:", "ibfabric sm ctl routes 0x0002c90000200000"),
        ],
        "metrics" => &[("Metrics with their labels, as JSON:", "ibfabric sm ctl metrics --json")],
        "ctl" => &[
            ("Pull a cable:", "ibfabric sim ctl --name lab unlink '\"leaf-1\"[3]'"),
            ("Counters of rejected, lost and answered packets:", "ibfabric sim ctl stats --json"),
        ],
        "tracer" => &[
            ("Compare the path to LID 9 with the forwarding tables:", "ibfabric tracer -l 9 -v"),
            ("Trace all paths of a simulated tree:", "ibfabric tracer --sim tree.net --all-pairs"),
        ],
        "acm" => &[
            (
                "Serve clients of a Unix socket, at a host of a simulated fabric:",
                "ibfabric acm --attach lab --node node-1 --socket /tmp/acm.sock",
            ),
            (
                "Serve clients of ibacm's default socket, with metrics:",
                "ibfabric acm --attach lab --node node-1 --metrics 127.0.0.1:9684",
            ),
            (
                "Serve at hosts of two fabrics; each request uses the fabric of its destination:",
                "ibfabric acm --attach lab --node node-1 --attach other --node node-7 --socket /tmp/acm.sock",
            ),
            (
                "Serve at a port of a local HCA, with addresses from files:",
                "ibfabric acm --umad mlx5_0:1",
            ),
        ],
        "acme" => &[
            (
                "Resolve a name, and verify the path with the SA:",
                "ibfabric acme -f n -d node-2 -v -S /tmp/acm.sock",
            ),
            ("Counters of the service of this machine:", "ibfabric acme -P col"),
            (
                "Write the configuration files of a service at a host of a simulated fabric:",
                "ibfabric acme -A -O -D . --attach lab --node node-1",
            ),
        ],
        "acm-ctl" => &[
            ("State and counters:", "ibfabric acm ctl status"),
            (
                "Cached addresses and paths of a node:",
                "ibfabric acm ctl cache node-2 --socket /tmp/acm.sock",
            ),
        ],
        "acm-status" => &[("One JSON object, for scripts:", "ibfabric acm ctl status --json")],
        "acm-cache" => &[("The whole cache:", "ibfabric acm ctl cache")],
        "acm-flush" => {
            &[("Discard paths that a reconfiguration made stale:", "ibfabric acm ctl flush")]
        }
        "acm-reload" => &[("Apply a changed ibacm_addr.cfg:", "ibfabric acm ctl reload")],
        "acm-metrics" => {
            &[("Metrics with their labels, as JSON:", "ibfabric acm ctl metrics --json")]
        }
        "rdma" => &[
            (
                "Serve `rping` clients on another machine:",
                "ibfabric rdma serve --listen 192.168.77.2 --rping -v",
            ),
            (
                "Measure the bandwidth between two addresses of this machine:",
                "ibfabric rdma serve --listen 127.0.0.1 &
    ibfabric rdma bw 127.0.0.1 --from 127.0.0.2 --size 1048576",
            ),
        ],
        "hca" => &[
            (
                "Share an address among programs until a signal stops the daemon:",
                "ibfabric hca --roce 127.0.0.1",
            ),
            (
                "Share an address in the background as long as programs use it:",
                "ibfabric hca --roce 127.0.0.1 --background --exit-idle 60 --log-file hca.log",
            ),
        ],
        "run" => &[
            (
                "A ping-pong of libibverbs between two nodes of a running simulator:",
                "ibfabric run --attach lab --node host-0 -- ibv_rc_pingpong &
    ibfabric run --attach lab --node host-1 -- ibv_rc_pingpong localhost",
            ),
            (
                "The same program over RoCEv2, at one address of this machine:",
                "ibfabric run --roce 127.0.0.1 -- ibv_rc_pingpong -g 0 &
    ibfabric run --roce 127.0.0.1 -- ibv_rc_pingpong -g 0 localhost",
            ),
        ],
        "rtrs" => &[
            (
                "Serve a device in memory, also to Linux kernels:",
                "ibfabric rtrs serve --listen 192.168.77.2 --export disk0=mem:1G",
            ),
            (
                "Benchmark a device of a Linux kernel over two paths:",
                "ibfabric rtrs bench --path 192.168.77.1 --path fd00:77::1 --device dev/ram0",
            ),
        ],
        "rtrs-serve" => &[
            (
                "Serve a file and a block device at two addresses:",
                "ibfabric rtrs serve --listen 10.0.0.1 --listen 10.0.1.1 --export disk0=/srv/disk0.img --export nvme=/dev/nvme0n1",
            ),
            (
                "Accept clients of one network only:",
                "ibfabric rtrs serve --listen 10.0.0.1 --export disk0=mem:64M --allow 10.0.0.0/24",
            ),
            (
                "Serve at two ports of a simulated fabric:",
                "ibfabric rtrs serve --attach rails --node server --node server:2 --export disk0=mem:64M",
            ),
            (
                "Serve a device, and statistics for `rtrs ctl` and for Prometheus:",
                "ibfabric rtrs serve --listen 10.0.0.1 --export disk0=mem:64M --control-socket /run/serve.ctl --metrics 127.0.0.1:9440",
            ),
        ],
        "rtrs-bench" => &[
            (
                "Random reads of 4 KiB with 32 outstanding requests:",
                "ibfabric rtrs bench --path 127.0.0.1 --device disk0 --rw randread --bs 4K --iodepth 32",
            ),
            (
                "Verify written data:",
                "ibfabric rtrs bench --path 127.0.0.1 --device disk0 --rw randrw --bs 64K --verify --size 256M --json",
            ),
            (
                "Benchmark a device over two ports of a simulated fabric:",
                "ibfabric rtrs bench --attach rails --node client --node client:2 --path server --path gid:fe80::4002 --device disk0",
            ),
            (
                "Random request sizes, with flushes and discards:",
                "ibfabric rtrs bench --path 127.0.0.1 --device disk0 --rw randrw --bsrange 512-1M --fsync 32 --trim 16 --verify --io-size 1G",
            ),
        ],
        "rtrs-ctl" => &[
            (
                "Print the multipath policy of a session, and change it:",
                "ibfabric rtrs ctl --socket /run/disk0.ctl get rtrs-client/host-1/mpath_policy
    ibfabric rtrs ctl --socket /run/disk0.ctl set rtrs-client/host-1/mpath_policy round-robin",
            ),
            (
                "Add a second path while the first is in use:",
                "ibfabric rtrs ctl --socket /run/disk0.ctl set rtrs-client/host-1/add_path ip:10.0.1.2,ip:10.0.1.1",
            ),
        ],
        "rtrs-ctl-get" => &[(
            "Print the traffic of a path:",
            "ibfabric rtrs ctl get rtrs-client/host-1/paths/ip:10.0.0.2@ip:10.0.0.1/stats/rdma",
        )],
        "rtrs-ctl-set" => &[
            (
                "Disconnect a path:",
                "ibfabric rtrs ctl set rtrs-client/host-1/paths/ip:10.0.0.2@ip:10.0.0.1/disconnect 1",
            ),
            (
                "Reset the counters of a path:",
                "ibfabric rtrs ctl set ibtrs-client/host-1/paths/ip:10.0.0.2@ip:10.0.0.1/stats/reset_all 0",
            ),
        ],
        "rtrs-ctl-list" => &[
            (
                "List the sessions of a server:",
                "ibfabric rtrs ctl --socket /run/serve.ctl list rtrs-server",
            ),
            (
                "List the paths of a session as JSON:",
                "ibfabric rtrs ctl list rtrs-client/host-1/paths --json",
            ),
        ],
        "rtrs-ctl-metrics" => &[("Print all metrics:", "ibfabric rtrs ctl metrics")],
        "rtrs-mount" => &[
            (
                "Mount the control files of a server and of one of its clients:",
                "ibfabric rtrs mount /mnt/rtrs --socket /run/serve.ctl --socket /run/disk0.ctl",
            ),
            ("Use the default control socket:", "ibfabric rtrs mount /mnt/rtrs"),
        ],
        "nbd" => &[
            (
                "Export a device with two paths to qemu and other NBD clients:",
                "ibfabric nbd --path 10.0.0.1 --path 10.0.1.1 --device disk0 --socket /run/disk0.sock",
            ),
            (
                "Export a device at NBD's usual TCP port on loopback:",
                "ibfabric nbd --path 10.0.0.1 --device disk0 --listen 127.0.0.1:10809",
            ),
            (
                "Connect from a port of a simulated fabric:",
                "ibfabric nbd --attach rails --node client --path server --device disk0 --socket /tmp/disk0.sock",
            ),
            (
                "Add a control socket for `rtrs ctl`:",
                "ibfabric nbd --path 10.0.0.1 --device disk0 --socket /run/disk0.sock --session host-1 --control-socket /run/disk0.ctl",
            ),
        ],
        "up" => &[
            ("Run the whole stack on a simulated fat tree:", "ibfabric up"),
            (
                "Run the stack on another fabric, with a web page at a fixed port and a packet capture:",
                "ibfabric up tree.net --http 127.0.0.1:8080 --pcap up.pcapng",
            ),
        ],
        "selftest" => &[
            ("Test the stack on a simulated fat tree:", "ibfabric selftest"),
            (
                "Test the stack on another fabric, with JSON output:",
                "ibfabric selftest tree.net --engine updn --json",
            ),
        ],
        "capture" => &[
            (
                "Show the packets of a program live:",
                "ibfabric capture start --pid 4711 -w - | tshark -i -",
            ),
            (
                "Capture the last 200 packets before any queue pair fails:",
                "ibfabric capture start --pid 4711 --trigger error --keep 200 -w failed.pcapng",
            ),
        ],
        "list" => &[
            ("List programs, queue pairs and captures:", "ibfabric capture list"),
            ("Print the last messages of a queue pair:", "ibfabric capture list --messages 0x51a2"),
        ],
        "start" => &[
            (
                "Capture the headers of connections to port 1234 of rdma_cm, in ten rotated files of 100 MB:",
                "ibfabric capture start --pid 4711 --service 1234 --payload 0 -w ibtrs.pcapng -b filesize:100000 -b files:10",
            ),
            (
                "Capture one queue pair for ten seconds:",
                "ibfabric capture start --pid 4711 --qpn 0x51a2 -w one.pcapng -a duration:10",
            ),
        ],
        "change" => {
            &[("From now on, capture headers only:", "ibfabric capture change 1 --payload 0")]
        }
        "stop" => &[("Stop all captures of all programs:", "ibfabric capture stop --json")],
        "devinfo" => &[(
            "Print the counters of a server's HCA, with the reasons of dropped packets:",
            "ibfabric rdma devinfo --from 192.168.77.2 -v",
        )],
        "serve" => &[
            (
                "Serve `rdma bw` and `rdma lat` clients on this machine:",
                "ibfabric rdma serve --listen 127.0.0.1",
            ),
            (
                "Serve a client of perftest, `ib_write_bw -R 192.168.77.2`:",
                "ibfabric rdma serve --listen 192.168.77.2 --perftest ib_write_bw",
            ),
        ],
        "ping" => {
            &[("Ping `rping -s` on another machine:", "ibfabric rdma ping 192.168.77.1 -C 10 -v")]
        }
        "cmatose" => {
            &[("Exchange messages with `ucmatose`:", "ibfabric rdma cmatose 192.168.77.1")]
        }
        "pingpong" => &[(
            "Exchange messages with `ibv_rc_pingpong -g 1 -c`:",
            "ibfabric rdma pingpong 192.168.77.1 -c",
        )],
        "bw" => &[
            (
                "RDMA WRITE of 1 MiB, 16 outstanding:",
                "ibfabric rdma bw 127.0.0.1 --from 127.0.0.2 -s 1048576 -t 16",
            ),
            (
                "RDMA READ from `ib_read_bw -R`:",
                "ibfabric rdma bw 192.168.77.1 --perftest --op read -s 65536",
            ),
        ],
        "lat" => &[(
            "Round trips of 64-byte messages:",
            "ibfabric rdma lat 127.0.0.1 --from 127.0.0.2 --op send",
        )],
        "correlate" => &[
            (
                "Report the latencies between two machines:",
                "ibfabric capture correlate client.pcapng server.pcapng --html times.html",
            ),
            (
                "Measure the time from a received request to its response by WRITE on another queue pair:",
                "ibfabric capture correlate server.pcapng --from 'qp 0x11 receive SEND' --to 'qp 0x12 send WRITE'",
            ),
        ],
        "read" => &[
            (
                "Print connection establishment with all fields:",
                "ibfabric capture read run.pcapng --class cm --verbose",
            ),
            (
                "Print the RDMA WRITEs of a capture in which RoCEv2 used UDP port 18517:",
                "ibfabric capture read run.pcapng --udp-port 18517 --opcode \"rdma write\"",
            ),
        ],
        "completions" => &[
            (
                "Install the completion script for bash:",
                "ibfabric completions bash | sudo tee /etc/bash_completion.d/ibfabric",
            ),
            ("Enable completions in this fish shell:", "ibfabric completions fish | source"),
        ],
        "agent" => &[("Run an agent at a port of a local HCA:", "ibfabric agent -I mlx5_0:1")],
        _ => &[],
    }
}

/// Returns the "Examples" section of a subcommand's help text.
pub(crate) fn examples_text(subcommand: &str) -> String {
    let examples = examples(subcommand).iter();
    let lines: Vec<String> =
        examples.map(|(purpose, command)| format!("  {purpose}\n    {command}")).collect();
    format!("Examples:\n{}", lines.join("\n"))
}
