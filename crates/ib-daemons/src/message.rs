//! Messages on standard error.

use std::fmt::Arguments;
use std::io::Write as _;

use ib_types::text::escaped_message;

/// Prints a message on standard error; takes the arguments of `format!`.
macro_rules! say {
    ($($argument:tt)*) => { $crate::message::print(format_args!($($argument)*)) };
}
pub(crate) use say;

/// Prints a message on standard error after the name of the program. Control characters are escaped, because the
/// message may contain text from another host.
pub fn print(message: Arguments<'_>) {
    let text = message.to_string();
    let text = escaped_message(&text);
    // If standard error is closed, the message is lost.
    let _ = writeln!(std::io::stderr(), "ibfabric: {text}");
}
