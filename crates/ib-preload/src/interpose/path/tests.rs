use super::*;

#[test]
fn own_paths_are_those_of_the_device() {
    let of = |path: &'static str| own_path(path.as_bytes());
    assert_eq!(of("/sys/class/infiniband"), Some(["/sys/class/infiniband", ""]));
    assert_eq!(of("/sys//class/infiniband/x/y"), Some(["/sys/class/infiniband", "/x/y"]));
    let mad = "/sys/class/infiniband_mad";
    assert_eq!(of("/sys/class/infiniband_mad/abi_version"), Some([mad, "/abi_version"]));
    assert_eq!(of("/dev/infiniband/umad0"), Some(["/dev/infiniband/", "umad0"]));
    assert_eq!(of("/dev/infiniband//issm0"), Some(["/dev/infiniband/", "issm0"]));
    assert_eq!(of("/dev/infiniband/"), Some(["/dev/infiniband", ""]));
    for path in ["", "sys/class/infiniband", "/sys/class/infiniband_verbs", "/sys/class", "/sys"] {
        assert_eq!(of(path), None, "{path}");
    }
    for path in ["/dev/infiniband/uverbs0", "/dev/infiniband/rdma_cm", "/dev/infinibandx"] {
        assert_eq!(of(path), None, "{path}");
    }
}
