use ib_topology::generate::{Kind, Options, generate};

use super::*;

fn open(directory: &Path) -> (Cache, Vec<String>) {
    let mut warnings = Vec::new();
    let cache = Cache::open(Some(directory), &mut |text| warnings.push(text));
    (cache, warnings)
}

#[test]
fn cached_lids_outlive_the_sm() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let directory = place.path().join("cache/deep");
    let kind = Kind::parse("mesh", &["2x1"]).expect("the kind is valid");
    let fabric = Arc::new(generate(&kind, &Options::default()).expect("the mesh can be generated"));
    let (mut cache, warnings) = open(&directory);
    assert!(warnings.is_empty() && cache.lids.is_empty(), "{warnings:?}");
    let first = Lids::from([(Guid(1), (4, 7)), (Guid(2), (8, 11))]);
    let mut keep = |lids| cache.keep(lids, 0x12, &fabric).expect("the cache has a directory")();
    assert!(keep(first.clone()).is_empty());
    // A port that was removed from the subnet keeps its LIDs in the cache.
    assert!(keep(Lids::from([(Guid(2), (8, 11))])).is_empty());
    let (again, warnings) = open(&directory);
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(again.lids, first);
    let text = |name| std::fs::read_to_string(directory.join(name)).expect("the file can be read");
    assert_eq!(text("guid2mkey"), "0x0000000000000002 0x0000000000000012\n\n");
    assert_eq!(text("neighbors").matches(":").count(), 4 * fabric.link_count());
    assert_eq!(
        std::fs::read_dir(&directory).expect("the directory can be read").count(),
        3,
        "number of files in the cache directory"
    );
}

#[test]
fn unusable_cache_causes_one_warning() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    std::fs::write(place.path().join("guid2lid"), "0x1 0x1\n").expect("the file can be written");
    let (cache, warnings) = open(place.path());
    assert!(cache.lids.is_empty());
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("guid2lid:1:"), "{warnings:?}");
    let file = place.path().join("file");
    std::fs::write(&file, "").expect("the file can be written");
    let (mut cache, warnings) = open(&file.join("below"));
    assert!(warnings[0].contains("LIDs are not kept"), "{warnings:?}");
    assert!(cache.keep(Lids::new(), 0, &Arc::new(Fabric::new())).is_none());
}

#[test]
fn malformed_line_does_not_affect_other_ports() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let text = "0x1 0x0004 0x0004\n\njunk\n\n0x2 0x0005 0x0004\n\n0x3 0x0006 0x0006\n\n";
    std::fs::write(place.path().join(LIDS), text).expect("the file can be written");
    let (cache, warnings) = open(place.path());
    assert_eq!(cache.lids, Lids::from([(Guid(1), (4, 4)), (Guid(3), (6, 6))]));
    assert!(warnings.len() == 2 && warnings[0].contains("guid2lid:3:"), "{warnings:?}");
}

#[test]
fn ports_with_equal_lids_are_reported_with_their_lines() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let text = "0x0000000000000001 0x0004 0x0005\n\n0x0000000000000002 0x0005 0x0005\n";
    std::fs::write(place.path().join(LIDS), text).expect("the file can be written");
    let mut warnings = Vec::new();
    Cache::open(Some(place.path()), &mut |text| warnings.push(text));
    let expected = "guid2lid:3: found LID 0x0005 of port 0x0000000000000002, which port \
                    0x0000000000000001 also has in line 1; the line is ignored";
    assert!(warnings.len() == 1 && warnings[0].ends_with(expected), "{warnings:?}");
}
