use ib_types::LinkSpeed;

use crate::read::{Included, ibsim_with};

#[test]
fn included_files_are_read_in_place() {
    let mut requested = Vec::new();
    let mut resolver = |including: &str, name: &str| {
        requested.push(format!("{including} {name}"));
        let text = match name {
            "leaf" => "Switch 2 \"leaf\"\n[1] \"host\"[1]",
            "hosts" => "include \"host\"\n# no other\n",
            "host" => "Hca 1 \"host\"\n[1] \"leaf\"[1]\n",
            _ => return Err("no such file".to_owned()),
        };
        Ok(Included { name: format!("dir/{name}"), bytes: text.as_bytes().to_vec() })
    };
    let text = "# in parts\nspeed=7\ninclude \"leaf\"\ninclude \"hosts\" # all\nSwitch 2 \"b\"\n";
    let fabric = ibsim_with("whole", text.as_bytes(), &mut resolver).expect("valid files");
    assert_eq!(requested, ["whole leaf", "whole hosts", "dir/hosts host"]);
    assert_eq!((fabric.node_count(), fabric.link_count()), (3, 1));
    let (port, _) = fabric.links().next().expect("the fabric has a link");
    assert_eq!(fabric.port(port).rate.speed, LinkSpeed::Qdr);
}

#[test]
fn errors_name_the_included_file() {
    let parts = |_: &str, name: &str| {
        let text = match name {
            "bad" => "\nSwitch 0 \"a\"\n",
            "missing node" => "\n\nSwitch 1 \"a\"\n[1] \"b\"[1]\n",
            "self" => "include \"self\"\n",
            "odd" => "\n  \u{1}\n",
            name if name.starts_with('9') => {
                return Ok(Included {
                    name: name.to_owned(),
                    bytes: format!("include \"9{name}\"\n").into(),
                });
            }
            _ => return Err("no such file".to_owned()),
        };
        Ok(Included { name: name.to_owned(), bytes: text.as_bytes().to_vec() })
    };
    let cases = [
        ("include \"bad\"\n", "bad:2:8: found `0`, expected a number of ports, 1 to 254"),
        (
            "include \"missing node\"\n",
            "missing node:4:5: found a link to \"b\", expected the name of a node in the file",
        ),
        ("include \"self\"\n", "self:1:9: found an include of \"self\", which includes this file"),
        ("include \"odd\"\n", "odd:2:3: found control character 0x01, expected text"),
        (
            "#\n\ninclude \"none\"\n",
            "f:3:9: found an include, expected a file to read: no such file",
        ),
        ("include \"9\"\n", "99999999:1:9: found an include, expected files nested at most 9 deep"),
        (
            "Switch 2 \"a\"\ninclude \"bad\"\n",
            "f:2:1: found `include`, expected an empty line after the ports of \"a\": \
             ibsim skips the line that ends them",
        ),
    ];
    for (text, expected) in cases {
        let error = ibsim_with("f", text.as_bytes(), &mut { parts }).expect_err(text);
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn at_most_1000_files_are_included() {
    let mut count = 0;
    let mut resolver = |_: &str, _: &str| {
        count += 1;
        Ok(Included { name: format!("part {count}"), bytes: b"# nothing\n".to_vec() })
    };
    let text = "include \"x\"\n".repeat(1001);
    let error = ibsim_with("f", text.as_bytes(), &mut resolver).expect_err("too many");
    assert_eq!(error.to_string(), "f:1000:9: found an include, expected at most 1000 files");
}
