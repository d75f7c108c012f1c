//! Reads a fabric file of any format, and writes the fabric in another format.
//!
//! ```text
//! cargo run -p ib-topology --example convert -- FABRIC ibsim|ibnetdiscover|subnet-list
//! ```

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use ib_topology::read::{Included, read_with};
use ib_topology::{Format, write};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(format)) = (arguments.next(), arguments.next()) else {
        return Err("expected a file and a format".into());
    };
    let format = match format.as_str() {
        "ibsim" => Format::Ibsim,
        "ibnetdiscover" => Format::Ibnetdiscover,
        "subnet-list" => Format::SubnetList,
        other => return Err(format!("`{other}` is not ibsim, ibnetdiscover or subnet-list").into()),
    };
    // The name in an `include` line is relative to the directory of the including file.
    let mut resolver = |including: &str, name: &str| {
        let path = Path::new(including).parent().unwrap_or(Path::new("")).join(name);
        let bytes = std::fs::read(&path).map_err(|error| error.to_string())?;
        Ok(Included { name: path.display().to_string(), bytes })
    };
    let bytes = std::fs::read(&file)?;
    let start = Instant::now();
    let fabric = read_with(&file, &bytes, &mut resolver)?;
    let milliseconds = start.elapsed().as_secs_f64() * 1e3;
    eprintln!(
        "{} nodes, {} links, read in {milliseconds:.1} ms",
        fabric.node_count(),
        fabric.link_count()
    );
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    write(&fabric, format, &mut output)?;
    output.flush()?;
    Ok(())
}
