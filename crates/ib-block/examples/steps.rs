//! Prints the steps into which two commands are divided: a long write with FUA, and a read without FUA.
//!
//! ```text
//! $ cargo run -p ib-block --example steps
//! Write 9216 bytes at 0, fua true:
//!   Write 4096 bytes at 0
//!   Write 4096 bytes at 4096
//!   Write 1024 bytes at 8192
//!   Flush 0 bytes at 0
//! Read 5120 bytes at 0, fua false:
//!   Read 4096 bytes at 0
//!   Read 1024 bytes at 4096
//! ```

use std::io::Write;

use ib_block::{Command, Geometry, Operation, Plan};

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    // The device has 1 MiB, blocks of 512 bytes, a write cache and no FUA. A step has at most 4096 bytes.
    let geometry = Geometry { write_back: true, ..Geometry::new(1 << 20, 512) };
    for (operation, length, fua) in [(Operation::Write, 9216, true), (Operation::Read, 5120, false)]
    {
        let command = Command { operation, offset: 0, length, fua };
        writeln!(out, "{operation:?} {length} bytes at 0, fua {fua}:")?;
        for step in Plan::new(command, &geometry, 4096) {
            writeln!(out, "  {:?} {} bytes at {}", step.operation, step.length, step.offset)?;
        }
    }
    Ok(())
}
