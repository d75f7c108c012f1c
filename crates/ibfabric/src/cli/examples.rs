//! What each command is used for: the examples of the help texts and the man pages. Tests read all of them.

/// Returns what a subcommand is used for: in words, and the command.
#[must_use]
pub fn examples(subcommand: &str) -> &'static [(&'static str, &'static str)] {
    match subcommand {
        "gen" => &[
            (
                "A three-level tree of 36-port switches with 11,664 hosts:",
                "ibfabric gen xgft 18,18,36 1,18,18 -o tree.net",
            ),
            (
                "A torus of HDR links of which a twentieth is missing, for ibsim:",
                "ibfabric gen torus 8x8x8 hosts=2 --speed HDR --drop-links 0.05 --seed 7 -o torus.net",
            ),
        ],
        "route" => &[
            (
                "Route what ibnetdiscover sees and draw it:",
                "ibnetdiscover | ibfabric route - --engine ftree,updn --report fabric.html",
            ),
            (
                "OpenSM's dump files for a torus without credit loops:",
                "ibfabric route torus.net --engine lash,no_fallback --dump-dir dumps",
            ),
        ],
        "check" => &[(
            "Check what a running OpenSM has dumped:",
            "ibnetdiscover | ibfabric check - --lfts /var/log/opensm-lfts.dump",
        )],
        "sim" => &[
            (
                "A fabric for unmodified tools, and one of them:",
                "ibfabric sim tree.net --socket lab &
    LD_PRELOAD=/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so IBSIM_SOCKNAME=lab ibnetdiscover",
            ),
            (
                "A run with ten faults that can be repeated, and its packets:",
                "ibfabric sim tree.net --random-faults 10 --seed 7 --record run.txt --pcap run.pcapng",
            ),
        ],
        "sm" => &[
            (
                "Bring a simulated fabric up, and end:",
                "ibfabric sm --sim tree.net --engine updn --once",
            ),
            ("Manage the fabric of an ibsim that runs:", "ibfabric sm --ibsim=lab"),
            (
                "Manage what is behind a real port, with metrics for Prometheus:",
                "ibfabric sm --umad mlx5_0:1 --engine ftree,updn --metrics-port 9683 --perf-interval 60",
            ),
        ],
        "sm-ctl" => &[
            ("What is wrong, if anything:", "ibfabric sm ctl status"),
            ("What --metrics-port would serve:", "ibfabric sm ctl metrics"),
        ],
        "status" => &[("As one object, for scripts:", "ibfabric sm ctl status --format json")],
        "sweep" => &[("After the partitions were changed:", "ibfabric sm ctl sweep")],
        "routes" => &[
            ("How the routes came about:", "ibfabric sm ctl routes"),
            ("The table of a switch:", "ibfabric sm ctl routes 0x0002c90000200000"),
        ],
        "metrics" => &[("As numbers with labels:", "ibfabric sm ctl metrics --format json")],
        "ctl" => &[
            ("Pull a cable:", "ibfabric sim ctl --socket lab unlink '\"leaf-1\"[3]'"),
            ("What was refused, lost and answered:", "ibfabric sim ctl stats --format json"),
        ],
        "tracer" => &[
            ("Is the way to LID 9 the one that the tables say?", "ibfabric tracer -l 9 -v"),
            ("All ways through a simulated tree:", "ibfabric tracer --sim tree.net --all-pairs"),
        ],
        "acm" => &[
            (
                "Resolve for programs that ask ib_acm's socket, at a host of a simulated fabric:",
                "ibfabric acm --attach lab --node node-1 --socket /tmp/acm.sock",
            ),
            (
                "Where programs look for ibacm, with metrics:",
                "ibfabric acm --attach lab --node node-1 --metrics-port 9684",
            ),
            (
                "At hosts of two fabrics, from whichever reaches what is asked for:",
                "ibfabric acm --attach lab --node node-1 --attach other --node node-7 --socket /tmp/acm.sock",
            ),
            (
                "At a port of this machine's adapter, with the addresses of files:",
                "ibfabric acm --umad mlx5_0:1",
            ),
        ],
        "acme" => &[
            (
                "Resolve a name, and compare the path with what subnet administration says:",
                "ibfabric acme -f n -d node-2 -v -S /tmp/acm.sock",
            ),
            ("The counters of the machine's own service:", "ibfabric acme -P col"),
            (
                "Files for a service at a host of a simulated fabric:",
                "ibfabric acme -A -O -D . --attach lab --node node-1",
            ),
        ],
        "acm-ctl" => &[
            ("What is it, and what does it do?", "ibfabric acm ctl status"),
            (
                "What does it know of a node?",
                "ibfabric acm ctl known node-2 --socket /tmp/acm.sock",
            ),
        ],
        "acm-status" => &[("As one object, for scripts:", "ibfabric acm ctl status --format json")],
        "acm-known" => &[("All that it knows:", "ibfabric acm ctl known")],
        "acm-flush" => &[("After a change that nobody has told it of:", "ibfabric acm ctl flush")],
        "acm-reload" => &[("After ibacm_addr.cfg was changed:", "ibfabric acm ctl reload")],
        "acm-metrics" => &[("As numbers with labels:", "ibfabric acm ctl metrics --format json")],
        "rdma" => &[
            (
                "Answer the real rping of another machine:",
                "ibfabric rdma serve --listen 192.168.77.2 --rping -v",
            ),
            (
                "Bandwidth between two addresses of this machine:",
                "ibfabric rdma serve --listen 127.0.0.1 &
    ibfabric rdma bw 127.0.0.1 --from 127.0.0.2 --size 1048576",
            ),
        ],
        "run" => &[
            (
                "A ping-pong of libibverbs between two nodes of a running simulator:",
                "ibfabric run --attach lab --node host-0 -- ibv_rc_pingpong &
    ibfabric run --attach lab --node host-1 -- ibv_rc_pingpong localhost",
            ),
            (
                "The same program over RoCEv2, between two addresses of this machine:",
                "ibfabric run --roce 127.0.0.1 -- ibv_rc_pingpong -g 0 &
    ibfabric run --roce 127.0.0.2 -- ibv_rc_pingpong -g 0 localhost",
            ),
        ],
        "rtrs" => &[
            (
                "A device in memory, for Linux kernels and others:",
                "ibfabric rtrs serve --listen 192.168.77.2 --export disk0=mem:1G",
            ),
            (
                "How fast a device of a Linux kernel is over two paths:",
                "ibfabric rtrs bench --path 192.168.77.1 --path fd00:77::1 --device dev/ram0",
            ),
        ],
        "rtrs-serve" => &[
            (
                "A file and a block device, at two addresses:",
                "ibfabric rtrs serve --listen 10.0.0.1 --listen 10.0.1.1 --export disk0=/srv/disk0.img --export nvme=/dev/nvme0n1",
            ),
            (
                "For machines of one network only:",
                "ibfabric rtrs serve --listen 10.0.0.1 --export disk0=mem:64M --allow 10.0.0.0/24",
            ),
            (
                "At two ports of a simulated fabric:",
                "ibfabric rtrs serve --attach rails --node server --node server:2 --export disk0=mem:64M",
            ),
            (
                "With statistics for `rtrs ctl` and for Prometheus:",
                "ibfabric rtrs serve --listen 10.0.0.1 --export disk0=mem:64M --control /run/serve.ctl --metrics-port 9440",
            ),
        ],
        "rtrs-bench" => &[
            (
                "Random reads of 4 KiB, 32 at once:",
                "ibfabric rtrs bench --path 127.0.0.1 --device disk0 --rw randread --bs 4K --iodepth 32",
            ),
            (
                "What is written has to be there:",
                "ibfabric rtrs bench --path 127.0.0.1 --device disk0 --rw randrw --bs 64K --verify --size 256M --format json",
            ),
            (
                "Over two ports of a simulated fabric:",
                "ibfabric rtrs bench --attach rails --node client --node client:2 --path server --path gid:fe80::4002 --device disk0",
            ),
            (
                "Requests of all lengths, with flushes and discards among them:",
                "ibfabric rtrs bench --path 127.0.0.1 --device disk0 --rw randrw --bsrange 512-1M --fsync 32 --trim 16 --verify --io-size 1G",
            ),
        ],
        "rtrs-ctl" => &[
            (
                "How requests of a session are divided, and another way:",
                "ibfabric rtrs ctl --control /run/disk0.ctl get rtrs-client/host-1/mpath_policy
    ibfabric rtrs ctl --control /run/disk0.ctl set rtrs-client/host-1/mpath_policy round-robin",
            ),
            (
                "A second path, while the first is in use:",
                "ibfabric rtrs ctl --control /run/disk0.ctl set rtrs-client/host-1/add_path ip:10.0.1.2,ip:10.0.1.1",
            ),
        ],
        "rtrs-ctl-get" => &[(
            "What a path has carried:",
            "ibfabric rtrs ctl get rtrs-client/host-1/paths/ip:10.0.0.2@ip:10.0.0.1/stats/rdma",
        )],
        "rtrs-ctl-set" => &[
            (
                "A path that is to carry nothing for a while:",
                "ibfabric rtrs ctl set rtrs-client/host-1/paths/ip:10.0.0.2@ip:10.0.0.1/disconnect 1",
            ),
            (
                "All numbers of a path from zero:",
                "ibfabric rtrs ctl set ibtrs-client/host-1/paths/ip:10.0.0.2@ip:10.0.0.1/stats/reset_all 0",
            ),
        ],
        "rtrs-ctl-list" => &[
            (
                "Sessions of a server:",
                "ibfabric rtrs ctl --control /run/serve.ctl list rtrs-server",
            ),
            (
                "Paths of a session, as data:",
                "ibfabric rtrs ctl list rtrs-client/host-1/paths --format json",
            ),
        ],
        "rtrs-ctl-metrics" => &[("All numbers:", "ibfabric rtrs ctl metrics")],
        "rtrs-mount" => &[
            (
                "A server and one of its clients as files:",
                "ibfabric rtrs mount /mnt/rtrs --control /run/serve.ctl --control /run/disk0.ctl",
            ),
            ("At the usual socket:", "ibfabric rtrs mount /mnt/rtrs"),
        ],
        "nbd" => &[
            (
                "A device that two paths lead to, for qemu and others:",
                "ibfabric nbd --path 10.0.0.1 --path 10.0.1.1 --device disk0 --socket /run/disk0.sock",
            ),
            (
                "At the usual port of loopback:",
                "ibfabric nbd --path 10.0.0.1 --device disk0 --tcp 127.0.0.1:10809",
            ),
            (
                "From a port of a simulated fabric:",
                "ibfabric nbd --attach rails --node client --path server --device disk0 --socket /tmp/disk0.sock",
            ),
            (
                "With paths that can be added, taken away and looked at:",
                "ibfabric nbd --path 10.0.0.1 --device disk0 --socket /run/disk0.sock --session host-1 --control /run/disk0.ctl",
            ),
        ],
        "up" => &[
            ("All systems on a fat tree, to play with:", "ibfabric up"),
            (
                "A tour of them on a fabric of one's own, for scripts:",
                "ibfabric up tree.net --engine updn --check --format json",
            ),
        ],
        "capture" => &[
            (
                "What a program sends and receives, live:",
                "ibfabric capture start --pid 4711 -w - | tshark -i -",
            ),
            (
                "The last 200 packets before a queue pair fails, whichever it is:",
                "ibfabric capture start --pid 4711 --trigger error --keep 200 -w failed.pcapng",
            ),
        ],
        "list" => &[
            ("Programs, their queue pairs and captures:", "ibfabric capture list"),
            ("The last messages of a queue pair:", "ibfabric capture list --messages 0x51a2"),
        ],
        "start" => &[
            (
                "The headers of all that goes to port 1234 of rdma_cm, in ten files of 100 MB at most:",
                "ibfabric capture start --pid 4711 --service 1234 --payload 0 -w ibtrs.pcapng -b filesize:100000 -b files:10",
            ),
            (
                "One queue pair of a process, for ten seconds:",
                "ibfabric capture start --pid 4711 --qpn 0x51a2 -w one.pcapng -a duration:10",
            ),
        ],
        "change" => &[("No payload any more:", "ibfabric capture change 1 --payload 0")],
        "stop" => &[("All captures of all programs:", "ibfabric capture stop --format json")],
        "devinfo" => &[(
            "What the server at an address has counted, and why it dropped packets:",
            "ibfabric rdma devinfo --listen 192.168.77.2 -v",
        )],
        "serve" => &[
            (
                "For `rdma bw` and `rdma lat` of this machine:",
                "ibfabric rdma serve --listen 127.0.0.1",
            ),
            (
                "For a client of perftest, `ib_write_bw -R 192.168.77.2`:",
                "ibfabric rdma serve --listen 192.168.77.2 --perftest ib_write_bw",
            ),
        ],
        "ping" => &[(
            "A server that `rping -s` of another machine is:",
            "ibfabric rdma ping 192.168.77.1 -C 10 -v",
        )],
        "cmatose" => &[("A server that `ucmatose` is:", "ibfabric rdma cmatose 192.168.77.1")],
        "pingpong" => &[(
            "With `ibv_rc_pingpong -g 1 -c` at the other end:",
            "ibfabric rdma pingpong 192.168.77.1 -c",
        )],
        "bw" => &[
            (
                "RDMA WRITE of 1 MiB, 16 under way:",
                "ibfabric rdma bw 127.0.0.1 --from 127.0.0.2 -s 1048576 -t 16",
            ),
            (
                "A server that `ib_read_bw -R` is:",
                "ibfabric rdma bw 192.168.77.1 --perftest --op read -s 65536",
            ),
        ],
        "lat" => &[(
            "Messages of 64 bytes to and fro:",
            "ibfabric rdma lat 127.0.0.1 --from 127.0.0.2 --op send",
        )],
        "correlate" => &[
            (
                "Where the time goes between two machines:",
                "ibfabric capture correlate client.pcapng server.pcapng --html times.html",
            ),
            (
                "From a request that comes in to the WRITE that answers it on another queue pair:",
                "ibfabric capture correlate server.pcapng --from 'qp 0x11 receive SEND' --to 'qp 0x12 send WRITE'",
            ),
        ],
        "read" => &[
            (
                "How connections were made, in every detail:",
                "ibfabric capture read run.pcapng --class cm --verbose",
            ),
            (
                "The writes of a capture on another UDP port than that of RoCEv2:",
                "ibfabric capture read run.pcapng --udp-port 18517 --opcode \"rdma write\"",
            ),
        ],
        "agent" => &[("Answer at the first adapter:", "ibfabric agent -I mlx5_0:1")],
        _ => &[],
    }
}
