//! Prints the signalling rate in Mbit/s of every link speed at every link width.
//!
//! ```text
//! $ cargo run -p ib-types --example rates
//! Mbit/s      1x       2x       4x       8x      12x
//! SDR       2500     5000    10000    20000    30000
//! …
//! XDR     212500   425000   850000  1700000  2550000
//! ```

use std::io::Write;

use ib_types::{LinkSpeed, LinkWidth};

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    write!(out, "Mbit/s")?;
    for width in LinkWidth::ALL {
        write!(out, "{:>8}", format!("{}x", width.lanes()))?;
        write!(out, " ")?;
    }
    writeln!(out)?;
    for speed in LinkSpeed::ALL {
        write!(out, "{:<6}", speed.to_string())?;
        for width in LinkWidth::ALL {
            write!(out, "{:>8} ", speed.megabits_per_second(width))?;
        }
        writeln!(out)?;
    }
    Ok(())
}
