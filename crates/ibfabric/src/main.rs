//! The `ibfabric` program; see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    ibfabric::main()
}
