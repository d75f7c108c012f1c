use super::*;

#[test]
fn valid_values_are_parsed() {
    assert_eq!(text(b" 1 \n"), Ok("1"));
    assert_eq!(action("1"), Ok(()));
    assert_eq!((reset("0"), reset("1")), (Ok(()), Ok(())));
    assert_eq!(
        (attempts("-1"), attempts("0"), attempts("9999")),
        (Ok(None), Ok(Some(0)), Ok(Some(9999)))
    );
    for (text, expected) in [
        ("0", Policy::RoundRobin),
        ("Round-Robin", Policy::RoundRobin),
        ("MI", Policy::MinInflight),
        ("min-inflight", Policy::MinInflight),
        ("ml", Policy::MinLatency),
        ("2", Policy::MinLatency),
    ] {
        assert_eq!(policy(text), Ok(expected), "{text}");
    }
    let path = address("ip:10.0.0.1,ip:10.0.0.2").expect("the addresses are valid");
    assert_eq!(path.to_string(), "ip:10.0.0.1@ip:10.0.0.2");
}

#[test]
fn invalid_values_are_refused_with_found_and_expected() {
    assert_eq!(text(&[0xff]), Err("found invalid UTF-8".to_owned()));
    assert_eq!(text(&[b'1'; 4097]), Err("found 4097 bytes, expected at most 4096".to_owned()));
    assert_eq!(action("yes"), Err("found `yes`, expected 1".to_owned()));
    assert_eq!(action("1\n1"), Err("found `1\\n1`, expected 1".to_owned()));
    assert_eq!(reset("2"), Err("found `2`, expected 0 or 1".to_owned()));
    for bad in ["-2", "10000", "", "+", "many", "1.5"] {
        assert_eq!(attempts(bad), Err(format!("found `{bad}`, expected -1 to 9999")));
    }
    assert!(policy("3").is_err() && policy("").is_err());
    assert!(address("10.0.0.1").is_err() && address("ip:").is_err() && address("").is_err());
}
