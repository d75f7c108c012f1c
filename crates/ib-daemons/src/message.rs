//! Messages on standard error.

use std::fmt::Arguments;
use std::io::Write as _;

use ib_types::text::escaped_message;

/// Prints a message on standard error; the arguments are those of `format!`.
macro_rules! say {
    ($($argument:tt)*) => { $crate::message::print(format_args!($($argument)*)) };
}
pub(crate) use say;

/// Prints a message on standard error, behind the name of the program. Control characters are escaped, since a message may
/// hold text of a peer.
pub fn print(message: Arguments<'_>) {
    let text = message.to_string();
    let text = escaped_message(&text);
    // With standard error closed there is no other place for the message.
    let _ = writeln!(std::io::stderr(), "ibfabric: {text}");
}
