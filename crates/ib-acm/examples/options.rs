//! Reads an options file of ibacm, prints its warnings, and writes it again.
//!
//! ```text
//! $ cargo run -p ib-acm --example options
//! route_prot Acm, response timeout 500 ms
//! ibacm_opts.cfg:1: found `ms`, expected the end of the line; the found text is ignored
//! ibacm_opts.cfg:3: …
//! options after writing and reading: equal
//! ```

use std::io::Write;

use ib_acm::config::Options;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    let file = "ibacm_opts.cfg";
    let read = Options::read(file, b"timeout 500 ms\nroute_prot acm\nfavourite_colour blue\n")?;
    let options = read.value;
    let ms = options.timeout.as_millis();
    writeln!(out, "route_prot {:?}, response timeout {ms} ms", options.route_prot)?;
    for warning in &read.warnings {
        writeln!(out, "{}", warning.at(file))?;
    }
    let again = Options::read(file, options.to_file().as_bytes())?;
    assert!(again.warnings.is_empty(), "a written file causes no warnings");
    let result = if again.value == options { "equal" } else { "different" };
    writeln!(out, "options after writing and reading: {result}")?;
    Ok(())
}
