//! `ibfabric gen`: generates a fabric file.

use std::path::Path;

use ib_topology::generate::{Kind, Options, generate};
use ib_topology::{Format, LinkRate, WriteError, write};

use crate::cli::{FileFormat, GenArgs};
use crate::failure::{Failure, Verdict};
use crate::output::Output;
use crate::output::write_result;

pub(crate) fn run(args: &GenArgs, output: &mut Output) -> Result<Verdict, Failure> {
    let words: Vec<&str> = args.parameters.iter().map(String::as_str).collect();
    let kind = Kind::parse(&args.kind, &words).map_err(Failure::unusable)?;
    let options = Options {
        seed: args.seed,
        rate: LinkRate { width: args.width, speed: args.speed },
        drop_links: args.drop_links,
        drop_switches: args.drop_switches,
    };
    let fabric = generate(&kind, &options).map_err(Failure::unusable)?;
    let format = match args.format {
        FileFormat::Ibsim => Format::Ibsim,
        FileFormat::Ibnetdiscover => Format::Ibnetdiscover,
    };
    let Some(path) = args.output.as_deref().filter(|path| *path != Path::new("-")) else {
        return match write(&fabric, format, output) {
            Ok(()) => Ok(Verdict::Good),
            Err(WriteError::Io(error)) => Err(error.into()),
            Err(error) => Err(Failure::unusable(error)),
        };
    };
    write_result(path, |out| write(&fabric, format, out))?;
    Ok(Verdict::Good)
}
