//! x
use crate::command::summary::Summary;
pub(crate) fn page(
    _: &ib_routing::Subnet<'_>,
    _: &ib_routing::Routing,
    _: &ib_routing::check::CheckReport,
    _: &Summary,
) -> String {
    String::new()
}
