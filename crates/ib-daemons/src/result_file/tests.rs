use std::os::unix::fs::symlink;

use super::*;

fn put(path: &Path, text: &str) -> io::Result<()> {
    replace(path, 0o777, |out| out.write_all(text.as_bytes()))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the directory can be read");
    let name =
        |entry: io::Result<fs::DirEntry>| entry.expect("the directory can be read").file_name();
    let mut names: Vec<_> = entries.map(|it| name(it).to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn failed_write_keeps_former_file() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let path = place.path().join("file");
    put(&path, "former").expect("the write succeeds");
    let failed = replace(&path, 0o777, |out| {
        out.write_all(b"half")?;
        Err(io::Error::other("disk full"))
    });
    assert!(failed.is_err());
    assert_eq!(fs::read_to_string(&path).expect("the file can be read"), "former");
    assert_eq!(names(place.path()), ["file"]);
    assert!(put(&place.path().join("none/file"), "").is_err());
}

#[test]
fn replacing_keeps_permissions_and_links() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let (path, link) = (place.path().join("file"), place.path().join("link"));
    put(&path, "one").expect("the write succeeds");
    fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("the mode can be changed");
    symlink("file", &link).expect("the link can be created");
    put(&link, "two").expect("the write succeeds");
    assert_eq!(fs::read_to_string(&path).expect("the file can be read"), "two");
    assert_eq!(fs::metadata(&path).expect("the file exists").mode() & 0o777, 0o640);
    assert_eq!(names(place.path()), ["file", "link"]);
    replace(&path, 0o600, |_| Ok::<_, io::Error>(())).expect("the write succeeds");
    assert_eq!(fs::metadata(&path).expect("the file exists").mode() & 0o777, 0o600);
    // The symbolic link points to a file that does not exist yet.
    symlink("later", place.path().join("early")).expect("the link can be created");
    put(&place.path().join("early"), "three").expect("the write succeeds");
    assert_eq!(
        fs::read_to_string(place.path().join("later")).expect("the file can be read"),
        "three"
    );
}

#[test]
fn device_is_written_directly() {
    put(Path::new("/dev/null"), "text").expect("the write succeeds");
    let error = put(Path::new("/dev/full"), "text").expect_err("the device has no space");
    assert_eq!(error.raw_os_error(), Some(28));
}
