//! Help texts of the console's commands.

/// The commands of the console and of scripts, one per line.
pub const CONSOLE: &str = "\
Link \"node\"[port] \"node\"[port]      connects a cable
Unlink \"node\"[[port]]               disconnects cables
ReLink \"node\"[[port]]               reconnects disconnected cables
Clear \"node\"[[port]]                removes cables and resets faults
Guid \"node\"[[port]] GUID            changes a GUID
Error \"node\"[[port]] RATE [ATTR]    drops RATE per cent of the requests that the port should
                                    answer; without ATTR also of the packets that enter it
PerformanceSet \"node\"[port] PortCounters.NAME=VALUE
Baselid \"node\"[[port]] LID [LMC]    changes a LID
Fault \"node\"[[port]] loss=P corrupt=P duplicate=P reorder=P held=TIME delay=TIME | none
                                    P: a probability, 0 to 1; TIME: such as 250us or 10ms
Flap \"node\"[port] DOWN UP TIMES     takes a link down and up
Power \"node\" on|off
MKey \"node\"[[port]] KEY [PROTECT]   sets an M_Key that the SM does not know
Misroute \"node\" PORT PORT | none    forwards packets by the second port instead of the first
IgnoreLft \"node\" all | none | BLOCK ...
Swap \"node\"[port] \"node\"[port]      exchanges two cables
Dump [\"node\"[[port]]]               attributes of nodes and ports, and in force: the commands
                                    that have injected their faults
Route LID LID                       the path of a packet by the LFTs
Counters \"node\"[port]               the counters of a port
Attached                            attached clients and HCAs
X CLIENT                            disconnects a client
Addresses [\"node\"[[port]]]          the IP addresses of ports
Stats                               totals
Quit                                stops the simulator
";

/// How node names are quoted in commands of the console.
pub const CONSOLE_NAMES: &str = "\
Names with blanks are quoted; a quote within a quoted name is doubled.
";
