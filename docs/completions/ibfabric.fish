# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_ibfabric_global_optspecs
    string join \n q/quiet v/verbose h/help V/version
end

function __fish_ibfabric_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_ibfabric_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_ibfabric_using_subcommand
    set -l cmd (__fish_ibfabric_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c ibfabric -n "__fish_ibfabric_needs_command" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -s h -l help -d 'Print help'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -s V -l version -d 'Print version'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "gen" -d 'Generates a fabric file'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "route" -d 'Computes, checks and dumps the forwarding tables of a fabric'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "check" -d 'Checks forwarding tables: unreachable LIDs, forwarding loops, credit loops, link load'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "sim" -d 'Simulates a fabric that clients of ibsim attach to'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "sm" -d 'Runs a subnet manager (SM) with subnet administration (SA)'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "tracer" -d 'Traces the paths of packets hop by hop, and validates them against the forwarding tables'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "agent" -d 'Responds to requests of ibtracer and ibping at a port'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "rdma" -d 'Runs RDMA over RoCEv2 with a software HCA: server, ping tests and benchmarks'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "hca" -d 'Shares an IP address of this machine among programs, each of which has an own HCA over RoCEv2'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "run" -d 'Runs an unmodified verbs program on a simulated fabric or over RoCEv2'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "rtrs" -d 'Serves, benchmarks and verifies block devices over RTRS'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "nbd" -d 'Exports a block device of an RTRS server as an NBD export on this machine'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "acm" -d 'Resolves names, addresses and paths for local programs, in place of ibacm'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "acme" -d 'Queries ACM services for paths, endpoints and counters, and writes their configuration files, in place of `ib_acme`'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "up" -d 'Runs the whole stack on a simulated fabric until it is stopped: SM, ACM service, agents, a block device and a web page'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "selftest" -d 'Tests the whole stack on a simulated fabric: routes, names, paths, a block device over two paths whose links are cut, and a capture of its packets'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "capture" -d 'Captures the packets of queue pairs, and reads and compares capture files'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "completions" -d 'Prints the completion script of a shell'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand gen" -s o -l output -d 'File to write; - for standard output [default: -]' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand gen" -l speed -d 'Speed of all links: SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR or XDR' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand gen" -l width -d 'Width of all links: 1x, 2x, 4x, 8x or 12x' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand gen" -l format -d 'Format of the file. ibsim 0.10 itself reads speeds up to HDR only' -r -f -a "ibsim\t'A net file of ibsim'
ibnetdiscover\t'The output format of ibnetdiscover'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand gen" -l drop-links -d 'Fraction of the links between switches to omit, 0 to 1' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand gen" -l drop-switches -d 'Fraction of the switches to omit, 0 to 1. Hosts that lose all links are omitted, too' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand gen" -l seed -d 'Seed of all random choices' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand gen" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand gen" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand gen" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s g -l sm-port -l guid -d 'GUID of the SM\'s port [default: first linked port of the first HCA in the file]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s l -l lmc -d 'LMC: each HCA port gets 2^N LIDs [default: highest LMC in the fabric file]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l guid2lid -d 'File of port GUIDs and their LIDs, in the format of OpenSM\'s guid2lid' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l node-name-map -d 'File of node GUIDs and names. The names replace the node descriptions' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l threads -d 'Number of threads [default: number of processors]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l scope -d 'Pairs of ports whose packets the search for credit loops considers' -r -f -a "hosts\t'Packets from host to host'
management\t'Packets from host to host, and packets between hosts and switch port 0'
everything\t'All packets, including packets from switch to switch'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l sl2vl -d 'File of SL to VL mappings, in the format of OpenSM\'s opensm-sl2vl.dump [default: SL n on VL n]' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l seed -d 'Seed of the random bisections of --metrics' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s R -l engine -l routing_engine -d 'Routing engines in order of preference: minhop, updn, ftree, lash, dor, file. If all of them fail, minhop is used, unless no_fallback is in the list. auto selects minhop. With auto, the SM also tries updn and lash if the routes of minhop have a credit loop [default: auto]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s a -l root-guids -l root_guid_file -d 'File of GUIDs of root switches, or of HCAs attached to them (updn, ftree)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s u -l cn-guids -l cn_guid_file -d 'File of port GUIDs of compute nodes (ftree)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s G -l io-guids -l io_guid_file -d 'File of port GUIDs of I/O nodes (ftree)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s H -l max-reverse-hops -d 'Maximum number of upward hops after downward hops on a path to an I/O node (ftree) [default: 0]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s i -l ignore-guids -d 'File of ports that link load equalisation ignores. Each line has a switch GUID and a port number, or a port GUID. A port GUID stands for the switch port that is linked to this port' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s X -l guid-routing-order -d 'File of port GUIDs whose LIDs are routed first, in the order of the file' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s O -l port-search-ordering -d 'File of the switch ports that the engine considers first when it selects a port, in the order of the file. Each line has a switch GUID and port numbers' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s w -l hop-weights -d 'File of link weights, in hops. Each line has a switch GUID, a port number and a weight' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s m -l ids-guids -d 'File of identifiers that break ties between switches of equal rank (updn). Each line has a switch GUID and a number' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l scatter-ports -d 'Selects randomly among the least loaded ports, with this seed; 0 disables the random choice [default: 0]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l lash-start-vl -d 'Lowest VL to use (lash) [default: 0]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l virtual-lanes -d 'Number of data VLs of each link (lash) [default: 8]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s U -l lfts -l lfts_file -d 'File of forwarding tables that the engine loads (file)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s M -l lid-matrix -l lid_matrix_file -d 'LID matrix file that the engine loads (file)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l keep-lfts -d 'File of existing forwarding tables. An entry is kept if its port is still a least-hop port (minhop, updn, dor)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l dump-dir -l dump_files_dir -d 'Directory for OpenSM\'s dump files' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l html -d 'Writes an HTML report with drawings of the fabric, link loads and hops' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l lmc-esp0 -d 'Applies the LMC to enhanced switch ports 0 as well'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s r -l reassign-lids -d 'Reassigns all LIDs; ignores the LIDs of the fabric file and of --guid2lid'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l strict -d 'Requires every switch to reach every LID. By default, routes to LIDs of switches, and routes from switches without hosts, may be missing, since up/down routing may omit them'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l metrics -d 'Also prints the effective bisection bandwidth and the contention of the shift pattern'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l json -d 'Prints the result as one JSON object'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l quasi-ftree-indexing -d 'Starts the indexing of switches at the roots instead of at the first leaf (ftree)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s z -l connect-roots -d 'Also computes routes between root switches (updn), or from switches above the leaves to other switches (ftree)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l port-profile-switch-nodes -d 'Includes routes to switches in link load equalisation'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l port-shifting -d 'Starts the search for the least loaded port one port further whenever the average number of LIDs per port grows by one'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l guid-routing-order-no-scatter -d 'Exempts the ports of --guid-routing-order from --scatter-ports'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -s g -l sm-port -l guid -d 'GUID of the SM\'s port [default: first linked port of the first HCA in the file]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -s l -l lmc -d 'LMC: each HCA port gets 2^N LIDs [default: highest LMC in the fabric file]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -l guid2lid -d 'File of port GUIDs and their LIDs, in the format of OpenSM\'s guid2lid' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -l node-name-map -d 'File of node GUIDs and names. The names replace the node descriptions' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -l threads -d 'Number of threads [default: number of processors]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -l scope -d 'Pairs of ports whose packets the search for credit loops considers' -r -f -a "hosts\t'Packets from host to host'
management\t'Packets from host to host, and packets between hosts and switch port 0'
everything\t'All packets, including packets from switch to switch'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -l sl2vl -d 'File of SL to VL mappings, in the format of OpenSM\'s opensm-sl2vl.dump [default: SL n on VL n]' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -l seed -d 'Seed of the random bisections of --metrics' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -s U -l lfts -l lfts_file -d 'File of forwarding tables: OpenSM\'s opensm-lfts.dump, or the output of ibroute' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -l sl-file -d 'File with the service level of each pair of switches, which `route --dump-dir` writes for lash [default: SL 0 for all]' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -l lmc-esp0 -d 'Applies the LMC to enhanced switch ports 0 as well'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -s r -l reassign-lids -d 'Reassigns all LIDs; ignores the LIDs of the fabric file and of --guid2lid'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -l strict -d 'Requires every switch to reach every LID. By default, routes to LIDs of switches, and routes from switches without hosts, may be missing, since up/down routing may omit them'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -l metrics -d 'Also prints the effective bisection bandwidth and the contention of the shift pattern'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -l json -d 'Prints the result as one JSON object'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l name -d 'Name of the simulator. Clients specify this name in `IBSIM_SOCKNAME`' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l port -d 'Listens on this UDP port of the loopback device instead of on Unix sockets. Clients specify the port in `IBSIM_SERVER_PORT`, and use ports above it. `sim ctl --port N` connects to the console' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l sm -d 'Runs an SM at the first host with these routing engines [default: auto]. READY is then printed when the subnet is up. `sm ctl --name NAME-sm` controls the SM' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l agents -d 'Runs agents for ibtracer and ibping on these nodes, separated by commas [default: all nodes]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l seed -d 'Seed of all random choices' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l script -d 'File of console commands. Each line is `at TIME COMMAND`, with the time since the start of the fabric' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l random-faults -d 'Injects N random faults within the time of --random-time, and repairs them at the end of that time' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l random-time -d 'Time within which --random-faults injects faults, such as 30s' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l addresses -d 'File of IP addresses of ports. They replace the addresses that the simulator assigns. Each line is `GUID ADDRESS …`' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -s w -l pcap -d 'Writes all sent and lost packets to a pcapng file; - for standard output' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l log -d 'Log file; - for standard error' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l log-level -d 'Level of detail of --log' -r -f -a "events\t'Clients, links, port states, traps, commands and lost packets'
datagrams\t'Events, and sent and delivered datagrams'
hops\t'Events, datagrams, and every packet at every port'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l record -d 'Records all input of clients and consoles in a file for --replay' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l replay -d 'Replays a file of --record without sockets, as fast as possible, and exits. With the same fabric, seed and script, the log equals that of the recorded run' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l latency -d 'Latency of a packet from port to port, in addition to its transmission time' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l vl-buffer -d 'Receive buffer of each VL of a port, in bytes, at least 4224' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l mtu -d 'MTU that ports support, in bytes: 256, 512, 1024, 2048 or 4096. The SM sets the active MTU' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -s L -l linear-cap -d '`LinearFDBCap` of all switches: number of entries of their linear forwarding tables' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -s M -l mcast-cap -d '`MulticastFDBCap` of all switches: number of entries of their multicast forwarding tables' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l response-timeout -d 'Response timeout of clients. If a client does not respond to a request within this time, the simulator reports the request as failed to the requester' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -a "ctl" -d 'Sends commands to a running simulator'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and __fish_seen_subcommand_from ctl" -l name -d 'Name of the simulator [default: the simulator that clients would use. If `IBSIM_SERVER_NAME` is set, it has the UDP port `IBSIM_SERVER_PORT` (7070). Otherwise it has the name `IBSIM_SOCKNAME` (sim)]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and __fish_seen_subcommand_from ctl" -l port -d 'UDP port of the simulator: the value of `sim --port`' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and __fish_seen_subcommand_from ctl" -l json -d 'Prints one JSON object per command, each on a line of its own'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and __fish_seen_subcommand_from ctl" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and __fish_seen_subcommand_from ctl" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and __fish_seen_subcommand_from ctl" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and __fish_seen_subcommand_from help" -f -a "ctl" -d 'Sends commands to a running simulator'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l sim -d 'Simulates this fabric in the process, in virtual time. Other processes cannot attach to the fabric' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l attach -d 'Attaches to the running simulator with this name: an ibsim or an `ibfabric sim` [default name: from the environment variables that libumad2sim reads]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l node -d 'Node of the simulated fabric that runs the SM [default: with --attach the value of `SIM_HOST`, or else the first node]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l umad -d 'Port of a local HCA, such as `mlx5_0:1` [default: first port with an active link]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s g -l guid -d 'GUID of the local port. It must match the port that --umad, --attach or --node selects' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s F -l config -d 'OpenSM configuration file; command-line options override it [default on a real port: /etc/opensm/opensm.conf, if it exists]' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s c -l create-config -d 'Writes a configuration file with the settings of the other options, and exits' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s R -l engine -l routing_engine -d 'Routing engines in order of preference: minhop, updn, ftree, lash, dor, file. If all of them fail, minhop is used, unless no_fallback is in the list. auto selects minhop. With auto, the SM also tries updn and lash if the routes of minhop have a credit loop [default: auto]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s a -l root-guids -l root_guid_file -d 'File of GUIDs of root switches, or of HCAs attached to them (updn, ftree)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s u -l cn-guids -l cn_guid_file -d 'File of port GUIDs of compute nodes (ftree)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s G -l io-guids -l io_guid_file -d 'File of port GUIDs of I/O nodes (ftree)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s H -l max-reverse-hops -d 'Maximum number of upward hops after downward hops on a path to an I/O node (ftree) [default: 0]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s i -l ignore-guids -d 'File of ports that link load equalisation ignores. Each line has a switch GUID and a port number, or a port GUID. A port GUID stands for the switch port that is linked to this port' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s X -l guid-routing-order -d 'File of port GUIDs whose LIDs are routed first, in the order of the file' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s O -l port-search-ordering -d 'File of the switch ports that the engine considers first when it selects a port, in the order of the file. Each line has a switch GUID and port numbers' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s w -l hop-weights -d 'File of link weights, in hops. Each line has a switch GUID, a port number and a weight' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s m -l ids-guids -d 'File of identifiers that break ties between switches of equal rank (updn). Each line has a switch GUID and a number' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l scatter-ports -d 'Selects randomly among the least loaded ports, with this seed; 0 disables the random choice [default: 0]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l lash-start-vl -d 'Lowest VL to use (lash) [default: 0]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l virtual-lanes -d 'Number of data VLs of each link (lash) [default: 8]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s U -l lfts -l lfts_file -d 'File of forwarding tables that the engine loads (file)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s M -l lid-matrix -l lid_matrix_file -d 'LID matrix file that the engine loads (file)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l keep-lfts -d 'File of existing forwarding tables. An entry is kept if its port is still a least-hop port (minhop, updn, dor)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s l -l lmc -d 'LMC: each HCA port gets 2^N LIDs [default: 0]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s P -l pconfig -d 'OpenSM partition file [default: all ports are full members of the default partition; on a real port /etc/opensm/partitions.conf, if it exists]' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s Z -l part-enforce -d 'Partition enforcement by switches: both, in, out or off [default: both]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s p -l priority -d 'SM priority, 0 to 15. The SM with the highest priority becomes master. If priorities are equal, the SM with the lowest port GUID becomes master [default: 0]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s k -l smkey -d '`SM_Key`, shared by the SMs of the subnet [default: 1]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l subnet-prefix -d 'Subnet prefix, the upper half of GIDs [default: 0xfe80000000000000]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s s -l sweep -d 'Interval of light sweeps in seconds; 0 disables them [default: 10]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s n -l maxsmps -d 'Maximum number of outstanding SMPs; 0 for no limit [default: 64]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s t -l response-timeout -l timeout -d 'Response timeout of SMPs in milliseconds [default: 200]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l retries -d 'Number of retries of an SMP [default: 3]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s f -l log -d 'Log file in OpenSM\'s format; stdout for standard output [default: errors to standard error; on a real port /var/log/opensm.log]' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s L -l log-limit -d 'Maximum size of the log in MB. A log that reaches this size is truncated' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s D -l log-flags -d 'Log flags: 0x01 errors, 0x02 information, 0x04 verbose, 0x08 debugging, 0x20 all MADs, 0x40 all dump files; 0 disables the log [default: 0x03]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l dump-dir -l dump_files_dir -d 'Writes OpenSM\'s dump files into this directory each time the subnet comes up' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l cache-dir -d 'Directory in which the SM caches LIDs, M_Keys and neighbours. The SM takes its initial LIDs from this cache [default on a real port: /var/cache/opensm]' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s J -l pidfile -d 'Writes the process ID to a file' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l name -d 'Name of the SM for `sm ctl` [default: sm]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l metrics -d 'Serves metrics for Prometheus at this TCP address. There is no authentication' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l perf-interval -d 'Interval in seconds at which the SM reads the counters of all ports for --metrics' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l standby -d 'Becomes standby if another SM is master, and takes over when the master fails. Without this option, an SM on a real port or with --once exits with status 2 if another SM is master'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l quasi-ftree-indexing -d 'Starts the indexing of switches at the roots instead of at the first leaf (ftree)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s z -l connect-roots -d 'Also computes routes between root switches (updn), or from switches above the leaves to other switches (ftree)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l port-profile-switch-nodes -d 'Includes routes to switches in link load equalisation'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l port-shifting -d 'Starts the search for the least loaded port one port further whenever the average number of LIDs per port grows by one'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l guid-routing-order-no-scatter -d 'Exempts the ports of --guid-routing-order from --scatter-ports'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l lmc-esp0 -d 'Applies the LMC to enhanced switch ports 0 as well'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s r -l reassign-lids -d 'Reassigns all LIDs once; ignores the LIDs of the ports and of the cache'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s A -l ucast-cache -d 'Caches unicast routes: keeps them when hosts and leaf switches disappear and return'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l require-deadlock-free -d 'Never programs routes with credit loops, even if hosts remain unreachable'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s Q -l qos -d 'Configures `QoS`: SL to VL mappings and VL arbitration. The routes of lash are deadlock-free only with this option'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l no-clients-rereg -d 'Does not request clients to reregister when this SM takes over the subnet'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s o -l once -d 'Exits when the subnet is up'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s I -l inactive -d 'Starts in the state NOT-ACTIVE. The SM leaves this state when the master SM sends SMInfo STANDBY'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l json -d 'Prints one JSON object, on a line of its own, each time the subnet comes up'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s e -l erase-log -d 'Truncates the log at startup'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s v -l verbose -d 'Adds log flags: 0x06 with -v, 0x0e with -vv, 0x2e with -vvv'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s x -l honor-guid2lid -d 'Also uses the cached LIDs when this SM takes over from a failed master'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s B -l daemon -d 'Runs in the background'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -f -a "ctl" -d 'Queries a running SM, or requests a sweep'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and __fish_seen_subcommand_from ctl" -l name -d 'Name of the SM: the value of `sm --name`' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and __fish_seen_subcommand_from ctl" -l json -d 'Prints the result as one JSON object'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and __fish_seen_subcommand_from ctl" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and __fish_seen_subcommand_from ctl" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and __fish_seen_subcommand_from ctl" -f -a "status" -d 'Prints the state of the SM and the problems of the subnet'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and __fish_seen_subcommand_from ctl" -f -a "sweep" -d 'Starts a heavy sweep, and reloads the partition file'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and __fish_seen_subcommand_from ctl" -f -a "routes" -d 'Prints the result of the routing engine and a list of the switches, or the forwarding table of one switch'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and __fish_seen_subcommand_from ctl" -f -a "metrics" -d 'Prints the metrics that --metrics serves'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and __fish_seen_subcommand_from ctl" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and __fish_seen_subcommand_from help" -f -a "ctl" -d 'Queries a running SM, or requests a sweep'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -s I -l device -l umad -d 'HCA, such as `mthca0` or `mlx5_0` [default: first HCA with an active link]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -s p -l port -d 'Port number, at the HCA of -I' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l attach -d 'Attaches to the running simulator with this name: an ibsim or an `ibfabric sim` [default name: from the environment variables that libumad2sim reads]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l node -d 'Node of the simulated fabric to attach to [default: with --attach the value of `SIM_HOST`, or the first node]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l sim -d 'Simulates this fabric in the process, in virtual time, with an SM at its first host and agents on all nodes' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -s R -l engine -d 'Routing engines of the SM of --sim, in order of preference' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l commands -d 'File of commands for the fabric of --sim, one per line. They are executed when the subnet is up. Their syntax is that of `ibfabric sim ctl`' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -s r -l retries -d 'Number of retries of a request' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -s t -l response-timeout -l timeout -d 'Response timeout in milliseconds' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -s l -l lid -d 'Traces the path to this LID' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -s g -l dgid -d 'Traces the path to this GID. The SA is queried for the LID' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l pairs -d 'Traces the paths of a file. Each line has a source and a destination: LIDs, GIDs or port GUIDs' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l mgid -d 'Traces the tree of the multicast group with this GID from the local port. The SA provides the MLID and the members. Members that the tree does not reach, or reaches twice, are reported' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l mlid -d 'Traces the tree of this multicast LID, without a list of members' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l smkey -d '`SM_Key` in the SA query for the members of the group. The SA returns the members only if the key is right [default: 1]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l from -d 'Source of the path: a LID, a GID or a port GUID [default: the local port]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l via -d 'Source of the forwarding tables and links' -r -f -a "direct\t'SMPs to the nodes, over directed routes'
sa\t'Records of the SA about links, ports and forwarding tables. The tracer then compares the fabric with the SM\'s view of the fabric'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l error-probability -d 'Significance level: missing responses count as a fault if random packet loss would cause them with a probability of at most P' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l sl -d 'Service level of requests to agents' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -s y -l mkey -d 'M_Key of nodes that require one' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l window -d 'Maximum number of outstanding requests' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l node-name-map -d 'Node name map: file of node GUIDs and names. The names are printed instead of the node descriptions' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l ports -d 'Ports that -v prints: only ingress ports, or ingress and egress ports' -r -f -a "in\t'Ingress ports'
both\t'Ingress and egress ports'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l format -d 'Output format of the result' -r -f -a "text\t'Text'
ibtracert\t'The output of ibtracert, for each path'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l suppress-traps -d 'The SM of --sim does not receive the traps that --commands cause'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l all-pairs -d 'Traces the paths between all pairs of hosts that are registered with the SA'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l reverse -d 'Traces the reverse path as well'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l no-agents -d 'Sends no requests to agents. Prints the paths in the forwarding tables, without a proof that packets take these paths'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l exact -d 'Reads port counters to verify out of which port each switch sends packets to the destination LID. This takes some hundred requests per hop. All pairs of 1,200 hosts take minutes instead of seconds'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l grh -d 'Adds a GRH to requests to agents'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -s v -l verbose -d 'Prints all hops of each path, with the evidence for each hop'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l json -d 'Prints the result as one JSON object'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand agent" -s I -l device -l umad -d 'HCA, such as `mthca0` or `mlx5_0` [default: first HCA with an active link]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand agent" -s p -l port -d 'Port number, at the HCA of -I' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand agent" -l attach -d 'Attaches to the running simulator with this name: an ibsim or an `ibfabric sim` [default name: from the environment variables that libumad2sim reads]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand agent" -l node -d 'Node of the simulated fabric to attach to [default: with --attach the value of `SIM_HOST`, or the first node]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand agent" -l host-name -d 'Host name in responses to ibping [default: name of the machine]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand agent" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand agent" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand agent" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and not __fish_seen_subcommand_from devinfo serve ping cmatose pingpong bw lat help" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and not __fish_seen_subcommand_from devinfo serve ping cmatose pingpong bw lat help" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and not __fish_seen_subcommand_from devinfo serve ping cmatose pingpong bw lat help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and not __fish_seen_subcommand_from devinfo serve ping cmatose pingpong bw lat help" -f -a "devinfo" -d 'Prints the attributes and counters of the HCA at an address'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and not __fish_seen_subcommand_from devinfo serve ping cmatose pingpong bw lat help" -f -a "serve" -d 'Serves `rdma bw` and `rdma lat`, and also `rping`, `ucmatose` and the programs of perftest'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and not __fish_seen_subcommand_from devinfo serve ping cmatose pingpong bw lat help" -f -a "ping" -d 'Pings a server of rping'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and not __fish_seen_subcommand_from devinfo serve ping cmatose pingpong bw lat help" -f -a "cmatose" -d 'Exchanges messages with a server of ucmatose'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and not __fish_seen_subcommand_from devinfo serve ping cmatose pingpong bw lat help" -f -a "pingpong" -d 'Exchanges messages in round trips, interoperable with `ibv_rc_pingpong`'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and not __fish_seen_subcommand_from devinfo serve ping cmatose pingpong bw lat help" -f -a "bw" -d 'Measures bandwidth'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and not __fish_seen_subcommand_from devinfo serve ping cmatose pingpong bw lat help" -f -a "lat" -d 'Measures latency'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and not __fish_seen_subcommand_from devinfo serve ping cmatose pingpong bw lat help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -l from -d 'Local address [default: first address of an active interface; a loopback address for peers on loopback]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -l attach -d 'Attaches the HCA to a port of the running `ibfabric sim` with this name [default name: the value of `IBSIM_SOCKNAME`, or sim]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -l node -d 'Port of the simulated fabric: a node name, an IP address, a GID or a LID. `NODE:PORT` selects a port other than the first [default: first host]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -l acm -d 'Queries this ACM service for paths: a socket, or the TCP port of a host. `RDMA_CM_USE_IB_ACM=1` in the environment selects the service of this machine. If the service fails, the SA is queried' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -l udp-port -d 'UDP port of RoCEv2 at both ends. Ports other than 4791 are for tests only' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -l peer-udp-port -d 'UDP port of RoCEv2 at the remote end [default: --udp-port]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -s m -l mtu -d 'Path MTU in bytes: 256, 512, 1024, 2048 or 4096 [default: the largest that the network carries]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -l busy-poll-us -d 'Microseconds to poll for events before the program sleeps' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -s w -l pcap -d 'Writes the packets of all queue pairs to a pcapng file, and reports the number of lost packets' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -l pcap-payload -d 'Maximum number of payload bytes to capture per message' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -l pcap-ring -d 'Size of each queue pair\'s ring buffer for packets, in bytes; a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -l allow-zero-checksum -d 'Accepts IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One in 2^15 corruptions of such packets is not detected'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -s v -l verbose -d 'Also prints the limits and counters of the HCA'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -l json -d 'Prints the result as one JSON object'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l listen -d 'Local address to listen at [default: first address of an active interface]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l attach -d 'Attaches the HCA to a port of the running `ibfabric sim` with this name [default name: the value of `IBSIM_SOCKNAME`, or sim]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l node -d 'Port of the simulated fabric: a node name, an IP address, a GID or a LID. `NODE:PORT` selects a port other than the first [default: first host]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l acm -d 'Queries this ACM service for paths: a socket, or the TCP port of a host. `RDMA_CM_USE_IB_ACM=1` in the environment selects the service of this machine. If the service fails, the SA is queried' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l udp-port -d 'UDP port of RoCEv2 at both ends. Ports other than 4791 are for tests only' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l peer-udp-port -d 'UDP port of RoCEv2 at the remote end [default: --udp-port]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -s m -l mtu -d 'Path MTU in bytes: 256, 512, 1024, 2048 or 4096 [default: the largest that the network carries]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l busy-poll-us -d 'Microseconds to poll for events before the program sleeps' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -s w -l pcap -d 'Writes the packets of all queue pairs to a pcapng file, and reports the number of lost packets' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l pcap-payload -d 'Maximum number of payload bytes to capture per message' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l pcap-ring -d 'Size of each queue pair\'s ring buffer for packets, in bytes; a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -s p -l port -d '`rdma_cm` port for `rdma bw`, `rdma lat` and other clients of ibfabric, unless --listen has a port' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l rping-port -d '`rdma_cm` port for rping clients' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l ucmatose-port -d '`rdma_cm` port for ucmatose clients' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -s C -l messages -d 'Number of messages of ucmatose in each direction' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -s S -l message-size -d 'Size of a message of ucmatose in bytes, or with the suffix K or M' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l perftest -d 'Also serves clients of this program of perftest 4.5-0.17 at --perftest-port. The clients need the option `-R`' -r -f -a "ib_write_bw\t'RDMA WRITE, bandwidth'
ib_read_bw\t'RDMA READ, bandwidth'
ib_send_bw\t'SEND, bandwidth'
ib_write_lat\t'RDMA WRITE, latency'
ib_read_lat\t'RDMA READ, latency'
ib_send_lat\t'SEND, latency'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l perftest-port -d '`rdma_cm` port for perftest clients' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l perftest-size -d 'Message size of the `ib_write_lat` client in bytes. The client does not report this size to the server' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l exit-after -d 'Exits after N connections have ended. The exit status is 2 if a client violated its protocol [default: never]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l allow-zero-checksum -d 'Accepts IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One in 2^15 corruptions of such packets is not detected'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l rping -d 'Also serves `rping` at --rping-port'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l ucmatose -d 'Also serves `ucmatose` at --ucmatose-port'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -s v -l verbose -d 'Prints received messages'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -l from -d 'Local address [default: first address of an active interface; a loopback address for peers on loopback]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -l attach -d 'Attaches the HCA to a port of the running `ibfabric sim` with this name [default name: the value of `IBSIM_SOCKNAME`, or sim]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -l node -d 'Port of the simulated fabric: a node name, an IP address, a GID or a LID. `NODE:PORT` selects a port other than the first [default: first host]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -l acm -d 'Queries this ACM service for paths: a socket, or the TCP port of a host. `RDMA_CM_USE_IB_ACM=1` in the environment selects the service of this machine. If the service fails, the SA is queried' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -l udp-port -d 'UDP port of RoCEv2 at both ends. Ports other than 4791 are for tests only' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -l peer-udp-port -d 'UDP port of RoCEv2 at the remote end [default: --udp-port]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -s m -l mtu -d 'Path MTU in bytes: 256, 512, 1024, 2048 or 4096 [default: the largest that the network carries]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -l busy-poll-us -d 'Microseconds to poll for events before the program sleeps' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -s w -l pcap -d 'Writes the packets of all queue pairs to a pcapng file, and reports the number of lost packets' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -l pcap-payload -d 'Maximum number of payload bytes to capture per message' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -l pcap-ring -d 'Size of each queue pair\'s ring buffer for packets, in bytes; a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -s p -l port -d '`rdma_cm` port of the server' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -s C -l count -d 'Number of pings' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -s S -l size -d 'Size of a ping in bytes, or with the suffix K' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -l allow-zero-checksum -d 'Accepts IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One in 2^15 corruptions of such packets is not detected'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -s v -l verbose -d 'Prints the received data of each ping'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -l json -d 'Prints the result as one JSON object'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -l from -d 'Local address [default: first address of an active interface; a loopback address for peers on loopback]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -l attach -d 'Attaches the HCA to a port of the running `ibfabric sim` with this name [default name: the value of `IBSIM_SOCKNAME`, or sim]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -l node -d 'Port of the simulated fabric: a node name, an IP address, a GID or a LID. `NODE:PORT` selects a port other than the first [default: first host]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -l acm -d 'Queries this ACM service for paths: a socket, or the TCP port of a host. `RDMA_CM_USE_IB_ACM=1` in the environment selects the service of this machine. If the service fails, the SA is queried' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -l udp-port -d 'UDP port of RoCEv2 at both ends. Ports other than 4791 are for tests only' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -l peer-udp-port -d 'UDP port of RoCEv2 at the remote end [default: --udp-port]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -s m -l mtu -d 'Path MTU in bytes: 256, 512, 1024, 2048 or 4096 [default: the largest that the network carries]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -l busy-poll-us -d 'Microseconds to poll for events before the program sleeps' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -s w -l pcap -d 'Writes the packets of all queue pairs to a pcapng file, and reports the number of lost packets' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -l pcap-payload -d 'Maximum number of payload bytes to capture per message' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -l pcap-ring -d 'Size of each queue pair\'s ring buffer for packets, in bytes; a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -s p -l port -d '`rdma_cm` port of the server' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -s c -l connections -d 'Number of connections. A `ucmatose` server needs the same number in its option `-c`' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -s C -l messages -d 'Number of messages of ucmatose in each direction' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -s S -l message-size -d 'Size of a message of ucmatose in bytes, or with the suffix K or M' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -l allow-zero-checksum -d 'Accepts IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One in 2^15 corruptions of such packets is not detected'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -l json -d 'Prints the result as one JSON object'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -l from -d 'Local address [default: first address of an active interface; a loopback address for peers on loopback]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -l attach -d 'Attaches the HCA to a port of the running `ibfabric sim` with this name [default name: the value of `IBSIM_SOCKNAME`, or sim]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -l node -d 'Port of the simulated fabric: a node name, an IP address, a GID or a LID. `NODE:PORT` selects a port other than the first [default: first host]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -l acm -d 'Queries this ACM service for paths: a socket, or the TCP port of a host. `RDMA_CM_USE_IB_ACM=1` in the environment selects the service of this machine. If the service fails, the SA is queried' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -l udp-port -d 'UDP port of RoCEv2 at both ends. Ports other than 4791 are for tests only' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -l peer-udp-port -d 'UDP port of RoCEv2 at the remote end [default: --udp-port]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -s m -l mtu -d 'Path MTU in bytes: 256, 512, 1024, 2048 or 4096 [default: the largest that the network carries]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -l busy-poll-us -d 'Microseconds to poll for events before the program sleeps' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -s w -l pcap -d 'Writes the packets of all queue pairs to a pcapng file, and reports the number of lost packets' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -l pcap-payload -d 'Maximum number of payload bytes to capture per message' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -l pcap-ring -d 'Size of each queue pair\'s ring buffer for packets, in bytes; a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -s p -l port -d 'TCP port on which the ends exchange their QPNs and addresses' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -s s -l size -d 'Size of a message in bytes, or with the suffix K, M or G' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -s n -l iters -d 'Number of round trips' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -s r -l rx-depth -d 'Number of receives to post at a time' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -l allow-zero-checksum -d 'Accepts IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One in 2^15 corruptions of such packets is not detected'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -s c -l chk -d 'Verifies received data, like `ibv_rc_pingpong -c`. Both ends need this option'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -l json -d 'Prints the result as one JSON object'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l from -d 'Local address [default: first address of an active interface; a loopback address for peers on loopback]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l attach -d 'Attaches the HCA to a port of the running `ibfabric sim` with this name [default name: the value of `IBSIM_SOCKNAME`, or sim]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l node -d 'Port of the simulated fabric: a node name, an IP address, a GID or a LID. `NODE:PORT` selects a port other than the first [default: first host]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l acm -d 'Queries this ACM service for paths: a socket, or the TCP port of a host. `RDMA_CM_USE_IB_ACM=1` in the environment selects the service of this machine. If the service fails, the SA is queried' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l udp-port -d 'UDP port of RoCEv2 at both ends. Ports other than 4791 are for tests only' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l peer-udp-port -d 'UDP port of RoCEv2 at the remote end [default: --udp-port]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -s m -l mtu -d 'Path MTU in bytes: 256, 512, 1024, 2048 or 4096 [default: the largest that the network carries]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l busy-poll-us -d 'Microseconds to poll for events before the program sleeps' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -s w -l pcap -d 'Writes the packets of all queue pairs to a pcapng file, and reports the number of lost packets' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l pcap-payload -d 'Maximum number of payload bytes to capture per message' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l pcap-ring -d 'Size of each queue pair\'s ring buffer for packets, in bytes; a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -s p -l port -d '`rdma_cm` port of the server [default: 18516; with --perftest 18515]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l op -d 'Operation to measure' -r -f -a "send\t'SEND'
write\t'RDMA WRITE'
read\t'RDMA READ'
write-imm\t'RDMA WRITE with immediate data; not for `lat`'
fetch-add\t'Atomic Fetch and Add; not for `lat`'
compare-swap\t'Atomic Compare and Swap; not for `lat`'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -s s -l size -d 'Message size in bytes, or with the suffix K, M or G; always 8 for atomic operations [default: 65536 for `bw`, 64 for `lat`]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -s n -l iters -d 'Number of messages per queue pair' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -s t -l tx-depth -d 'Maximum number of outstanding messages per queue pair' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -s q -l qp -d 'Number of queue pairs' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l allow-zero-checksum -d 'Accepts IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One in 2^15 corruptions of such packets is not detected'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l perftest -d 'The server is a program of perftest 4.5-0.17 with `-R`, such as `ib_write_bw`. It needs the same operation, sizes and counts as this client'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l quiet -d 'Prints errors only. There is no short form, because `-q` is the number of queue pairs, as in perftest'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l json -d 'Prints the result as one JSON object'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l from -d 'Local address [default: first address of an active interface; a loopback address for peers on loopback]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l attach -d 'Attaches the HCA to a port of the running `ibfabric sim` with this name [default name: the value of `IBSIM_SOCKNAME`, or sim]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l node -d 'Port of the simulated fabric: a node name, an IP address, a GID or a LID. `NODE:PORT` selects a port other than the first [default: first host]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l acm -d 'Queries this ACM service for paths: a socket, or the TCP port of a host. `RDMA_CM_USE_IB_ACM=1` in the environment selects the service of this machine. If the service fails, the SA is queried' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l udp-port -d 'UDP port of RoCEv2 at both ends. Ports other than 4791 are for tests only' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l peer-udp-port -d 'UDP port of RoCEv2 at the remote end [default: --udp-port]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -s m -l mtu -d 'Path MTU in bytes: 256, 512, 1024, 2048 or 4096 [default: the largest that the network carries]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l busy-poll-us -d 'Microseconds to poll for events before the program sleeps' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -s w -l pcap -d 'Writes the packets of all queue pairs to a pcapng file, and reports the number of lost packets' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l pcap-payload -d 'Maximum number of payload bytes to capture per message' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l pcap-ring -d 'Size of each queue pair\'s ring buffer for packets, in bytes; a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -s p -l port -d '`rdma_cm` port of the server [default: 18516; with --perftest 18515]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l op -d 'Operation to measure' -r -f -a "send\t'SEND'
write\t'RDMA WRITE'
read\t'RDMA READ'
write-imm\t'RDMA WRITE with immediate data; not for `lat`'
fetch-add\t'Atomic Fetch and Add; not for `lat`'
compare-swap\t'Atomic Compare and Swap; not for `lat`'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -s s -l size -d 'Message size in bytes, or with the suffix K, M or G; always 8 for atomic operations [default: 65536 for `bw`, 64 for `lat`]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -s n -l iters -d 'Number of messages per queue pair' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -s t -l tx-depth -d 'Maximum number of outstanding messages per queue pair' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -s q -l qp -d 'Number of queue pairs' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l allow-zero-checksum -d 'Accepts IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One in 2^15 corruptions of such packets is not detected'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l perftest -d 'The server is a program of perftest 4.5-0.17 with `-R`, such as `ib_write_bw`. It needs the same operation, sizes and counts as this client'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l quiet -d 'Prints errors only. There is no short form, because `-q` is the number of queue pairs, as in perftest'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l json -d 'Prints the result as one JSON object'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from help" -f -a "devinfo" -d 'Prints the attributes and counters of the HCA at an address'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from help" -f -a "serve" -d 'Serves `rdma bw` and `rdma lat`, and also `rping`, `ucmatose` and the programs of perftest'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from help" -f -a "ping" -d 'Pings a server of rping'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from help" -f -a "cmatose" -d 'Exchanges messages with a server of ucmatose'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from help" -f -a "pingpong" -d 'Exchanges messages in round trips, interoperable with `ibv_rc_pingpong`'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from help" -f -a "bw" -d 'Measures bandwidth'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from help" -f -a "lat" -d 'Measures latency'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand hca" -l roce -d 'The IP address of this machine to share' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand hca" -l exit-idle -d 'Exits when no program has used the address for this number of seconds [default: never]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand hca" -l log-file -d 'Appends the messages of a daemon in the background to this file [default: messages are discarded]' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand hca" -l allow-zero-checksum -d 'Accepts IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One in 2^15 corruptions of such packets is not detected'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand hca" -s b -l background -d 'Runs in the background: exits with status 0 as soon as the daemon serves the address. If another HCA daemon serves the address already, it keeps running, and no second daemon is started'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand hca" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand hca" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand hca" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand run" -l attach -d 'Attaches the program\'s HCA to a port of the running `ibfabric sim` with this name [default name: the value of `IBSIM_SOCKNAME`, or sim]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand run" -l node -d 'Port of the simulated fabric: a node name, an IP address, a GID or a LID. `NODE:PORT` selects a port other than the first [default: first host]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand run" -l roce -d 'Gives the program an HCA that uses RoCEv2 over UDP at this IP address of this machine. Several programs can share the address through an HCA daemon (`ibfabric hca`), which is started if necessary' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand run" -l hca-log -d 'Appends the messages of an HCA daemon that this command starts to this file [default: messages are discarded]' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand run" -l device -d 'Name of the program\'s HCA, as `ibv_devices` shows it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand run" -l library -d 'Library to preload into the program [default: in the directory of `ibfabric`, or in `../lib/ibfabric` relative to it]' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand run" -l exclusive -d 'Gives the program the address for itself, without an HCA daemon'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand run" -l allow-zero-checksum -d 'Accepts IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One in 2^15 corruptions of such packets is not detected. Implies --exclusive'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand run" -l env -d 'Prints the environment as shell commands instead of running a program'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand run" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand run" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and not __fish_seen_subcommand_from serve bench ctl mount help" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and not __fish_seen_subcommand_from serve bench ctl mount help" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and not __fish_seen_subcommand_from serve bench ctl mount help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and not __fish_seen_subcommand_from serve bench ctl mount help" -f -a "serve" -d 'Serves block devices to the RNBD clients of ibfabric and of Linux kernels'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and not __fish_seen_subcommand_from serve bench ctl mount help" -f -a "bench" -d 'Benchmarks and verifies a device of an RNBD server, which is ibfabric or a Linux kernel'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and not __fish_seen_subcommand_from serve bench ctl mount help" -f -a "ctl" -d 'Prints statistics of a running RTRS server or client, and changes its paths'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and not __fish_seen_subcommand_from serve bench ctl mount help" -f -a "mount" -d 'Mounts the control files of `rtrs ctl` as a file system, like the kernel\'s files in /sys/devices/virtual. Exits when the file system is unmounted, or on a signal'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and not __fish_seen_subcommand_from serve bench ctl mount help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l listen -d 'Local address and `rdma_cm` port to listen at, preferably on loopback or on a private network. May be repeated' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l export -d 'Device to export: a file, a block device, or memory of the size SIZE, such as mem:64M. May be repeated' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -s p -l port -d '`rdma_cm` port for --attach, and for each --listen without a port' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l queue-depth -d 'Queue depth of a session: maximum number of outstanding requests' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l max-io-size -d 'Maximum data size of a request, in bytes. Linux clients require that the sum of this size and the header size is a power of two. The default meets this condition' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l allow -d 'Network of accepted clients, as ADDR/BITS. May be repeated [default: all clients]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l control-socket -d 'Control socket to which `rtrs ctl` and `rtrs mount` connect, to print and change sessions and paths. Only the user of this program can connect' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l metrics -d 'Serves metrics for Prometheus at this TCP address. There is no authentication' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -s w -l pcap -d 'Writes the packets of all queue pairs to a pcapng file, and reports the number of lost packets' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l pcap-payload -d 'Maximum number of payload bytes to capture per message' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l pcap-ring -d 'Size of each queue pair\'s ring buffer for packets, in bytes; a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l attach -d 'Attaches to ports of the running `ibfabric sim` with this name [default name: the value of `IBSIM_SOCKNAME`, or sim]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l node -d 'Port of the simulated fabric: a node name, an IP address, a GID or a LID. `NODE:PORT` selects a port other than the first. May be repeated [default: first host]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l acm -d 'Queries this ACM service for names and paths: a socket, or the TCP port of a host. `RDMA_CM_USE_IB_ACM=1` in the environment selects the service of this machine. If the service fails, the SA is queried' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l udp-port -d 'Local UDP port of RoCEv2. Ports other than 4791 are for tests only' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l peer-udp-port -d 'UDP port of RoCEv2 at the remote end [default: --udp-port]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -s m -l mtu -d 'Path MTU in bytes: 256, 512, 1024, 2048 or 4096 [default: the largest that the network carries]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l busy-poll-us -d 'Microseconds to poll for events before the program sleeps' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l key-file -d 'File with a shared key of at least 16 bytes, which both ends need. Linux does not support keys' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l no-always-invalidate -d 'Does not invalidate the rkeys of chunks after each request. This is faster, but a client can change written data while the server processes it'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l allow-zero-checksum -d 'Accepts IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One in 2^15 corruptions of such packets is not detected'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l path -d 'Path to the server: the server\'s IP address, optionally preceded by a local address and @. May be repeated. On a simulated fabric, an address is an IP address (ip:ADDR), a GID (gid:GID), NODE, NODE:PORT, a LID, or a name that --acm resolves. Paths without a local address use the ports of --node in turn' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l device -d 'Name of the device at the server' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -s p -l port -d '`rdma_cm` port of the server' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l session -d 'Name of the session [default: made from the host name and the process ID]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l policy -d 'Multipath policy: selects the path of a request' -r -f -a "round-robin\t'The paths in turn'
min-inflight\t'The path with the fewest requests in flight'
min-latency\t'The path with the shortest round trip of its last heartbeat'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l connections -d 'Number of connections per path [default: number of processors + 1]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l connect-timeout -d 'Time limit in seconds for opening the device at startup' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l reconnect-delay -d 'Delay in milliseconds before a failed path is reconnected' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l control-socket -d 'Control socket to which `rtrs ctl` and `rtrs mount` connect, to print and change sessions and paths. Only the user of this program can connect' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l metrics -d 'Serves metrics for Prometheus at this TCP address. There is no authentication' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -s w -l pcap -d 'Writes the packets of all queue pairs to a pcapng file, and reports the number of lost packets' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l pcap-payload -d 'Maximum number of payload bytes to capture per message' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l pcap-ring -d 'Size of each queue pair\'s ring buffer for packets, in bytes; a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l attach -d 'Attaches to ports of the running `ibfabric sim` with this name [default name: the value of `IBSIM_SOCKNAME`, or sim]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l node -d 'Port of the simulated fabric: a node name, an IP address, a GID or a LID. `NODE:PORT` selects a port other than the first. May be repeated [default: first host]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l acm -d 'Queries this ACM service for names and paths: a socket, or the TCP port of a host. `RDMA_CM_USE_IB_ACM=1` in the environment selects the service of this machine. If the service fails, the SA is queried' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l udp-port -d 'Local UDP port of RoCEv2. Ports other than 4791 are for tests only' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l peer-udp-port -d 'UDP port of RoCEv2 at the remote end [default: --udp-port]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -s m -l mtu -d 'Path MTU in bytes: 256, 512, 1024, 2048 or 4096 [default: the largest that the network carries]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l busy-poll-us -d 'Microseconds to poll for events before the program sleeps' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l key-file -d 'File with a shared key of at least 16 bytes, which both ends need. Linux does not support keys' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l rw -d 'Access pattern' -r -f -a "read\t'Sequential reads'
write\t'Sequential writes'
randread\t'Random reads'
randwrite\t'Random writes'
randrw\t'Random reads and writes, half of each'
trim\t'Sequential discards'
randtrim\t'Random discards'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l bs -d 'Request size, in bytes or with the suffix K, M or G. Requests that are larger than the server accepts are split' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l bsrange -d 'Random request sizes from MIN to MAX. Sizes and offsets are multiples of MIN' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l fsync -d 'Flushes after every N writes; 0 for never' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l trim -d 'Discards a block after every N writes; 0 for never' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l iodepth -d 'Number of outstanding requests per job' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l numjobs -d 'Number of jobs, all in one session. Each job has its own part of the device for sequential access, and its own random offsets' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l runtime -d 'Run time in seconds' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l io-size -d 'Maximum number of bytes to read or write, with or without the suffix K, M or G [default: limited only by --runtime]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l size -d 'Size of the used part of the device, from its start, in bytes or with the suffix K, M or G [default: the whole device]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l start-delay -d 'Idle time in seconds before the benchmark starts' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l seed -d 'Seed of the random offsets' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l need-invalidation -d 'Requests the server to invalidate the rkey of each read, instead of invalidating it locally'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l trust-cache -d 'Trusts a Linux server to keep unflushed writes when all paths are lost. Without this option, the first flush after such a loss fails, because the server may have lost the writes. Servers of ibfabric report lost writes themselves'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l allow-zero-checksum -d 'Accepts IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One in 2^15 corruptions of such packets is not detected'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l verify -d 'Writes blocks that contain their offset and a write count, and verifies blocks that are read'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l json -d 'Prints the result as one JSON object'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from ctl" -l socket -d 'Control socket of the program: the value of --control-socket of `rtrs serve`, `rtrs bench` or `nbd`' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from ctl" -l json -d 'Prints the result as one JSON object'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from ctl" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from ctl" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from ctl" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from ctl" -f -a "get" -d 'Prints a control file'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from ctl" -f -a "set" -d 'Writes a value to a control file, and waits until the change is complete'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from ctl" -f -a "list" -d 'Lists a directory of control files. Names of directories end with a slash'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from ctl" -f -a "metrics" -d 'Prints the metrics that --metrics serves'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from ctl" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from mount" -l socket -d 'Control socket of a program. May be repeated: the mount shows the sessions of all these programs' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from mount" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from mount" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from mount" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from help" -f -a "serve" -d 'Serves block devices to the RNBD clients of ibfabric and of Linux kernels'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from help" -f -a "bench" -d 'Benchmarks and verifies a device of an RNBD server, which is ibfabric or a Linux kernel'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from help" -f -a "ctl" -d 'Prints statistics of a running RTRS server or client, and changes its paths'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from help" -f -a "mount" -d 'Mounts the control files of `rtrs ctl` as a file system, like the kernel\'s files in /sys/devices/virtual. Exits when the file system is unmounted, or on a signal'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l path -d 'Path to the server: the server\'s IP address, optionally preceded by a local address and @. May be repeated. On a simulated fabric, an address is an IP address (ip:ADDR), a GID (gid:GID), NODE, NODE:PORT, a LID, or a name that --acm resolves. Paths without a local address use the ports of --node in turn' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l device -d 'Name of the device at the server' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -s p -l port -d '`rdma_cm` port of the server' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l session -d 'Name of the session [default: made from the host name and the process ID]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l policy -d 'Multipath policy: selects the path of a request' -r -f -a "round-robin\t'The paths in turn'
min-inflight\t'The path with the fewest requests in flight'
min-latency\t'The path with the shortest round trip of its last heartbeat'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l connections -d 'Number of connections per path [default: number of processors + 1]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l connect-timeout -d 'Time limit in seconds for opening the device at startup' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l reconnect-delay -d 'Delay in milliseconds before a failed path is reconnected' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l control-socket -d 'Control socket to which `rtrs ctl` and `rtrs mount` connect, to print and change sessions and paths. Only the user of this program can connect' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l metrics -d 'Serves metrics for Prometheus at this TCP address. There is no authentication' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -s w -l pcap -d 'Writes the packets of all queue pairs to a pcapng file, and reports the number of lost packets' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l pcap-payload -d 'Maximum number of payload bytes to capture per message' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l pcap-ring -d 'Size of each queue pair\'s ring buffer for packets, in bytes; a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l attach -d 'Attaches to ports of the running `ibfabric sim` with this name [default name: the value of `IBSIM_SOCKNAME`, or sim]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l node -d 'Port of the simulated fabric: a node name, an IP address, a GID or a LID. `NODE:PORT` selects a port other than the first. May be repeated [default: first host]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l acm -d 'Queries this ACM service for names and paths: a socket, or the TCP port of a host. `RDMA_CM_USE_IB_ACM=1` in the environment selects the service of this machine. If the service fails, the SA is queried' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l udp-port -d 'Local UDP port of RoCEv2. Ports other than 4791 are for tests only' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l peer-udp-port -d 'UDP port of RoCEv2 at the remote end [default: --udp-port]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -s m -l mtu -d 'Path MTU in bytes: 256, 512, 1024, 2048 or 4096 [default: the largest that the network carries]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l busy-poll-us -d 'Microseconds to poll for events before the program sleeps' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l key-file -d 'File with a shared key of at least 16 bytes, which both ends need. Linux does not support keys' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l socket -d 'Unix socket for NBD clients' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l listen -d 'TCP address for NBD clients, on loopback [default port: 10809]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l queue-depth -d 'Maximum number of outstanding requests of the device' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l need-invalidation -d 'Requests the server to invalidate the rkey of each read, instead of invalidating it locally'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l trust-cache -d 'Trusts a Linux server to keep unflushed writes when all paths are lost. Without this option, the first flush after such a loss fails, because the server may have lost the writes. Servers of ibfabric report lost writes themselves'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l allow-zero-checksum -d 'Accepts IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One in 2^15 corruptions of such packets is not detected'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l read-only -d 'Exports the device read-only'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -l attach -d 'Attaches to ports of the running `ibfabric sim` with this name. May be repeated [default name: the value of `IBSIM_SOCKNAME`, or sim]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -l node -d 'Node of the simulated fabric that the preceding --attach selects, or the only --attach. `:PORT` selects a port other than the first. May be repeated [default: first host]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -l umad -d 'Port of a local HCA through umad, such as `mlx5_0:1`. Without a port, the service uses all ports of the HCA. Without a name, it uses all InfiniBand ports of the machine, as ibacm does. May be repeated. umad provides no queue pairs. So the service resolves addresses from files only, and queries the SA for paths' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -l socket -d 'Unix socket for clients. If neither --socket nor --listen is set, `server_mode` of the options file selects the socket. It is /run/ibacm-unix.sock, or a TCP port whose number is in /run/ibacm.port' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -l listen -d 'TCP address for clients [default port: 6125]. If the address is not a loopback address, other machines can connect, too. There is no authentication' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -l busy-poll-us -d 'Microseconds to poll for another request before the service sleeps. Clients whose requests arrive within this time do not wait for a wakeup' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -l config -d 'Directory of the configuration files: `ibacm_opts.cfg` and `ibacm_addr.cfg`, or `acm_opts.cfg` and `acm_addr.cfg`' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -s O -l options -d 'Options file; overrides the options file in the directory of --config' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -s A -l addresses -d 'File of local names and addresses; overrides the address file in the directory of --config' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -l log -d 'Log file, or `stdout` or `stderr` [default: `log_file` of the options file, or /var/log/ibacm.log. With --socket, only errors are logged by default, on standard error]' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -l metrics -d 'Serves metrics for Prometheus at this TCP address. There is no authentication' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -l max-clients -d 'Maximum number of concurrent clients' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -l systemd -d 'Uses the sockets that systemd passes (socket activation)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -f -a "ctl" -d 'Queries a running service, reloads its files or flushes its cache'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from ctl" -l socket -d 'Socket of the service: the value of `acm --socket`' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from ctl" -l json -d 'Prints the result as one JSON object'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from ctl" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from ctl" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from ctl" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from ctl" -f -a "status" -d 'Prints the endpoints with their multicast groups and counters, and the counters of the service'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from ctl" -f -a "cache" -d 'Prints the cached names, addresses and paths'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from ctl" -f -a "flush" -d 'Flushes the cache, except for entries that come from files'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from ctl" -f -a "reload" -d 'Reads the configuration files of the service again, as SIGHUP does'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from ctl" -f -a "metrics" -d 'Prints the metrics that --metrics serves'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from ctl" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from help" -f -a "ctl" -d 'Queries a running service, reloads its files or flushes its cache'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s e -l endpoints -d 'Lists all endpoints of the service, or only endpoint N, counted from 1' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s f -l address-format -d 'Type of the addresses of -s and -d' -r -f -a "i\t'An IP address'
n\t'A name'
l\t'A LID'
g\t'A GID'
u\t'An IP address, a name that the system resolves to an IP address, or else a LID'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s s -l source -d 'Source address [default: chosen by the service]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s d -l destination -d 'Destination address; `node[1-3,7]` stands for four names' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s P -l perf -d 'Prints the counters of the service; `col` prints one counter per line. The value N prints the counters of endpoint N instead. `all` prints those of all endpoints, and `s` those of the endpoint with the address of -s' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s S -l service -d 'Service to query: the path of a socket, which contains a `/`, or a host name. `node[1-3]` stands for three hosts [default: the service of this machine]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s C -l repetitions -d 'Number of times that each path is resolved' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s A -l addresses -d 'Writes the names and addresses of local ports, or of a simulated port, to a file [default: `ibacm_addr.cfg`]' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s O -l options -d 'Writes an options file [default: `ibacm_opts.cfg`]. If the SA responds, the options fit the size of the cluster' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s D -l directory -d 'Directory of the files of -A and -O' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s I -l device -l umad -d 'HCA, such as `mthca0` or `mlx5_0` [default: first HCA with an active link]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s p -l port -d 'Port number, at the HCA of -I' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -l attach -d 'Attaches to the running simulator with this name: an ibsim or an `ibfabric sim` [default name: from the environment variables that libumad2sim reads]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -l node -d 'Node of the simulated fabric to attach to [default: with --attach the value of `SIM_HOST`, or the first node]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s v -l verify -d 'Verifies each path. The service sends the path to the SA, and the SA has to return the same path'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s c -l cached -d 'Resolves addresses only from the cache of the service'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s V -l verbose -d 'Prints more details'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -l json -d 'Prints the result as one JSON object'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -s R -l engine -d 'Routing engines in order of preference. auto selects minhop. If the routes of minhop have a credit loop, auto also tries updn and lash' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -l seed -d 'Seed of all random choices' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -l script -d 'File of console commands. Each line is `at TIME COMMAND`, with the time since the start of the fabric' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -l name -d 'Name of the simulator. Clients specify this name in `IBSIM_SOCKNAME` or with `--attach`' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -l size -d 'Size of the device disk0, in bytes or with the suffix K, M, G or T' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -l nbd -d 'NBD socket of disk0 [default: `ibfabric-NAME.nbd` in the directory `XDG_RUNTIME_DIR`, or else in the directory for temporary files]' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -l http -d 'Address of the web page: 127.0.0.1 or `::1` [default: 127.0.0.1 and any free port]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -s w -l pcap -d 'Writes the packets of all queue pairs to a pcapng file, and reports the number of lost packets' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -l pcap-payload -d 'Maximum number of payload bytes to capture per message' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -l pcap-ring -d 'Size of each queue pair\'s ring buffer for packets, in bytes; a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -l no-http -d 'Disables the web page'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand selftest" -s R -l engine -d 'Routing engines in order of preference. auto selects minhop. If the routes of minhop have a credit loop, auto also tries updn and lash' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand selftest" -l seed -d 'Seed of all random choices' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand selftest" -l script -d 'File of console commands. Each line is `at TIME COMMAND`, with the time since the start of the fabric' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand selftest" -l name -d 'Name of the simulator. Clients specify this name in `IBSIM_SOCKNAME` or with `--attach`' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand selftest" -l size -d 'Size of the device disk0, in bytes or with the suffix K, M, G or T' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand selftest" -s w -l pcap -d 'Writes the captured packets of disk0\'s queue pairs to this pcapng file' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand selftest" -l pcap-payload -d 'Maximum number of payload bytes to capture per message, 0 to 4096' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand selftest" -l json -d 'Prints the results of all checks as one JSON object'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand selftest" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand selftest" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand selftest" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and not __fish_seen_subcommand_from list start change stop read correlate help" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and not __fish_seen_subcommand_from list start change stop read correlate help" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and not __fish_seen_subcommand_from list start change stop read correlate help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and not __fish_seen_subcommand_from list start change stop read correlate help" -f -a "list" -d 'Lists the programs of this user that can be captured, with their queue pairs and captures'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and not __fish_seen_subcommand_from list start change stop read correlate help" -f -a "start" -d 'Starts to capture the present and future queue pairs of a running program. A low-priority thread of the program writes the file. The capture ends at `capture stop`, at a limit, or when the program exits. Packets that the thread cannot write in time are overwritten, counted and reported'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and not __fish_seen_subcommand_from list start change stop read correlate help" -f -a "change" -d 'Changes the filters of a running capture'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and not __fish_seen_subcommand_from list start change stop read correlate help" -f -a "stop" -d 'Stops captures, and reports what their files contain'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and not __fish_seen_subcommand_from list start change stop read correlate help" -f -a "read" -d 'Prints the packets of a capture file of any program'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and not __fish_seen_subcommand_from list start change stop read correlate help" -f -a "correlate" -d 'Matches the packets that both ends captured, and reports the parts of message latency'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and not __fish_seen_subcommand_from list start change stop read correlate help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from list" -l pid -d 'Process ID; required if several programs can be captured' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from list" -l device -d 'Address of an HCA of the process [default: all HCAs]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from list" -l messages -d 'Prints the last messages of this queue pair. Programs record these messages even if no capture runs. May be repeated' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from list" -l json -d 'Prints the result as one JSON object'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from list" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l pid -d 'Process ID; required if several programs can be captured' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l device -d 'Address of an HCA of the process [default: all HCAs]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l qpn -d 'Captures only this queue pair. Queue pair 1 carries GMPs. May be repeated [default: all]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l peer -d 'Captures only queue pairs that are connected to this IP address, GID or LID, and datagrams from and to this address. May be repeated' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l service -d 'Captures only queue pairs that are connected to this `rdma_cm` port. A number from 0x10000 on is a service ID. May be repeated' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l direction -d 'Captures only sent or only received packets' -r -f -a "send\t'From the HCA'
receive\t'To the HCA'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l opcode -d 'Captures only packets with this opcode: its code, or words of its name such as `rdma write`. May be repeated' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l payload -d 'Maximum number of payload bytes to capture per message. MADs are captured whole' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l buffer-size -d 'Size of each queue pair\'s ring buffer for packets, in bytes; a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l trigger -d 'Waits for an event: `error` (the queue pair fails), `retransmission`, or `drop` (the HCA drops a received packet). Then writes the packets before the event and N packets after it, and stops the capture of this queue pair' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l keep -d 'Number of packets before the event of --trigger that are written for each queue pair [default: all in the ring buffer]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -s w -l pcap -d 'File to write, in pcapng format; - for standard output, such as a pipe to tshark. With -, the command runs until the capture ends' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -s a -l autostop -d 'Stops the capture after S seconds (`duration:S`), after N packets (`packets:N`), or at a file size of KB times 1000 bytes (`filesize:KB`). May be repeated' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -s b -l ring-buffer -d 'Starts a new file after S seconds (`duration:S`), at a file size of KB times 1000 bytes (`filesize:KB`), or after N packets (`packets:N`). Each file has a number and the time in its name. `files:N` keeps only the last N files. May be repeated' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l json -d 'Prints the result as one JSON object'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from change" -l pid -d 'Process ID; required if several programs can be captured' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from change" -l device -d 'Address of an HCA of the process [default: all HCAs]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from change" -l direction -d 'Captures only sent packets, only received packets, or both' -r -f -a "send\t'From the HCA'
receive\t'To the HCA'
both\t'Both directions'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from change" -l opcode -d 'Captures only packets with this opcode: its code, or words of its name; `all` for all packets. May be repeated' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from change" -l payload -d 'Maximum number of payload bytes to capture per message' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from change" -l json -d 'Prints the result as one JSON object'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from change" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from change" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from change" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from stop" -l pid -d 'Process ID; required if several programs can be captured' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from stop" -l device -d 'Address of an HCA of the process [default: all HCAs]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from stop" -l json -d 'Prints one JSON object per capture, each on a line of its own'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from stop" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from stop" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from stop" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from read" -l qpn -d 'Prints only packets from or to this queue pair number (QPN). May be repeated' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from read" -l opcode -d 'Prints only packets with this opcode: its code, or words of its name such as `rdma write`. May be repeated' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from read" -l class -d 'Prints only MADs of this management class: its number, or a name such as sm, sa, pm, cm or acm' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from read" -l direction -d 'Prints only sent or only received packets, if the file records the direction' -r -f -a "send\t'From the HCA'
receive\t'To the HCA'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from read" -l udp-port -d 'UDP port of RoCEv2 in addition to 4791. May be repeated' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from read" -l count -d 'Stops after N printed packets' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from read" -l json -d 'Prints one JSON object per packet, each on a line of its own'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from read" -s v -l verbose -d 'Prints all header fields, on several lines'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from read" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from read" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from correlate" -l qpn -d 'Considers only connections of the queue pair with this number. May be repeated' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from correlate" -l from -d 'Measures the time from each event of this kind, such as `qp 0x11 receive SEND`, to the next event of --to. The direction may be followed by SEND, WRITE, READ, ATOMIC, response, ACK, NAK or the name of a packet such as `SEND middle`. Without such a word, the event is any packet in this direction. A leading `file 1` or `file 2` distinguishes queue pairs with equal numbers' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from correlate" -l to -d 'Kind of event at which the measured time ends' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from correlate" -l html -d 'Writes an HTML page with a timeline, histograms and tables' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from correlate" -l udp-port -d 'UDP port of RoCEv2 in addition to 4791. May be repeated' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from correlate" -l messages -d 'Lists all messages. Takes 136 bytes of memory per message'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from correlate" -l json -d 'Prints the result as one JSON object'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from correlate" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from correlate" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from correlate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from help" -f -a "list" -d 'Lists the programs of this user that can be captured, with their queue pairs and captures'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from help" -f -a "start" -d 'Starts to capture the present and future queue pairs of a running program. A low-priority thread of the program writes the file. The capture ends at `capture stop`, at a limit, or when the program exits. Packets that the thread cannot write in time are overwritten, counted and reported'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from help" -f -a "change" -d 'Changes the filters of a running capture'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from help" -f -a "stop" -d 'Stops captures, and reports what their files contain'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from help" -f -a "read" -d 'Prints the packets of a capture file of any program'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from help" -f -a "correlate" -d 'Matches the packets that both ends captured, and reports the parts of message latency'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand completions" -s q -l quiet -d 'Prints errors only, without results, notes or progress. The exit status reports the result'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand completions" -s v -l verbose -d 'Prints more details. May be repeated. After the command\'s own levels of detail, one more repetition prints its run time and peak memory'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma hca run rtrs nbd acm acme up selftest capture completions help" -f -a "gen" -d 'Generates a fabric file'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma hca run rtrs nbd acm acme up selftest capture completions help" -f -a "route" -d 'Computes, checks and dumps the forwarding tables of a fabric'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma hca run rtrs nbd acm acme up selftest capture completions help" -f -a "check" -d 'Checks forwarding tables: unreachable LIDs, forwarding loops, credit loops, link load'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma hca run rtrs nbd acm acme up selftest capture completions help" -f -a "sim" -d 'Simulates a fabric that clients of ibsim attach to'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma hca run rtrs nbd acm acme up selftest capture completions help" -f -a "sm" -d 'Runs a subnet manager (SM) with subnet administration (SA)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma hca run rtrs nbd acm acme up selftest capture completions help" -f -a "tracer" -d 'Traces the paths of packets hop by hop, and validates them against the forwarding tables'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma hca run rtrs nbd acm acme up selftest capture completions help" -f -a "agent" -d 'Responds to requests of ibtracer and ibping at a port'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma hca run rtrs nbd acm acme up selftest capture completions help" -f -a "rdma" -d 'Runs RDMA over RoCEv2 with a software HCA: server, ping tests and benchmarks'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma hca run rtrs nbd acm acme up selftest capture completions help" -f -a "hca" -d 'Shares an IP address of this machine among programs, each of which has an own HCA over RoCEv2'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma hca run rtrs nbd acm acme up selftest capture completions help" -f -a "run" -d 'Runs an unmodified verbs program on a simulated fabric or over RoCEv2'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma hca run rtrs nbd acm acme up selftest capture completions help" -f -a "rtrs" -d 'Serves, benchmarks and verifies block devices over RTRS'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma hca run rtrs nbd acm acme up selftest capture completions help" -f -a "nbd" -d 'Exports a block device of an RTRS server as an NBD export on this machine'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma hca run rtrs nbd acm acme up selftest capture completions help" -f -a "acm" -d 'Resolves names, addresses and paths for local programs, in place of ibacm'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma hca run rtrs nbd acm acme up selftest capture completions help" -f -a "acme" -d 'Queries ACM services for paths, endpoints and counters, and writes their configuration files, in place of `ib_acme`'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma hca run rtrs nbd acm acme up selftest capture completions help" -f -a "up" -d 'Runs the whole stack on a simulated fabric until it is stopped: SM, ACM service, agents, a block device and a web page'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma hca run rtrs nbd acm acme up selftest capture completions help" -f -a "selftest" -d 'Tests the whole stack on a simulated fabric: routes, names, paths, a block device over two paths whose links are cut, and a capture of its packets'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma hca run rtrs nbd acm acme up selftest capture completions help" -f -a "capture" -d 'Captures the packets of queue pairs, and reads and compares capture files'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma hca run rtrs nbd acm acme up selftest capture completions help" -f -a "completions" -d 'Prints the completion script of a shell'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma hca run rtrs nbd acm acme up selftest capture completions help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from sim" -f -a "ctl" -d 'Sends commands to a running simulator'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from sm" -f -a "ctl" -d 'Queries a running SM, or requests a sweep'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from rdma" -f -a "devinfo" -d 'Prints the attributes and counters of the HCA at an address'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from rdma" -f -a "serve" -d 'Serves `rdma bw` and `rdma lat`, and also `rping`, `ucmatose` and the programs of perftest'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from rdma" -f -a "ping" -d 'Pings a server of rping'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from rdma" -f -a "cmatose" -d 'Exchanges messages with a server of ucmatose'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from rdma" -f -a "pingpong" -d 'Exchanges messages in round trips, interoperable with `ibv_rc_pingpong`'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from rdma" -f -a "bw" -d 'Measures bandwidth'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from rdma" -f -a "lat" -d 'Measures latency'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from rtrs" -f -a "serve" -d 'Serves block devices to the RNBD clients of ibfabric and of Linux kernels'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from rtrs" -f -a "bench" -d 'Benchmarks and verifies a device of an RNBD server, which is ibfabric or a Linux kernel'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from rtrs" -f -a "ctl" -d 'Prints statistics of a running RTRS server or client, and changes its paths'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from rtrs" -f -a "mount" -d 'Mounts the control files of `rtrs ctl` as a file system, like the kernel\'s files in /sys/devices/virtual. Exits when the file system is unmounted, or on a signal'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from acm" -f -a "ctl" -d 'Queries a running service, reloads its files or flushes its cache'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from capture" -f -a "list" -d 'Lists the programs of this user that can be captured, with their queue pairs and captures'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from capture" -f -a "start" -d 'Starts to capture the present and future queue pairs of a running program. A low-priority thread of the program writes the file. The capture ends at `capture stop`, at a limit, or when the program exits. Packets that the thread cannot write in time are overwritten, counted and reported'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from capture" -f -a "change" -d 'Changes the filters of a running capture'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from capture" -f -a "stop" -d 'Stops captures, and reports what their files contain'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from capture" -f -a "read" -d 'Prints the packets of a capture file of any program'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from capture" -f -a "correlate" -d 'Matches the packets that both ends captured, and reports the parts of message latency'
