//! The commands of the console, as help texts list them.

/// The commands of the console, which scripts have too, a line each.
pub const CONSOLE: &str = "\
Link \"node\"[port] \"node\"[port]      plugs a cable in
Unlink \"node\"[[port]]               pulls cables
ReLink \"node\"[[port]]               plugs pulled cables back in
Clear \"node\"[[port]]                pulls cables for good and resets what was set
Guid \"node\"[[port]] GUID            changes a GUID
Error \"node\"[[port]] RATE [ATTR]    loses so many per cent of the requests that the port should
                                    answer; without ATTR also of the packets that enter it
PerformanceSet \"node\"[port] PortCounters.NAME=VALUE
Baselid \"node\"[[port]] LID [LMC]    changes a LID
Fault \"node\"[[port]] loss=P corrupt=P duplicate=P reorder=P held=TIME delay=TIME | none
Flap \"node\"[port] DOWN UP TIMES     takes a link down and up
Power \"node\" on|off
MKey \"node\"[[port]] KEY [PROTECT]   sets a key that the manager does not know
Misroute \"node\" PORT PORT | none    sends by the second what the table has for the first
IgnoreLft \"node\" all | none | BLOCK ...
Swap \"node\"[port] \"node\"[port]      exchanges two cables
Dump [\"node\"[[port]]]               what nodes and ports say of themselves, and in force: the
                                    commands that brought about what is wrong with them
Route LID LID                       the way of a packet by the tables
Counters \"node\"[port]               the counters of a port
Attached                            who is attached
X CLIENT                            sends a client away
Addresses [\"node\"[[port]]]          the IP addresses of ports
Stats                               totals
Quit                                ends the simulator
";

/// How the commands of the console name nodes.
pub const CONSOLE_NAMES: &str = "\
Names need quotes only where they hold blanks; a quote that is part of a quoted name stands twice.
";
