use super::*;

fn read(variables: &[(&str, &str)]) -> Result<Option<Settings>, String> {
    Settings::read(|name| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    })
}

#[test]
fn environment_selects_the_port() {
    assert_eq!(read(&[]), Ok(None));
    assert_eq!(read(&[("IBFABRIC_DEVICE", "mlx5_0")]), Ok(None));
    let settings = read(&[("IBFABRIC_ATTACH", "lab"), ("IBFABRIC_NODE", "a:2")]);
    let settings = settings.expect("the settings are valid").expect("a port is specified");
    let port = AttachOptions { name: "lab".to_owned(), node: Some("a:2".to_owned()) };
    assert_eq!(settings, Settings { port: PortSetting::Attached(port), device: "rxe0".to_owned() });
    let settings = read(&[("IBFABRIC_ROCE", "127.0.0.1"), ("IBFABRIC_DEVICE", "mlx5_0")]);
    let roce = |is_exclusive, allow_zero_checksum| Settings {
        port: PortSetting::Roce {
            address: [127, 0, 0, 1].into(),
            is_exclusive,
            allow_zero_checksum,
        },
        device: "mlx5_0".to_owned(),
    };
    assert_eq!(settings, Ok(Some(roce(false, false))));
    for (exclusive, allow) in [("", ""), ("1", ""), ("", "1"), ("1", "1")] {
        let settings = read(&[
            ("IBFABRIC_ROCE", "127.0.0.1"),
            ("IBFABRIC_DEVICE", "mlx5_0"),
            ("IBFABRIC_EXCLUSIVE", exclusive),
            ("IBFABRIC_ALLOW_ZERO_CHECKSUM", allow),
        ]);
        assert_eq!(settings, Ok(Some(roce(exclusive == "1", allow == "1"))));
    }
}

#[test]
fn invalid_values_are_named() {
    for (variables, expected) in [
        (
            &[("IBFABRIC_ROCE", "nowhere")][..],
            "IBFABRIC_ROCE is \"nowhere\", expected an IP address",
        ),
        (&[("IBFABRIC_ROCE", "::1"), ("IBFABRIC_ATTACH", "lab")], "exclude each other"),
        (
            &[("IBFABRIC_ROCE", "::1"), ("IBFABRIC_EXCLUSIVE", "yes")],
            "IBFABRIC_EXCLUSIVE is \"yes\"",
        ),
        (&[("IBFABRIC_ROCE", "::1"), ("IBFABRIC_DEVICE", "../x")], "IBFABRIC_DEVICE is \"../x\""),
    ] {
        let error = read(variables).expect_err("the value is invalid");
        assert!(error.contains(expected), "{error}");
    }
}
