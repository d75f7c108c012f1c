//! Messages of infiniband-diags among the lines of a file, as `ibnetdiscover > FILE 2>&1` writes them.

/// Returns true if a line is a message of infiniband-diags or its libraries.
///
/// ```
/// use ib_topology::read::is_message;
///
/// assert!(is_message("ibwarn: [917] mad_rpc: _do_madrpc failed; dport (Lid 3)"));
/// assert!(is_message("ibroute: iberror: failed: dump tables: path lid"));
/// assert!(is_message("src/query_smp.c:197; umad (DR path slid 0; dlid 0; 0,1) bad status 110"));
/// assert!(!is_message("[1] \"host\"[1] # \"a: iberror: b.c:1; \""));
/// ```
#[must_use]
pub fn is_message(line: &str) -> bool {
    let is_path = |text: &str| !text.is_empty() && !text.contains([' ', '"', '#']);
    let has_location = |(file, rest): (&str, &str)| {
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        is_path(file) && rest.starts_with("; ")
    };
    line.starts_with("ibwarn: ")
        || line.split_once(": iberror: ").is_some_and(|(program, _)| is_path(program))
        || line.split_once(".c:").is_some_and(has_location)
}
