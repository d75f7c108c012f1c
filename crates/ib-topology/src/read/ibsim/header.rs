//! The comment in the header line of a node.

use ib_types::{Lid, Lmc, NodeKind};

use super::MAX_DESCRIPTION;
use crate::text::{Fault, Line};

/// The values in the comment of a node's header line.
pub(super) struct Header<'a> {
    /// The description. `None` if it is missing or empty; ibsim uses the name of the node then.
    pub(super) description: Option<&'a str>,
    pub(super) enhanced_port0: bool,
    pub(super) lid: Option<Lid>,
    pub(super) lmc: Lmc,
}

/// Reads `# "description" enhanced port 0 lid L lmc M`. All parts of this comment are optional.
///
/// A description without quotes ends where the next part begins.
pub(super) fn comment<'a>(line: &mut Line<'a>, kind: NodeKind) -> Result<Header<'a>, Fault> {
    let mut header = Header { description: None, enhanced_port0: false, lid: None, lmc: Lmc::ZERO };
    line.end("a comment or the end of the line")?;
    if !line.eat("#") {
        return Ok(header);
    }
    line.skip_blanks();
    let start = *line;
    let description = if line.eat("\"\"") {
        ""
    } else if line.peek() == Some(b'"') {
        line.quoted("a node's description")?
    } else {
        let rest = line.rest();
        let end = UNQUOTED_ENDS.iter().find_map(|end| rest.find(end)).unwrap_or(rest.len());
        line.seek(line.position() + end);
        &rest[..end]
    };
    if description.len() > MAX_DESCRIPTION {
        return Err(start.expected(&format!(
            "a description of up to {MAX_DESCRIPTION} bytes: ibsim truncates longer ones"
        )));
    }
    header.description = Some(description).filter(|description| !description.is_empty());
    line.skip_blanks();
    if kind.is_switch() {
        header.enhanced_port0 = line.eat_word("enhanced");
        if header.enhanced_port0 || line.eat_word("base") {
            line.demand("port 0")?;
            line.skip_blanks();
        }
        if line.eat_word("lid") {
            header.lid = line.lid()?;
            line.skip_blanks();
        }
        if line.eat_word("lmc") {
            header.lmc = line.lmc()?;
            line.skip_blanks();
        }
    }
    if line.peek().is_some() {
        return Err(line.expected(if kind.is_switch() {
            "`enhanced port 0`, `base port 0`, `lid`, `lmc` or the end of the line"
        } else {
            "the end of the line"
        }));
    }
    Ok(header)
}

/// Strings at which a description without quotes ends, in the order in which ibsim searches for them.
pub(crate) const UNQUOTED_ENDS: [&str; 4] = [" enhanced port ", " base port ", " lid ", " lmc "];

/// Returns the keyword with which GUID lines of a kind of node begin.
pub(super) const fn guid_keyword(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Switch => "switchguid",
        NodeKind::ChannelAdapter => "caguid",
        NodeKind::Router => "rtguid",
    }
}
