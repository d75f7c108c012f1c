//! A file of options as ibacm has them: what it says, what is strange about it, and how it is written.
//!
//! ```text
//! $ cargo run -p ib-acm --example options
//! route_prot Acm, an answer is waited for 500 ms
//! ibacm_opts.cfg:1: found `ms`, expected the end of the line; it is passed over
//! ibacm_opts.cfg:3: …
//! written and read again: the same
//! ```

use std::io::Write;

use ib_acm::config::Options;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    let file = "ibacm_opts.cfg";
    let read = Options::read(file, b"timeout 500 ms\nroute_prot acm\nfavourite_colour blue\n")?;
    let options = read.value;
    let ms = options.timeout.as_millis();
    writeln!(out, "route_prot {:?}, an answer is waited for {ms} ms", options.route_prot)?;
    for warning in &read.warnings {
        writeln!(out, "{}", warning.at(file))?;
    }
    let again = Options::read(file, options.to_file().as_bytes())?;
    assert!(again.warnings.is_empty(), "what is written has nothing strange");
    let same = if again.value == options { "the same" } else { "another one" };
    writeln!(out, "written and read again: {same}")?;
    Ok(())
}
