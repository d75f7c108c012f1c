use crate::Chored;
#[derive(clap::Args)]
pub(crate) struct Args {}
pub(crate) fn run(_: &Args) -> Chored {
    Ok(())
}
