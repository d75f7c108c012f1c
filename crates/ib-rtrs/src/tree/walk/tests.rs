use super::super::{ibtrs, rtrs};
use super::*;

const LAYOUTS: [&Layout; 2] = [&ibtrs::CLIENT, &rtrs::CLIENT];

struct Two;

impl Sessions for Two {
    type Session = u8;
    type Path = u8;

    fn sessions(&self) -> Vec<(String, u8)> {
        vec![("a".to_owned(), 0), ("b".to_owned(), 10)]
    }

    fn paths(&self, session: u8) -> Vec<(String, u8)> {
        vec![("ip:::1@ip:::2".to_owned(), session + 1)]
    }
}

#[test]
fn paths_resolve_to_files_and_directories() {
    let kind = |path| kind_of(LAYOUTS, &Two, path).map_err(|error| error.errno);
    for directory in [
        "",
        "/",
        "//",
        "rtrs-client",
        "/ibtrs-client/",
        "rtrs-client/a",
        "rtrs-client//b/paths",
        "rtrs-client/b/paths/ip:::1@ip:::2",
        "rtrs-client/b/paths/ip:::1@ip:::2/stats/",
    ] {
        assert_eq!(kind(directory), Ok(Kind::Directory), "{directory}");
    }
    for (file, is_writable) in [
        ("rtrs-client/a/add_path", true),
        ("ibtrs-client/a/mp_policy", true),
        ("rtrs-client/a/paths/ip:::1@ip:::2/state", false),
        ("rtrs-client/a/paths/ip:::1@ip:::2/cur_latency", false),
        ("rtrs-client/a/paths/ip:::1@ip:::2/remove_path", true),
        ("rtrs-client/a/paths/ip:::1@ip:::2/stats/rdma", true),
    ] {
        assert_eq!(kind(file), Ok(Kind::File { is_writable }), "{file}");
    }
    for nothing in [
        "x",
        "..",
        "rtrs-server",
        "rtrs-client/..",
        "rtrs-client/.",
        "rtrs-client/c",
        "rtrs-client/../rtrs-client",
        "rtrs-client/a/mp_policy",
        "ibtrs-client/a/mpath_policy",
        "rtrs-client/a/paths/..",
        "rtrs-client/a/paths/x/state",
        "rtrs-client/a/stats",
        "rtrs-client/a/paths/ip:::1@ip:::2/stats/rdma_lat",
        "rtrs-client/a/paths/ip:::1@ip:::2/stats/..",
    ] {
        assert_eq!(kind(nothing), Err(Errno::ENOENT), "{nothing}");
    }
    assert_eq!(kind("rtrs-client/a/add_path/x"), Err(Errno::ENOTDIR));
    let wrong = find_file(LAYOUTS, &Two, "rtrs-client").map(|_| ()).unwrap_err();
    assert_eq!((&wrong.path[..], wrong.errno), ("rtrs-client", Errno::EISDIR));
    let (_, of, _) = find_file(LAYOUTS, &Two, "rtrs-client/b/paths/ip:::1@ip:::2/state").unwrap();
    assert_eq!(of, Some(11));
}

#[test]
fn session_names_are_escaped_and_distinct() {
    assert_eq!(session_name(b"host one"), "host one");
    assert_eq!(session_name("hôte".as_bytes()), "hôte");
    assert_eq!(session_name(b"a\nb"), "a\\nb");
    assert_eq!(session_name(b"a\\nb"), "a\\\\nb");
    assert_eq!(session_name(&[b'a', 0xff]), "a\\xff");
    let named =
        distinct([("p".to_owned(), 1), ("q".to_owned(), 2), ("p".to_owned(), 3)].into_iter());
    let names: Vec<&str> = named.iter().map(|(name, _)| &name[..]).collect();
    assert_eq!(names, ["p", "q", "p#2"]);
}
