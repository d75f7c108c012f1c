# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_ibfabric_global_optspecs
    string join \n h/help V/version
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

complete -c ibfabric -n "__fish_ibfabric_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -s V -l version -d 'Print version'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "gen" -d 'Writes a fabric file'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "route" -d 'Computes, checks and dumps the forwarding tables of a fabric'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "check" -d 'Checks anybody\'s forwarding tables'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "sim" -d 'Simulates a fabric that ibsim\'s clients attach to'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "sm" -d 'Manages a subnet'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "tracer" -d 'Validates the ways that packets take, hop by hop'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "agent" -d 'Answers ibtracer and ibping at a port'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "rdma" -d 'RDMA from this machine without an adapter: RoCEv2 over UDP'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "run" -d 'Runs an unmodified verbs program on a simulated fabric or over RoCEv2'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "rtrs" -d 'Block devices over RTRS: served, measured and verified'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "nbd" -d 'Offers a device of a server to programs of this machine, over NBD'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "acm" -d 'Resolves names, addresses and routes for the programs of a machine, as ibacm does'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "acme" -d 'Asks services of IB ACM for paths, endpoints and counters, and writes their files, as `ib_acme` does'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "up" -d 'Everything at once on a simulated fabric: manager, names, agents, a block device and its trace'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "capture" -d 'Captures of queue pairs: started, read and compared'
complete -c ibfabric -n "__fish_ibfabric_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand gen" -s o -l output -d 'The file to write; standard output without it, or for -' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand gen" -l speed -d 'The speed of every link: SDR DDR QDR FDR10 FDR EDR HDR NDR XDR' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand gen" -l width -d 'The width of every link: 1x 2x 4x 8x 12x' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand gen" -l format -d 'The format to write. ibsim 0.10 itself knows speeds up to HDR' -r -f -a "ibsim\t'A net file that ibsim reads'
ibnetdiscover\t'What ibnetdiscover prints'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand gen" -l drop-links -d 'The fraction of the links between switches to leave out, 0 to 1' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand gen" -l drop-switches -d 'The fraction of the switches to leave out, 0 to 1, and with them the hosts that have no link left' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand gen" -l seed -d 'The seed of everything random' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand gen" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s g -l sm-port -l guid -d 'The GUID of the port that the subnet manager sits on; the first linked port of the file\'s first channel adapter without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s l -l lmc -d '2^N LIDs for every channel adapter port; the most that the fabric file records without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l guid2lid -d 'LIDs by port GUID, as OpenSM keeps them' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l node-name-map -d 'Names for node GUIDs, in place of the nodes\' own descriptions' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l threads -d 'The number of threads; all processors without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l scope -d 'Whose packets the search for credit loops looks at' -r -f -a "hosts\t'Those from host to host'
management\t'Also those between hosts and switches\' own ports'
everything\t'Also those from switch to switch'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l sl2vl -d 'The lanes of service levels, as OpenSM\'s opensm-sl2vl.dump has them; SL n on VL n without it' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l seed -d 'The seed of the random bisections' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l format -d 'How the result is printed' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s R -l engine -l routing_engine -d 'The routing engines, in order of preference: minhop updn ftree lash dor file. minhop follows unless no_fallback is among them. auto: minhop, and in the subnet manager updn and lash if its routes have a credit loop [default: auto]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s a -l root-guids -l root_guid_file -d 'GUIDs of root switches, or of channel adapters on them (updn, ftree)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s u -l cn-guids -l cn_guid_file -d 'Port GUIDs of compute nodes (ftree)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s G -l io-guids -l io_guid_file -d 'Port GUIDs of I/O nodes (ftree)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s H -l max-reverse-hops -d 'How many hops a path to an I/O node may lead back up (ftree); none without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s i -l ignore-guids -d 'Ports that link load equalisation does not count: a switch GUID and a port per line, or a port GUID, which stands for the switch port that leads to it' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s X -l guid-routing-order -d 'Port GUIDs to be routed first, in order' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s O -l port-search-ordering -d 'Ports to be tried first, in order: a switch GUID and its ports per line' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s w -l hop-weights -d 'Weights of links in hops: a switch GUID, a port and a weight per line' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s m -l ids-guids -d 'Identifiers that break ties of rank: a switch GUID and a number per line (updn)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l scatter-ports -d 'Draws among least used ports by this seed; 0, and without it, draws nothing' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l lash-start-vl -d 'The lowest virtual lane to use; 0 without it (lash)' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l virtual-lanes -d 'The number of data virtual lanes of every link; 8 without it (lash)' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s U -l lfts -l lfts_file -d 'Forwarding tables to load (file)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s M -l lid-matrix -l lid_matrix_file -d 'Lid matrix to load (file)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l keep-lfts -d 'Forwarding tables whose entries are kept wherever they still are least-hop ports (minhop, updn, dor)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l dump-dir -l dump_files_dir -d 'Writes OpenSM\'s dump files into this directory' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l report -d 'Writes a page with the fabric, the loads and the hops drawn' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l lmc-esp0 -d 'Gives enhanced switch ports 0 the LMC as well'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s r -l reassign-lids -d 'Assigns all LIDs anew, whatever the fabric file and --guid2lid say'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l strict -d 'Demands that every LID can be reached from every switch: also from switches without hosts, and also switches\' own LIDs, which up/down routing may leave out'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l metrics -d 'Adds effective bisection bandwidth and the contention of the shift pattern'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l quasi-ftree-indexing -d 'Starts numbering the tree at its first root (ftree)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s z -l connect-roots -d 'Lets root switches reach each other (updn, ftree)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l port-profile-switch-nodes -d 'Counts routes to switches in link load equalisation'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l port-shifting -d 'Shifts the search for the least used port from LID to LID'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -l guid-routing-order-no-scatter -d 'Does not draw for the ports of --guid-routing-order'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand route" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -s g -l sm-port -l guid -d 'The GUID of the port that the subnet manager sits on; the first linked port of the file\'s first channel adapter without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -s l -l lmc -d '2^N LIDs for every channel adapter port; the most that the fabric file records without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -l guid2lid -d 'LIDs by port GUID, as OpenSM keeps them' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -l node-name-map -d 'Names for node GUIDs, in place of the nodes\' own descriptions' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -l threads -d 'The number of threads; all processors without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -l scope -d 'Whose packets the search for credit loops looks at' -r -f -a "hosts\t'Those from host to host'
management\t'Also those between hosts and switches\' own ports'
everything\t'Also those from switch to switch'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -l sl2vl -d 'The lanes of service levels, as OpenSM\'s opensm-sl2vl.dump has them; SL n on VL n without it' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -l seed -d 'The seed of the random bisections' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -l format -d 'How the result is printed' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -s U -l lfts -l lfts_file -d 'The forwarding tables: OpenSM\'s opensm-lfts.dump, or what ibroute prints' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -l levels -d 'The service level of each pair of switches, as `route --dump-dir` writes it for lash; SL 0 everywhere without it' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -l lmc-esp0 -d 'Gives enhanced switch ports 0 the LMC as well'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -s r -l reassign-lids -d 'Assigns all LIDs anew, whatever the fabric file and --guid2lid say'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -l strict -d 'Demands that every LID can be reached from every switch: also from switches without hosts, and also switches\' own LIDs, which up/down routing may leave out'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -l metrics -d 'Adds effective bisection bandwidth and the contention of the shift pattern'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l socket -d 'The name of the sockets: what clients find in `IBSIM_SOCKNAME`' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l port -d 'Listens on this UDP port of the loopback device in place of Unix sockets; clients find it in `IBSIM_SERVER_PORT`. Clients have the ports behind it, as far as these are free. Its console is that of `sim ctl --port N`' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l sm -d 'Runs a subnet manager at the first host with these engines [default: auto]. READY is printed once the subnet is up. `sm ctl --socket NAME-sm` queries it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l agents -d 'Has agents for ibtracer and ibping on these nodes, names with commas between them; on all nodes without names' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l seed -d 'The seed of everything random' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l script -d 'Commands and the moments at which they are run: lines of `at TIME COMMAND`' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l random-faults -d 'Makes so many random faults within the time of --random-time, and mends them at its end' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l random-time -d 'The time in which random faults happen, such as 30s' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l addresses -d 'IP addresses of ports that are not the derived ones: lines of `GUID ADDRESS …`' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l pcap -d 'Writes every packet that is sent or lost to a pcapng file; - for standard output' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l log -d 'Writes what happens to a file; - for standard error' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l log-level -d 'How much is logged by --log' -r -f -a "events\t'Clients, links, states, traps, commands and lost packets'
datagrams\t'Datagrams that are sent and delivered, too'
hops\t'Every packet at every port'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l record -d 'Writes everything that clients and consoles send to a file, for --replay' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l replay -d 'Runs what was recorded again, without sockets and as fast as it goes, and ends. With the same fabric, seed and script it logs the same' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l latency -d 'How long a packet takes from port to port beside the time of its bytes' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l lane-buffer -d 'The buffer of each lane of a port in bytes, at least 4224' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l mtu -d 'The largest payload of packets that ports can carry, in bytes: 256, 512, 1024, 2048 or 4096. A subnet manager says how much they do' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -s L -l linear-cap -d '`LinearFDBCap` of all switches: the number of LIDs that they can forward, from LID 0 on' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -s M -l mcast-cap -d '`MulticastFDBCap` of all switches: the number of multicast LIDs that they can forward' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -l answer-within -d 'How long a client has to answer a request that was handed to it before whoever asked is told that it failed' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -a "ctl" -d 'Tells a running simulator what to do, or asks it'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and not __fish_seen_subcommand_from ctl help" -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and __fish_seen_subcommand_from ctl" -l socket -d 'The name of the simulator\'s sockets. Without it and --port the environment decides as for clients: `IBSIM_SERVER_PORT` (7070) where `IBSIM_SERVER_NAME` is set, else `IBSIM_SOCKNAME` (sim)' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and __fish_seen_subcommand_from ctl" -l port -d 'The UDP port that the simulator was started with' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and __fish_seen_subcommand_from ctl" -l format -d 'How the answer is printed' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and __fish_seen_subcommand_from ctl" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and __fish_seen_subcommand_from help" -f -a "ctl" -d 'Tells a running simulator what to do, or asks it'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sim; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l sim -d 'A fabric that is simulated inside this process, in virtual time; nobody else can reach it' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l ibsim -d 'A real ibsim or `ibfabric sim` in another process, by the name of its sockets; without a name the one that the environment names, as Debian\'s libumad2sim does it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l node -d 'The node of the simulated fabric to manage from; its first without it, or, with --ibsim, `SIM_HOST`' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l umad -d 'A port of an adapter of this machine, such as `mlx5_0:1`; without a name the first that has a link' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s g -l guid -d 'The GUID of the port to manage from, where --umad names none. With --ibsim it has to be that of the node' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s F -l config -d 'OpenSM\'s configuration file; options prevail over it. On a real port /etc/opensm/opensm.conf without it, if there is one' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s c -l create-config -d 'Writes a configuration file with what the other options say, and ends' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s R -l engine -l routing_engine -d 'The routing engines, in order of preference: minhop updn ftree lash dor file. minhop follows unless no_fallback is among them. auto: minhop, and in the subnet manager updn and lash if its routes have a credit loop [default: auto]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s a -l root-guids -l root_guid_file -d 'GUIDs of root switches, or of channel adapters on them (updn, ftree)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s u -l cn-guids -l cn_guid_file -d 'Port GUIDs of compute nodes (ftree)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s G -l io-guids -l io_guid_file -d 'Port GUIDs of I/O nodes (ftree)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s H -l max-reverse-hops -d 'How many hops a path to an I/O node may lead back up (ftree); none without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s i -l ignore-guids -d 'Ports that link load equalisation does not count: a switch GUID and a port per line, or a port GUID, which stands for the switch port that leads to it' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s X -l guid-routing-order -d 'Port GUIDs to be routed first, in order' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s O -l port-search-ordering -d 'Ports to be tried first, in order: a switch GUID and its ports per line' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s w -l hop-weights -d 'Weights of links in hops: a switch GUID, a port and a weight per line' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s m -l ids-guids -d 'Identifiers that break ties of rank: a switch GUID and a number per line (updn)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l scatter-ports -d 'Draws among least used ports by this seed; 0, and without it, draws nothing' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l lash-start-vl -d 'The lowest virtual lane to use; 0 without it (lash)' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l virtual-lanes -d 'The number of data virtual lanes of every link; 8 without it (lash)' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s U -l lfts -l lfts_file -d 'Forwarding tables to load (file)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s M -l lid-matrix -l lid_matrix_file -d 'Lid matrix to load (file)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l keep-lfts -d 'Forwarding tables whose entries are kept wherever they still are least-hop ports (minhop, updn, dor)' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s l -l lmc -d '2^N LIDs for every channel adapter port; 1 LID without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s P -l pconfig -d 'Who may talk to whom, as OpenSM\'s partition file has it; all ports are full members of the default partition without it. On a real port /etc/opensm/partitions.conf, if there is one' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s Z -l part-enforce -d 'Where switches check partitions: both, in, out or off; both without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s p -l priority -d 'The priority among managers, 0 to 15: the higher one wins, then the lower port GUID. 0 without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s k -l smkey -d 'The key that the managers of the subnet share; 1 without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l subnet-prefix -d 'The upper half of the GIDs; 0xfe80000000000000 without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s s -l sweep -d 'Seconds between light sweeps, 0 for none; 10 without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s n -l maxsmps -d 'How many SMPs may be on their way, 0 for any number; 64 without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s t -l timeout -d 'Milliseconds that an answer is waited for; 200 without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l retries -d 'How often an SMP without answer is repeated; 3 times without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l format -d 'How the result is printed' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s f -l log -d 'The log, in OpenSM\'s lines; stdout for standard output. Errors go to standard error without it; on a real port the log is /var/log/opensm.log' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s L -l log-limit -d 'The size in MB at which the log begins anew' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s D -l log-flags -d 'What is logged: 0x01 errors, 0x02 what happens, 0x04 more, 0x08 what the manager is doing, 0x20 every datagram; 0x40 writes all dumps. 0x03 without it; 0 logs nothing at all' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l dump-dir -l dump_files_dir -d 'Writes OpenSM\'s dump files into this directory whenever the subnet is up' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l cache-dir -d 'Keeps LIDs, M_Keys and neighbours in this directory, and begins with the LIDs there. On a real port /var/cache/opensm' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s J -l pidfile -d 'Writes the number of the process to a file' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l socket -d 'The name of the socket that `sm ctl` asks; sm without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l metrics-port -d 'Serves metrics for Prometheus on this port of the loopback device' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l perf-interval -d 'Collects the counters of all ports every S seconds, for the metrics' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l standby -d 'Waits when another manager is the master, and takes over when that one fails. Without it a manager of a real port, or with --once, ends with exit status 2'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l quasi-ftree-indexing -d 'Starts numbering the tree at its first root (ftree)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s z -l connect-roots -d 'Lets root switches reach each other (updn, ftree)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l port-profile-switch-nodes -d 'Counts routes to switches in link load equalisation'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l port-shifting -d 'Shifts the search for the least used port from LID to LID'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l guid-routing-order-no-scatter -d 'Does not draw for the ports of --guid-routing-order'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l lmc-esp0 -d 'Gives enhanced switch ports 0 the LMC as well'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s r -l reassign-lids -d 'Assigns all LIDs anew once, whatever the ports and the cache say'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s A -l ucast-cache -d 'Keeps the routes when hosts and leaf switches go and come back'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l require-deadlock-free -d 'Never programs routes with credit loops, even if hosts stay unreachable'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s Q -l qos -d 'Sets up lanes: service levels on lanes, and the lanes\' turns. lash needs it to be free of deadlocks'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -l no-clients-rereg -d 'Does not ask clients to register again when the subnet is taken over'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s o -l once -d 'Ends when the subnet is up'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s I -l inactive -d 'Does nothing until another manager says so'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s e -l erase-log -d 'Empties the log at the start'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s v -l verbose -d 'Logs more: -v 0x04 as well, -vv 0x08, -vvv 0x20'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s x -l honor-guid2lid -d 'Believes the LIDs of the cache also when another master has failed'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s B -l daemon -d 'Goes on in the background'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -f -a "ctl" -d 'Asks a running manager, or tells it to sweep'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and not __fish_seen_subcommand_from ctl help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and __fish_seen_subcommand_from ctl" -l socket -d 'The name of the manager\'s socket' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and __fish_seen_subcommand_from ctl" -l format -d 'How the answer is printed' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and __fish_seen_subcommand_from ctl" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and __fish_seen_subcommand_from ctl" -f -a "status" -d 'What the manager is and does, and what is wrong with the subnet'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and __fish_seen_subcommand_from ctl" -f -a "sweep" -d 'Starts to explore the whole subnet again, and reads the partitions again'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and __fish_seen_subcommand_from ctl" -f -a "routes" -d 'The routes: how they came about, and the switches; or the table of one switch'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and __fish_seen_subcommand_from ctl" -f -a "metrics" -d 'What --metrics-port serves'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and __fish_seen_subcommand_from ctl" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and __fish_seen_subcommand_from help" -f -a "ctl" -d 'Asks a running manager, or tells it to sweep'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand sm; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -s I -l device -l umad -d 'The adapter, such as `mthca0` or `mlx5_0`; the first that has a link without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -s p -l port -d 'The port of the adapter' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l ibsim -d 'A real ibsim or `ibfabric sim` in another process, by the name of its sockets; without a name the one that the environment names, as Debian\'s libumad2sim does it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l attach -d 'The same, always with a name' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l node -d 'The node of the simulated fabric to speak through; its first without it, or `SIM_HOST`' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l sim -d 'A fabric that is simulated inside this process, in virtual time, with a subnet manager at its first host and agents on all nodes' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -s R -l engine -d 'The engines that route the fabric of --sim' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l commands -d 'Commands for the fabric of --sim, a line each, that are run when it is up: what the console of `ibfabric sim` takes' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -s r -l retries -d 'How often a request is repeated' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -s t -l timeout -d 'How long an answer is awaited, in milliseconds' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -s l -l lid -d 'The LID to trace the way to' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -s g -l dgid -d 'The GID to trace the way to: subnet administration tells its LID' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l pairs -d 'Traces the ways of a file: lines of two LIDs, GIDs or port GUIDs, the start first' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l mgid -d 'Traces the tree of a multicast group from the own port, by its GID: subnet administration tells its LID and its members. Members that are not reached, or twice, are reported' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l mlid -d 'Traces the tree of a multicast LID; nobody has to tell the members' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l smkey -d 'The key by which subnet administration tells members; 1 without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l from -d 'Where the way starts: a LID, a GID or a port GUID; the own port without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l via -d 'Where the tables and links are learned from' -r -f -a "direct\t'From the nodes, over directed routes'
sa\t'From subnet administration: records of links, ports and tables. So the fabric is compared with what its manager believes'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l error-probability -d 'The probability that silence is chance, below which it counts as a fault' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l sl -d 'The service level of requests to agents' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -s y -l mkey -d 'The M_Key of nodes that do not answer subnet management without one' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l window -d 'How many requests are under way at a time' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l node-name-map -d 'Names for node GUIDs, in place of the nodes\' own descriptions' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l ports -d 'Which ports are shown with -v: those that the way enters by, or also those it leaves by' -r -f -a "in\t'Those that the way enters nodes by'
both\t'Also those that it leaves nodes by'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l format -d 'How the result is printed' -r -f -a "text\t'Lines for people'
json\t'One JSON object'
ibtracert\t'The lines of ibtracert, of every way'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l deaf-manager -d 'Does not let the subnet manager of --sim hear of what --commands does'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l all-pairs -d 'Traces the ways between all hosts that subnet administration knows'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l reverse -d 'Traces the way back as well'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l no-agents -d 'Asks no agents: shows the paths by the tables, which proves nothing'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l exact -d 'Counts at each switch by which port it sends what goes to the destination\'s own LID'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -l grh -d 'Sends requests to agents with a global route header'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -s v -l verbose -d 'Shows the whole way, with what is known of each hop'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand tracer" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand agent" -s I -l device -l umad -d 'The adapter, such as `mthca0` or `mlx5_0`; the first that has a link without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand agent" -s p -l port -d 'The port of the adapter' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand agent" -l ibsim -d 'A real ibsim or `ibfabric sim` in another process, by the name of its sockets; without a name the one that the environment names, as Debian\'s libumad2sim does it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand agent" -l attach -d 'The same, always with a name' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand agent" -l node -d 'The node of the simulated fabric to speak through; its first without it, or `SIM_HOST`' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand agent" -l host-name -d 'What ibping is told; the name of the machine without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand agent" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and not __fish_seen_subcommand_from devinfo serve ping cmatose pingpong bw lat help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and not __fish_seen_subcommand_from devinfo serve ping cmatose pingpong bw lat help" -f -a "devinfo" -d 'Shows what an adapter at an address is and takes'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and not __fish_seen_subcommand_from devinfo serve ping cmatose pingpong bw lat help" -f -a "serve" -d 'Serves `rdma bw` and `lat` of others, and the real `rping`, `ucmatose` and programs of perftest'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and not __fish_seen_subcommand_from devinfo serve ping cmatose pingpong bw lat help" -f -a "ping" -d 'Pings a server of rping'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and not __fish_seen_subcommand_from devinfo serve ping cmatose pingpong bw lat help" -f -a "cmatose" -d 'Exchanges messages with a server of ucmatose'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and not __fish_seen_subcommand_from devinfo serve ping cmatose pingpong bw lat help" -f -a "pingpong" -d 'Sends messages to and fro; with the real `ibv_rc_pingpong` at either end'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and not __fish_seen_subcommand_from devinfo serve ping cmatose pingpong bw lat help" -f -a "bw" -d 'Measures bandwidth'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and not __fish_seen_subcommand_from devinfo serve ping cmatose pingpong bw lat help" -f -a "lat" -d 'Measures latency'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and not __fish_seen_subcommand_from devinfo serve ping cmatose pingpong bw lat help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -l listen -l from -d 'The own address; the first of an interface that is up without it, loopback for peers on loopback' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -l attach -d 'A running `ibfabric sim`, by the name of its sockets, at a port of which the adapter is' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -l node -d 'The node of the simulated fabric, with `:PORT` behind it where that is not its first port; an address, a GID or a LID will do, too. The first host without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -l acm -d 'Asks a service of IB ACM for paths, at a socket or a host\'s TCP port, as `RDMA_CM_USE_IB_ACM=1` in the environment does for the one of this machine; where it fails, subnet administration' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -l udp-port -d 'The UDP port of RoCEv2, here and there: another one than 4791 only makes sense between tests' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -l peer-udp-port -d 'The UDP port at the other end, when it is another one' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -s m -l mtu -d 'The largest packets in bytes: 256, 512, 1024, 2048 or 4096; what the network carries without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -l spin -d 'How long something to do is looked for until the program sleeps, in microseconds' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -l capture -d 'Writes the packets of all queue pairs to a pcapng file, and says how many of them were not collected in time' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -l capture-payload -d 'How many bytes of the payload of each message are captured' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -l capture-ring -d 'How many bytes of each queue pair wait to be collected: a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -l format -d 'How the result is printed' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -l allow-zero-checksum -d 'Takes IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One of 2^15 corruptions of such packets is not detected'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -s v -l verbose -d 'Shows also how much of everything it takes'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from devinfo" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l listen -l from -d 'The own address; the first of an interface that is up without it, loopback for peers on loopback' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l attach -d 'A running `ibfabric sim`, by the name of its sockets, at a port of which the adapter is' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l node -d 'The node of the simulated fabric, with `:PORT` behind it where that is not its first port; an address, a GID or a LID will do, too. The first host without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l acm -d 'Asks a service of IB ACM for paths, at a socket or a host\'s TCP port, as `RDMA_CM_USE_IB_ACM=1` in the environment does for the one of this machine; where it fails, subnet administration' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l udp-port -d 'The UDP port of RoCEv2, here and there: another one than 4791 only makes sense between tests' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l peer-udp-port -d 'The UDP port at the other end, when it is another one' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -s m -l mtu -d 'The largest packets in bytes: 256, 512, 1024, 2048 or 4096; what the network carries without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l spin -d 'How long something to do is looked for until the program sleeps, in microseconds' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l capture -d 'Writes the packets of all queue pairs to a pcapng file, and says how many of them were not collected in time' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l capture-payload -d 'How many bytes of the payload of each message are captured' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l capture-ring -d 'How many bytes of each queue pair wait to be collected: a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -s p -l port -d 'The port of `rdma_cm` for `rdma bw`, `lat` and others of ours' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l rping-port -d 'The port at which rping is served' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l ucmatose-port -d 'The port at which ucmatose is served' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -s C -l messages -d 'How many messages of ucmatose go each way' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -s S -l message-size -d 'The size of a message of ucmatose in bytes, with K or M' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l perftest -d 'Serves also this program of perftest 4.5-0.17, which is to be called with `-R`, at its port 18515' -r -f -a "ib_write_bw\t'RDMA WRITE, bandwidth'
ib_read_bw\t'RDMA READ, bandwidth'
ib_send_bw\t'SEND, bandwidth'
ib_write_lat\t'RDMA WRITE, latency'
ib_read_lat\t'RDMA READ, latency'
ib_send_lat\t'SEND, latency'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l perftest-port -d 'The port at which perftest is served' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l perftest-size -d 'The size of a message of `ib_write_lat` in bytes, which its client does not tell' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l clients -d 'Ends when so many clients have gone, with status 2 if one of them was not understood; never without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l allow-zero-checksum -d 'Takes IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One of 2^15 corruptions of such packets is not detected'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l rping -d 'Serves also the real `rping`, at its port 7174'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -l ucmatose -d 'Serves also the real `ucmatose`, at its port 7471'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -s v -l verbose -d 'Says what comes in'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -l listen -l from -d 'The own address; the first of an interface that is up without it, loopback for peers on loopback' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -l attach -d 'A running `ibfabric sim`, by the name of its sockets, at a port of which the adapter is' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -l node -d 'The node of the simulated fabric, with `:PORT` behind it where that is not its first port; an address, a GID or a LID will do, too. The first host without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -l acm -d 'Asks a service of IB ACM for paths, at a socket or a host\'s TCP port, as `RDMA_CM_USE_IB_ACM=1` in the environment does for the one of this machine; where it fails, subnet administration' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -l udp-port -d 'The UDP port of RoCEv2, here and there: another one than 4791 only makes sense between tests' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -l peer-udp-port -d 'The UDP port at the other end, when it is another one' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -s m -l mtu -d 'The largest packets in bytes: 256, 512, 1024, 2048 or 4096; what the network carries without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -l spin -d 'How long something to do is looked for until the program sleeps, in microseconds' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -l capture -d 'Writes the packets of all queue pairs to a pcapng file, and says how many of them were not collected in time' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -l capture-payload -d 'How many bytes of the payload of each message are captured' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -l capture-ring -d 'How many bytes of each queue pair wait to be collected: a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -s p -l port -d 'Its port' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -s C -l count -d 'How often it is pinged' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -s S -l size -d 'The size of a ping in bytes, with K' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -l format -d 'How the result is printed' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -l allow-zero-checksum -d 'Takes IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One of 2^15 corruptions of such packets is not detected'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -s v -l verbose -d 'Shows the pings'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from ping" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -l listen -l from -d 'The own address; the first of an interface that is up without it, loopback for peers on loopback' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -l attach -d 'A running `ibfabric sim`, by the name of its sockets, at a port of which the adapter is' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -l node -d 'The node of the simulated fabric, with `:PORT` behind it where that is not its first port; an address, a GID or a LID will do, too. The first host without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -l acm -d 'Asks a service of IB ACM for paths, at a socket or a host\'s TCP port, as `RDMA_CM_USE_IB_ACM=1` in the environment does for the one of this machine; where it fails, subnet administration' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -l udp-port -d 'The UDP port of RoCEv2, here and there: another one than 4791 only makes sense between tests' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -l peer-udp-port -d 'The UDP port at the other end, when it is another one' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -s m -l mtu -d 'The largest packets in bytes: 256, 512, 1024, 2048 or 4096; what the network carries without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -l spin -d 'How long something to do is looked for until the program sleeps, in microseconds' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -l capture -d 'Writes the packets of all queue pairs to a pcapng file, and says how many of them were not collected in time' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -l capture-payload -d 'How many bytes of the payload of each message are captured' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -l capture-ring -d 'How many bytes of each queue pair wait to be collected: a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -s p -l port -d 'Its port' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -s c -l connections -d 'How many connections are made, which the server has to expect' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -s C -l messages -d 'How many messages of ucmatose go each way' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -s S -l message-size -d 'The size of a message of ucmatose in bytes, with K or M' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -l format -d 'How the result is printed' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -l allow-zero-checksum -d 'Takes IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One of 2^15 corruptions of such packets is not detected'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from cmatose" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -l listen -l from -d 'The own address; the first of an interface that is up without it, loopback for peers on loopback' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -l attach -d 'A running `ibfabric sim`, by the name of its sockets, at a port of which the adapter is' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -l node -d 'The node of the simulated fabric, with `:PORT` behind it where that is not its first port; an address, a GID or a LID will do, too. The first host without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -l acm -d 'Asks a service of IB ACM for paths, at a socket or a host\'s TCP port, as `RDMA_CM_USE_IB_ACM=1` in the environment does for the one of this machine; where it fails, subnet administration' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -l udp-port -d 'The UDP port of RoCEv2, here and there: another one than 4791 only makes sense between tests' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -l peer-udp-port -d 'The UDP port at the other end, when it is another one' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -s m -l mtu -d 'The largest packets in bytes: 256, 512, 1024, 2048 or 4096; what the network carries without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -l spin -d 'How long something to do is looked for until the program sleeps, in microseconds' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -l capture -d 'Writes the packets of all queue pairs to a pcapng file, and says how many of them were not collected in time' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -l capture-payload -d 'How many bytes of the payload of each message are captured' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -l capture-ring -d 'How many bytes of each queue pair wait to be collected: a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -s p -l port -d 'The TCP port by which the ends tell each other their queue pairs' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -s s -l size -d 'The size of a message in bytes, with K, M or G' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -s n -l iters -d 'How many messages are exchanged' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -s r -l rx-depth -d 'How many receives are posted at a time' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -l format -d 'How the result is printed' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -l allow-zero-checksum -d 'Takes IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One of 2^15 corruptions of such packets is not detected'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -s c -l check -d 'Checks what comes in, as `ibv_rc_pingpong -c` does; both ends have to'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from pingpong" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l listen -l from -d 'The own address; the first of an interface that is up without it, loopback for peers on loopback' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l attach -d 'A running `ibfabric sim`, by the name of its sockets, at a port of which the adapter is' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l node -d 'The node of the simulated fabric, with `:PORT` behind it where that is not its first port; an address, a GID or a LID will do, too. The first host without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l acm -d 'Asks a service of IB ACM for paths, at a socket or a host\'s TCP port, as `RDMA_CM_USE_IB_ACM=1` in the environment does for the one of this machine; where it fails, subnet administration' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l udp-port -d 'The UDP port of RoCEv2, here and there: another one than 4791 only makes sense between tests' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l peer-udp-port -d 'The UDP port at the other end, when it is another one' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -s m -l mtu -d 'The largest packets in bytes: 256, 512, 1024, 2048 or 4096; what the network carries without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l spin -d 'How long something to do is looked for until the program sleeps, in microseconds' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l capture -d 'Writes the packets of all queue pairs to a pcapng file, and says how many of them were not collected in time' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l capture-payload -d 'How many bytes of the payload of each message are captured' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l capture-ring -d 'How many bytes of each queue pair wait to be collected: a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -s p -l port -d 'Its port; 18516 without it, and 18515 of perftest' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l op -d 'What is done' -r -f -a "send\t'SEND into receives'
write\t'RDMA WRITE'
read\t'RDMA READ'
write-imm\t'RDMA WRITE with immediate data; not of `lat`'
fetch-add\t'Atomic Fetch and Add; not of `lat`'
compare-swap\t'Atomic Compare and Swap; not of `lat`'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -s s -l size -d 'The size of a message in bytes, with K, M or G; 65536 for bandwidth and 64 for latency without it. Atomics have 8' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -s n -l iters -d 'How many messages; 1000 without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -s t -l tx-depth -d 'How many messages are under way on a queue pair' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -s q -l qps -d 'How many queue pairs' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l format -d 'How the result is printed' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l allow-zero-checksum -d 'Takes IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One of 2^15 corruptions of such packets is not detected'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -l perftest -d 'The server is a program of perftest 4.5-0.17 with `-R` that does the same, such as `ib_write_bw`; sizes and numbers have to be the same there'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from bw" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l listen -l from -d 'The own address; the first of an interface that is up without it, loopback for peers on loopback' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l attach -d 'A running `ibfabric sim`, by the name of its sockets, at a port of which the adapter is' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l node -d 'The node of the simulated fabric, with `:PORT` behind it where that is not its first port; an address, a GID or a LID will do, too. The first host without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l acm -d 'Asks a service of IB ACM for paths, at a socket or a host\'s TCP port, as `RDMA_CM_USE_IB_ACM=1` in the environment does for the one of this machine; where it fails, subnet administration' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l udp-port -d 'The UDP port of RoCEv2, here and there: another one than 4791 only makes sense between tests' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l peer-udp-port -d 'The UDP port at the other end, when it is another one' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -s m -l mtu -d 'The largest packets in bytes: 256, 512, 1024, 2048 or 4096; what the network carries without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l spin -d 'How long something to do is looked for until the program sleeps, in microseconds' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l capture -d 'Writes the packets of all queue pairs to a pcapng file, and says how many of them were not collected in time' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l capture-payload -d 'How many bytes of the payload of each message are captured' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l capture-ring -d 'How many bytes of each queue pair wait to be collected: a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -s p -l port -d 'Its port; 18516 without it, and 18515 of perftest' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l op -d 'What is done' -r -f -a "send\t'SEND into receives'
write\t'RDMA WRITE'
read\t'RDMA READ'
write-imm\t'RDMA WRITE with immediate data; not of `lat`'
fetch-add\t'Atomic Fetch and Add; not of `lat`'
compare-swap\t'Atomic Compare and Swap; not of `lat`'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -s s -l size -d 'The size of a message in bytes, with K, M or G; 65536 for bandwidth and 64 for latency without it. Atomics have 8' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -s n -l iters -d 'How many messages; 1000 without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -s t -l tx-depth -d 'How many messages are under way on a queue pair' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -s q -l qps -d 'How many queue pairs' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l format -d 'How the result is printed' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l allow-zero-checksum -d 'Takes IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One of 2^15 corruptions of such packets is not detected'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -l perftest -d 'The server is a program of perftest 4.5-0.17 with `-R` that does the same, such as `ib_write_bw`; sizes and numbers have to be the same there'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from lat" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from help" -f -a "devinfo" -d 'Shows what an adapter at an address is and takes'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from help" -f -a "serve" -d 'Serves `rdma bw` and `lat` of others, and the real `rping`, `ucmatose` and programs of perftest'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from help" -f -a "ping" -d 'Pings a server of rping'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from help" -f -a "cmatose" -d 'Exchanges messages with a server of ucmatose'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from help" -f -a "pingpong" -d 'Sends messages to and fro; with the real `ibv_rc_pingpong` at either end'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from help" -f -a "bw" -d 'Measures bandwidth'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from help" -f -a "lat" -d 'Measures latency'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rdma; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand run" -l attach -d 'Name of a running `ibfabric sim`: the device of the program is a port of its fabric' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand run" -l node -d 'Node of the simulated fabric, with `:PORT` for a port other than the first; also an address, a GID or a LID. [default: the first host]' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand run" -l roce -d 'IP address of this machine: the device of the program uses RoCEv2 over UDP' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand run" -l device -d 'Name of the device, as `ibv_devices` shows it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand run" -l library -d 'Library that the program is started with. [default: beside `ibfabric`, or in `../lib/ibfabric`]' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand run" -l env -d 'Prints the environment as shell commands instead of running a program'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and not __fish_seen_subcommand_from serve bench ctl mount help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and not __fish_seen_subcommand_from serve bench ctl mount help" -f -a "serve" -d 'Serves block devices to clients of RNBD: of this project, and to Linux kernels'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and not __fish_seen_subcommand_from serve bench ctl mount help" -f -a "bench" -d 'Measures and verifies a device of a server, of this project or of a Linux kernel'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and not __fish_seen_subcommand_from serve bench ctl mount help" -f -a "ctl" -d 'Shows statistics of a program that runs, and changes its paths'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and not __fish_seen_subcommand_from serve bench ctl mount help" -f -a "mount" -d 'Offers the same as files, as the kernel does below /sys/devices/virtual, until it is told to end'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and not __fish_seen_subcommand_from serve bench ctl mount help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l listen -d 'An own address to listen at; several may be given. Addresses of loopback and of private networks are good ones' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l export -d 'A device that is offered: a file, a block device, or so much memory (mem:64M); several may be given' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -s p -l port -d 'The port of `rdma_cm`' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l queue-depth -d 'How many requests a session may have under way' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l max-io-size -d 'The longest data of a request in bytes; the chunks, with headers, are a power of two for Linux' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l allow -d 'A network whose clients may connect, as ADDR/BITS; several may be given; everybody without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l control -d 'Lets `rtrs ctl` and `rtrs mount` see and change sessions and paths over this socket, of this user only' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l metrics-port -d 'Serves metrics for Prometheus on this port of the loopback device' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l capture -d 'Writes the packets of all queue pairs to a pcapng file, and says how many of them were not collected in time' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l capture-payload -d 'How many bytes of the payload of each message are captured' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l capture-ring -d 'How many bytes of each queue pair wait to be collected: a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l attach -d 'A running `ibfabric sim`, by the name of its sockets, at ports of which the adapters are' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l node -d 'A node of the simulated fabric, with `:PORT` behind it where that is not its first port; an address, a GID or a LID will do, too; several may be given. The first host without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l acm -d 'Asks a service of IB ACM for paths and for names, at a socket or a host\'s TCP port, as `RDMA_CM_USE_IB_ACM=1` in the environment does for the one of this machine; where it fails, subnet administration' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l udp-port -d 'The UDP port of RoCEv2 here: another one than 4791 only makes sense between tests' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l peer-udp-port -d 'The UDP port at the other end, when it is another one' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -s m -l mtu -d 'The largest packets in bytes: 256, 512, 1024, 2048 or 4096; what the network carries without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l spin -d 'How long something to do is looked for until the program sleeps, in microseconds' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l key-file -d 'A file with a key, of at least 16 bytes, that both ends have to know. Linux knows none' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l no-always-invalidate -d 'Lets the keys of chunks stay open: faster, and a client can change what it has written while it is processed'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -l allow-zero-checksum -d 'Takes IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One of 2^15 corruptions of such packets is not detected'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l path -d 'A path to the server: its address, with the own one before an @ where that matters; several may be given. In a simulated fabric it may be an address (ip:ADDR), a GID (gid:GID), NODE or NODE:PORT, a LID, or a name that the service of --acm knows; a path without an own end starts at the next one of --node' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l device -d 'The device\'s name at the server' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -s p -l port -d 'The port of `rdma_cm` at the server' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l session -d 'The name of the session; of this machine and process without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l policy -d 'Which path a request takes' -r -f -a "round-robin\t'One after the other'
min-inflight\t'That with the fewest requests under way'
min-latency\t'That whose last heartbeat was fastest'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l connections -d 'How many connections each path has; one more than there are processors without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l wait -d 'How long the device may take to be open at first, in seconds' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l reconnect-delay -d 'How long to wait before a path that has failed is connected again, in milliseconds' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l control -d 'Lets `rtrs ctl` and `rtrs mount` see and change sessions and paths over this socket, of this user only' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l metrics-port -d 'Serves metrics for Prometheus on this port of the loopback device' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l capture -d 'Writes the packets of all queue pairs to a pcapng file, and says how many of them were not collected in time' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l capture-payload -d 'How many bytes of the payload of each message are captured' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l capture-ring -d 'How many bytes of each queue pair wait to be collected: a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l attach -d 'A running `ibfabric sim`, by the name of its sockets, at ports of which the adapters are' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l node -d 'A node of the simulated fabric, with `:PORT` behind it where that is not its first port; an address, a GID or a LID will do, too; several may be given. The first host without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l acm -d 'Asks a service of IB ACM for paths and for names, at a socket or a host\'s TCP port, as `RDMA_CM_USE_IB_ACM=1` in the environment does for the one of this machine; where it fails, subnet administration' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l udp-port -d 'The UDP port of RoCEv2 here: another one than 4791 only makes sense between tests' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l peer-udp-port -d 'The UDP port at the other end, when it is another one' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -s m -l mtu -d 'The largest packets in bytes: 256, 512, 1024, 2048 or 4096; what the network carries without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l spin -d 'How long something to do is looked for until the program sleeps, in microseconds' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l key-file -d 'A file with a key, of at least 16 bytes, that both ends have to know. Linux knows none' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l rw -d 'What is done' -r -f -a "read\t'Reads one place after the other'
write\t'Writes one place after the other'
randread\t'Reads random places'
randwrite\t'Writes random places'
randrw\t'Reads and writes random places, half of each'
trim\t'Discards one place after the other'
randtrim\t'Discards random places'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l bs -d 'The length of a request, with K, M or G; more than the server takes at once is split' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l bsrange -d 'Requests of all lengths between two, multiples of the shorter one, as are their places' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l fsync -d 'Flushes after so many writes' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l trim -d 'Discards a place after so many writes' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l iodepth -d 'How many requests are under way at once, of each job' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l jobs -d 'How many jobs there are, all in one session; each has an own part of the device for what it does in sequence, and own random places' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l runtime -d 'How long, in seconds' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l io-size -d 'How much is read or written at most, with K, M or G; as much as there is time for without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l size -d 'How much of the device is used, from its start, with K, M or G; all of it without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l idle -d 'How long the device is left alone before, in seconds' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l seed -d 'The seed of the random places' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l format -d 'How the result is printed' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l need-invalidation -d 'Has the server invalidate the key of each read, instead of closing it here'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l trust-cache -d 'Believes a server of Linux, which does not say so, to have kept what was not flushed when all paths were lost. Otherwise the next flush fails once, as what was written before may be gone with that machine'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l allow-zero-checksum -d 'Takes IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One of 2^15 corruptions of such packets is not detected'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -l verify -d 'Writes what tells where it belongs and how often it was written, and compares what is read with it'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from bench" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from ctl" -l control -d 'The control socket of the program, as it was given to `rtrs serve`, `rtrs bench` or `nbd`' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from ctl" -l format -d 'How the answer is printed' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from ctl" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from ctl" -f -a "get" -d 'Prints what a file says'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from ctl" -f -a "set" -d 'Writes to a file, and waits until that is done'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from ctl" -f -a "list" -d 'Prints what is in a directory; directories have a slash behind them'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from ctl" -f -a "metrics" -d 'Prints what --metrics-port serves'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from ctl" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from mount" -l control -d 'The control socket of a program; several may be given, and have their sessions side by side' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from mount" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from help" -f -a "serve" -d 'Serves block devices to clients of RNBD: of this project, and to Linux kernels'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from help" -f -a "bench" -d 'Measures and verifies a device of a server, of this project or of a Linux kernel'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from help" -f -a "ctl" -d 'Shows statistics of a program that runs, and changes its paths'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from help" -f -a "mount" -d 'Offers the same as files, as the kernel does below /sys/devices/virtual, until it is told to end'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand rtrs; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l path -d 'A path to the server: its address, with the own one before an @ where that matters; several may be given. In a simulated fabric it may be an address (ip:ADDR), a GID (gid:GID), NODE or NODE:PORT, a LID, or a name that the service of --acm knows; a path without an own end starts at the next one of --node' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l device -d 'The device\'s name at the server' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -s p -l port -d 'The port of `rdma_cm` at the server' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l session -d 'The name of the session; of this machine and process without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l policy -d 'Which path a request takes' -r -f -a "round-robin\t'One after the other'
min-inflight\t'That with the fewest requests under way'
min-latency\t'That whose last heartbeat was fastest'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l connections -d 'How many connections each path has; one more than there are processors without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l wait -d 'How long the device may take to be open at first, in seconds' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l reconnect-delay -d 'How long to wait before a path that has failed is connected again, in milliseconds' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l control -d 'Lets `rtrs ctl` and `rtrs mount` see and change sessions and paths over this socket, of this user only' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l metrics-port -d 'Serves metrics for Prometheus on this port of the loopback device' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l capture -d 'Writes the packets of all queue pairs to a pcapng file, and says how many of them were not collected in time' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l capture-payload -d 'How many bytes of the payload of each message are captured' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l capture-ring -d 'How many bytes of each queue pair wait to be collected: a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l attach -d 'A running `ibfabric sim`, by the name of its sockets, at ports of which the adapters are' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l node -d 'A node of the simulated fabric, with `:PORT` behind it where that is not its first port; an address, a GID or a LID will do, too; several may be given. The first host without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l acm -d 'Asks a service of IB ACM for paths and for names, at a socket or a host\'s TCP port, as `RDMA_CM_USE_IB_ACM=1` in the environment does for the one of this machine; where it fails, subnet administration' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l udp-port -d 'The UDP port of RoCEv2 here: another one than 4791 only makes sense between tests' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l peer-udp-port -d 'The UDP port at the other end, when it is another one' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -s m -l mtu -d 'The largest packets in bytes: 256, 512, 1024, 2048 or 4096; what the network carries without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l spin -d 'How long something to do is looked for until the program sleeps, in microseconds' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l key-file -d 'A file with a key, of at least 16 bytes, that both ends have to know. Linux knows none' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l socket -d 'Where programs connect: a socket in the file system' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l tcp -d 'Where programs connect: an address of loopback and a port, 10809 being the usual one' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l depth -d 'How many requests of the device may be under way' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l need-invalidation -d 'Has the server invalidate the key of each read, instead of closing it here'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l trust-cache -d 'Believes a server of Linux, which does not say so, to have kept what was not flushed when all paths were lost. Otherwise the next flush fails once, as what was written before may be gone with that machine'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l allow-zero-checksum -d 'Takes IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One of 2^15 corruptions of such packets is not detected'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -l read-only -d 'Offers the device to be read only'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand nbd" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -l attach -d 'A running `ibfabric sim`, by the name of its sockets, at whose ports the service is. Can be given more than once' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -l node -d 'A node of the simulated fabric of the --attach before it, or of the only one, with `:PORT` behind it where that is not its first port; can be given more than once. The first host without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -l umad -d 'A port of an adapter of this machine, such as `mlx5_0:1`, by its management datagrams; without a port all of the adapter, without a name all InfiniBand ports of the machine, as ibacm has it. Can be given more than once. There are no queue pairs behind it: addresses are known from files only, routes from subnet administration' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -l socket -d 'The Unix socket that programs ask over. Without it and --tcp, what `server_mode` says, at the places where programs look for ibacm: /run/ibacm-unix.sock, or TCP and /run/ibacm.port' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -l tcp -d 'Listens on this port of the loopback device as well' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -l spin -d 'How long another request is looked for after one until the service sleeps, in microseconds: as long as programs ask so often, none waits for it to wake' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -l config -d 'The directory of `ibacm_opts.cfg`, `ibacm_addr.cfg` and the other files, or of `acm_opts.cfg` and `acm_addr.cfg`' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -s O -l options -d 'The file of options' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -s A -l addresses -d 'The file of own names and addresses' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -l log -d 'The log; stdout and stderr are what they say. What `log_file` says without it, or standard error' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -l metrics-port -d 'Serves metrics for Prometheus on this port of the loopback device' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -l most-clients -d 'The most programs at a time' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -l open -d 'Lets other machines ask over --tcp, too. Whoever reaches the port can ask'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -l systemd -d 'Takes the sockets that systemd has opened for it'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -f -a "ctl" -d 'Asks a running service, or tells it to read its files again or to forget'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and not __fish_seen_subcommand_from ctl help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from ctl" -l socket -d 'The socket of the service, as it was given to `acm`' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from ctl" -l format -d 'How the answer is printed' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from ctl" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from ctl" -f -a "status" -d 'The endpoints, their groups and counters, and what the service has done'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from ctl" -f -a "known" -d 'What the service knows of others'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from ctl" -f -a "flush" -d 'Forgets what it knows of others, but for what files say'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from ctl" -f -a "reload" -d 'Reads its files again, as SIGHUP has it do'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from ctl" -f -a "metrics" -d 'What --metrics-port serves'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from ctl" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from help" -f -a "ctl" -d 'Asks a running service, or tells it to read its files again or to forget'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acm; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s e -l endpoints -d 'Shows all endpoints of the service, or one: its number, from 1' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s f -l address-format -d 'What -s and -d are' -r -f -a "i\t'An IP address'
n\t'A name'
l\t'A LID'
g\t'A GID'
u\t'An IP address, or a name that the system has one for, or else a LID'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s s -l source -d 'The source; the service chooses one without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s d -l destination -d 'The destinations: an address, or several such as `node[1-3,7]`' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s P -l perf -d 'Shows counters: of the service, `col` below each other; of endpoint N, of `all` endpoints, or of that with the address of -s (`s`)' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s S -l service -d 'The services: the path of a socket, which holds a `/`, or a host, or several such as `node[1-3]`; the machine\'s own without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s C -l repetitions -d 'How often each path is resolved' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s A -l addresses -d 'Writes names and addresses of the ports of this machine, or of a simulated one, to a file; `ibacm_addr.cfg` without a name' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s O -l options -d 'Writes options to a file, fitted to the size of the cluster that subnet administration tells, where there is a port; `ibacm_opts.cfg` without a name' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s D -l directory -d 'The directory of the files of -A and -O' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -l format -d 'How results are printed' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s I -l device -l umad -d 'The adapter, such as `mthca0` or `mlx5_0`; the first that has a link without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s p -l port -d 'The port of the adapter' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -l ibsim -d 'A real ibsim or `ibfabric sim` in another process, by the name of its sockets; without a name the one that the environment names, as Debian\'s libumad2sim does it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -l attach -d 'The same, always with a name' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -l node -d 'The node of the simulated fabric to speak through; its first without it, or `SIM_HOST`' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s v -l verify -d 'Asks subnet administration, through the service, whether the path is one of its own'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s c -l cached -d 'Only what the service knows already'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s V -l verbose -d 'Says more of what it does'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand acme" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -s R -l engine -d 'The routing engines, in order of preference. auto: minhop, then updn and lash if its routes have a credit loop' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -l seed -d 'The seed of everything random' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -l script -d 'Commands of the console and the moments at which they are run: lines of `at TIME COMMAND`' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -l socket -d 'The name of the sockets: what clients find in `IBSIM_SOCKNAME`, and what `--attach` names' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -l size -d 'The size of the device disk0, with K, M, G or T behind it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -l nbd -d 'Where programs find disk0 over NBD; without it `ibfabric-NAME.nbd` in the directory for sockets of the user, or for temporary files' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -l http -d 'The port of this machine at which browsers find the page; 0 for any that is free' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -s w -l write -d 'Writes the packets of disk0\'s queue pairs to a pcapng file' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -l payload -d 'How many bytes of each message are written to it, 0 to 4096' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -l capture -d 'Writes the packets of all queue pairs to a pcapng file, and says how many of them were not collected in time' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -l capture-payload -d 'How many bytes of the payload of each message are captured' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -l capture-ring -d 'How many bytes of each queue pair wait to be collected: a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -l format -d 'How the results of the tour are printed' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -l check -d 'Runs a self-test and exits: routes, names, paths, a block device over two paths whose links are cut, and a capture of its packets. Exit status: 0 all checks passed, 1 problems found'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -l no-http -d 'Serves no page'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand up" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and not __fish_seen_subcommand_from list start change stop read correlate help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and not __fish_seen_subcommand_from list start change stop read correlate help" -f -a "list" -d 'Lists the programs of this user whose queue pairs can be captured, their queue pairs and captures'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and not __fish_seen_subcommand_from list start change stop read correlate help" -f -a "start" -d 'Starts to capture queue pairs of a running program, and those that it makes later'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and not __fish_seen_subcommand_from list start change stop read correlate help" -f -a "change" -d 'Changes what a running capture keeps from now on'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and not __fish_seen_subcommand_from list start change stop read correlate help" -f -a "stop" -d 'Ends captures, and tells what is in their files'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and not __fish_seen_subcommand_from list start change stop read correlate help" -f -a "read" -d 'Shows the packets of a capture file, whoever wrote it'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and not __fish_seen_subcommand_from list start change stop read correlate help" -f -a "correlate" -d 'Matches the packets of both ends, and tells where the time of messages goes'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and not __fish_seen_subcommand_from list start change stop read correlate help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from list" -l pid -d 'The process; needed where there are several' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from list" -l device -d 'The address of an adapter: without it all adapters of a process are captured' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from list" -l messages -d 'Shows the last messages of this queue pair, which are always noted; may be given several times' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from list" -l format -d 'How the result is printed' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l pid -d 'The process; needed where there are several' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l device -d 'The address of an adapter: without it all adapters of a process are captured' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l qpn -d 'Only this queue pair, 1 for management datagrams; may be given several times. Without any all are captured' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l peer -d 'Only queue pairs that are connected to this address, GID or LID, and datagrams to and from there; may be given several times' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l service -d 'Only queue pairs that are connected to this port of `rdma_cm`, or, from 0x10000 on, this service id; may be given several times' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l direction -d 'Only what is sent, or only what is received' -r -f -a "send\t'From the adapter'
receive\t'To the adapter'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l opcode -d 'Only packets with this operation code, or whose operation has these words in its name, such as `rdma write`; may be given several times' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l payload -d 'How many bytes of the payload of each message are kept. Management datagrams are kept whole' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l ring -d 'How many bytes of each queue pair\'s packets wait to be written: a power of two' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l trigger -d 'Waits for this: `error` (the queue pair fails), `retransmission` or `drop` (a packet that came in has no effect). Then writes what was before it, and with `:N` behind it N packets more, and ends the trace of the queue pair' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l keep -d 'How many packets of a queue pair from before the trigger are written; all that its ring holds without it' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -s w -l write -d 'The pcapng file; - for standard output, which may be a pipe to tshark: then the command ends with the capture' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -s a -l autostop -d 'Ends by itself: `duration:S` seconds, `filesize:KB` kilobytes of 1000 bytes at most, `packets:N`' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -s b -l ring-buffer -d 'Begins another file, with a number and the time in its name: after `duration:S`, `filesize:KB` or `packets:N`; with `files:N` only the last N are kept' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -l format -d 'How the result is printed' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from start" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from change" -l pid -d 'The process; needed where there are several' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from change" -l device -d 'The address of an adapter: without it all adapters of a process are captured' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from change" -l direction -d 'Only what is sent, only what is received, or both' -r -f -a "send\t'From the adapter'
receive\t'To the adapter'
both\t'Either'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from change" -l opcode -d 'Only packets with this operation code, or whose operation has these words in its name; `all` for all. May be given several times' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from change" -l payload -d 'How many bytes of the payload of each message are kept' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from change" -l format -d 'How the result is printed' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from change" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from stop" -l pid -d 'The process; needed where there are several' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from stop" -l device -d 'The address of an adapter: without it all adapters of a process are captured' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from stop" -l format -d 'How the result is printed' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from stop" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from read" -l format -d 'How packets are printed: a line each, or an object each on a line of its own' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from read" -l qpn -d 'Shows only packets to or from this queue pair; may be given several times' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from read" -l opcode -d 'Shows only packets with this operation code, or whose operation has these words in its name, such as `rdma write`; may be given several times' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from read" -l class -d 'Shows only datagrams of this management class: sm, sa, pm, cm, acm, its name or its number' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from read" -l direction -d 'Shows only what was sent, or received, as far as the file tells' -r -f -a "send\t'From the adapter'
receive\t'To the adapter'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from read" -l udp-port -d 'A UDP port of RoCEv2 beside 4791; may be given several times' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from read" -l count -d 'Ends after so many packets that were shown' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from read" -s v -l verbose -d 'Shows every field, on several lines'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from read" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from correlate" -l qpn -d 'Only connections of this queue pair; can be given more than once' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from correlate" -l from -d 'Measures the time from each such event to the next one of --to: `qp 0x11 receive SEND`. After the direction there is SEND, WRITE, READ, ATOMIC, response, ACK, NAK, the name of a packet such as `SEND middle`, or nothing for any packet; `file 1` or `file 2` before it tells apart queue pairs that have the same number' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from correlate" -l to -d 'The events that are measured to' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from correlate" -l html -d 'Writes a page with a timeline, histograms and tables' -r -F
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from correlate" -l udp-port -d 'Another UDP port of RoCEv2 than 4791; can be given more than once' -r
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from correlate" -l format -d 'How the result is printed' -r -f -a "text\t'Lines for people'
json\t'One JSON object'"
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from correlate" -l messages -d 'Lists every message, which takes 136 bytes of memory each'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from correlate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from help" -f -a "list" -d 'Lists the programs of this user whose queue pairs can be captured, their queue pairs and captures'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from help" -f -a "start" -d 'Starts to capture queue pairs of a running program, and those that it makes later'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from help" -f -a "change" -d 'Changes what a running capture keeps from now on'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from help" -f -a "stop" -d 'Ends captures, and tells what is in their files'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from help" -f -a "read" -d 'Shows the packets of a capture file, whoever wrote it'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from help" -f -a "correlate" -d 'Matches the packets of both ends, and tells where the time of messages goes'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand capture; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma run rtrs nbd acm acme up capture help" -f -a "gen" -d 'Writes a fabric file'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma run rtrs nbd acm acme up capture help" -f -a "route" -d 'Computes, checks and dumps the forwarding tables of a fabric'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma run rtrs nbd acm acme up capture help" -f -a "check" -d 'Checks anybody\'s forwarding tables'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma run rtrs nbd acm acme up capture help" -f -a "sim" -d 'Simulates a fabric that ibsim\'s clients attach to'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma run rtrs nbd acm acme up capture help" -f -a "sm" -d 'Manages a subnet'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma run rtrs nbd acm acme up capture help" -f -a "tracer" -d 'Validates the ways that packets take, hop by hop'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma run rtrs nbd acm acme up capture help" -f -a "agent" -d 'Answers ibtracer and ibping at a port'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma run rtrs nbd acm acme up capture help" -f -a "rdma" -d 'RDMA from this machine without an adapter: RoCEv2 over UDP'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma run rtrs nbd acm acme up capture help" -f -a "run" -d 'Runs an unmodified verbs program on a simulated fabric or over RoCEv2'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma run rtrs nbd acm acme up capture help" -f -a "rtrs" -d 'Block devices over RTRS: served, measured and verified'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma run rtrs nbd acm acme up capture help" -f -a "nbd" -d 'Offers a device of a server to programs of this machine, over NBD'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma run rtrs nbd acm acme up capture help" -f -a "acm" -d 'Resolves names, addresses and routes for the programs of a machine, as ibacm does'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma run rtrs nbd acm acme up capture help" -f -a "acme" -d 'Asks services of IB ACM for paths, endpoints and counters, and writes their files, as `ib_acme` does'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma run rtrs nbd acm acme up capture help" -f -a "up" -d 'Everything at once on a simulated fabric: manager, names, agents, a block device and its trace'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma run rtrs nbd acm acme up capture help" -f -a "capture" -d 'Captures of queue pairs: started, read and compared'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and not __fish_seen_subcommand_from gen route check sim sm tracer agent rdma run rtrs nbd acm acme up capture help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from sim" -f -a "ctl" -d 'Tells a running simulator what to do, or asks it'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from sm" -f -a "ctl" -d 'Asks a running manager, or tells it to sweep'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from rdma" -f -a "devinfo" -d 'Shows what an adapter at an address is and takes'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from rdma" -f -a "serve" -d 'Serves `rdma bw` and `lat` of others, and the real `rping`, `ucmatose` and programs of perftest'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from rdma" -f -a "ping" -d 'Pings a server of rping'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from rdma" -f -a "cmatose" -d 'Exchanges messages with a server of ucmatose'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from rdma" -f -a "pingpong" -d 'Sends messages to and fro; with the real `ibv_rc_pingpong` at either end'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from rdma" -f -a "bw" -d 'Measures bandwidth'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from rdma" -f -a "lat" -d 'Measures latency'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from rtrs" -f -a "serve" -d 'Serves block devices to clients of RNBD: of this project, and to Linux kernels'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from rtrs" -f -a "bench" -d 'Measures and verifies a device of a server, of this project or of a Linux kernel'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from rtrs" -f -a "ctl" -d 'Shows statistics of a program that runs, and changes its paths'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from rtrs" -f -a "mount" -d 'Offers the same as files, as the kernel does below /sys/devices/virtual, until it is told to end'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from acm" -f -a "ctl" -d 'Asks a running service, or tells it to read its files again or to forget'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from capture" -f -a "list" -d 'Lists the programs of this user whose queue pairs can be captured, their queue pairs and captures'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from capture" -f -a "start" -d 'Starts to capture queue pairs of a running program, and those that it makes later'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from capture" -f -a "change" -d 'Changes what a running capture keeps from now on'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from capture" -f -a "stop" -d 'Ends captures, and tells what is in their files'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from capture" -f -a "read" -d 'Shows the packets of a capture file, whoever wrote it'
complete -c ibfabric -n "__fish_ibfabric_using_subcommand help; and __fish_seen_subcommand_from capture" -f -a "correlate" -d 'Matches the packets of both ends, and tells where the time of messages goes'
