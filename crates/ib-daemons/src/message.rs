//! Messages on standard error, and plural forms of nouns.

use std::fmt::Arguments;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use ib_types::text::escaped_message;

/// True if only errors are printed.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// Prints an error on standard error; takes the arguments of `format!`.
macro_rules! say {
    ($($argument:tt)*) => { $crate::message::print(format_args!($($argument)*)) };
}
pub(crate) use say;

/// Prints a note or a warning on standard error, unless only errors are printed; takes the arguments of `format!`.
macro_rules! note {
    ($($argument:tt)*) => { $crate::message::print_note(format_args!($($argument)*)) };
}
pub(crate) use note;

/// Suppresses notes and warnings, so that only errors are printed.
pub fn set_quiet() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

/// Returns true if only errors are printed.
#[must_use]
pub fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

/// Prints an error on standard error after the name of the program. Control characters are escaped, because the
/// message may contain text from another host.
pub fn print(message: Arguments<'_>) {
    let text = message.to_string();
    let text = escaped_message(&text);
    // If standard error is closed, the message is lost.
    let _ = writeln!(std::io::stderr(), "ibfabric: {text}");
}

/// Prints a note or a warning as [`print()`] does, unless only errors are printed.
pub fn print_note(message: Arguments<'_>) {
    if !is_quiet() {
        print(message);
    }
}

/// Formats a number with its noun `what`, which is passed in the singular; the plural is formed if needed.
#[must_use]
pub fn counted(number: impl TryInto<u64> + Copy, what: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let ending = match what {
        _ if number == 1 => "",
        what if what.ends_with("ch") || what.ends_with("sh") => "es",
        _ => "s",
    };
    format!("{number} {what}{ending}")
}
