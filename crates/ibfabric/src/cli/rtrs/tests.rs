use super::*;

#[test]
fn sizes_have_units() {
    let cases = [("512", 512), ("4K", 4096), ("4k", 4096), ("2MiB", 2 << 20), ("1G", 1 << 30)];
    for (text, expected) in cases {
        assert_eq!(size(text), Ok(expected), "{text}");
    }
    for text in ["", "K", "-1", "1.5M", "99999999999T", "4X", "four"] {
        assert!(size(text).is_err(), "{text}");
    }
}

#[test]
fn exported_devices_are_parsed() {
    let export = |text: &str| text.parse::<ExportArg>();
    let (name, store) = ("disk0".to_owned(), Store::Memory(1 << 20));
    assert_eq!(export("disk0=mem:1M"), Ok(ExportArg { name: name.clone(), store }));
    let store = Store::File("/dev/ram0".into());
    assert_eq!(export("disk0=/dev/ram0"), Ok(ExportArg { name, store }));
    for text in ["disk0", "disk0=", "=x", "disk0=mem:", "disk0=mem:x"] {
        assert!(export(text).is_err(), "{text}");
    }
}

#[test]
fn iwarp_names_are_rejected_as_local_address() {
    for text in ["iwarp:10.0.0.1", "iw:10.0.0.1", "siw0", "iwp3s0", "iw_cxgb4", "cxgb4_0"] {
        let why = text.parse::<Endpoint>().expect_err("iWARP is not supported");
        assert_eq!(own_address(text), Err(why));
    }
}
