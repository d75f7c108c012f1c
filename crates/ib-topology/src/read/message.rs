//! Detects messages of infiniband-diags in a file. They get there by commands like `ibnetdiscover > FILE 2>&1`.

/// Returns true if a line is a message that infiniband-diags or its libraries print to stderr.
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
    let Some((first, rest)) = line.split_once(' ') else { return false };
    if first.is_empty() || first.contains(['"', '#']) {
        return false;
    }
    let is_source_line =
        |(file, line): (&str, &str)| !file.is_empty() && line.chars().all(|c| c.is_ascii_digit());
    match first.strip_suffix(':') {
        Some("ibwarn") => true,
        Some(program) => !program.is_empty() && rest.starts_with("iberror: "),
        None => first
            .strip_suffix(';')
            .and_then(|place| place.split_once(".c:"))
            .is_some_and(is_source_line),
    }
}
