//! Runs programs with the preloaded library on a fabric of two hosts.

use std::path::PathBuf;
use std::process::{Command, Output};

mod child;
mod fabric;

use fabric::Fabric;

/// Environment variable that is set in the test process that runs with the preloaded library.
const UNDER_THE_LIBRARY: &str = "UMAD_PRELOAD_TEST_CHILD";

/// Returns the path of the library, which cargo builds in the directory of the test executables.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the path of the test executable is known");
    let library =
        test.parent().expect("the test executable is in a directory").join("libib_preload.so");
    assert!(library.exists(), "{} is not built", library.display());
    library
}

fn preloaded(program: &str, fabric: &Fabric) -> Command {
    let mut command = Command::new(program);
    command
        .env("LD_PRELOAD", library())
        .env("IBSIM_SOCKNAME", &fabric.name)
        .env_remove("IBSIM_SERVER_NAME")
        .env_remove("SIM_HOST")
        .env_remove("SIM_SET_ISSM");
    command
}

/// Runs a program of infiniband-diags. Returns `None` if the program is not installed.
fn run(program: &str, arguments: &[&str], fabric: &Fabric) -> Option<Output> {
    let path = ["/usr/sbin/", "/usr/bin/"].map(|directory| format!("{directory}{program}"));
    let Some(path) = path.iter().find(|path| PathBuf::from(path).exists()) else {
        eprintln!("skipped: {program} is not installed (Debian: infiniband-diags)");
        return None;
    };
    let output =
        preloaded(path, fabric).args(arguments).output().expect("the program can be started");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {}\n{error}", output.status);
    Some(output)
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn infiniband_diags_discover_the_fabric() {
    let fabric = Fabric::start("diags");
    if let Some(output) = run("ibnetdiscover", &[], &fabric) {
        let text = text(&output);
        assert!(text.contains("Ca\t1 \"H-0000000000000010\"\t\t# \"host-1\""), "{text}");
        assert!(text.contains("[1](11) \t\"H-0000000000000020\"[1] (21)"), "{text}");
    }
    if let Some(output) = run("smpquery", &["nodedesc", "-D", "0,1"], &fabric) {
        assert!(text(&output).contains("host-2"), "{}", text(&output));
    }
    if let Some(output) = run("smpquery", &["portinfo", "2", "1"], &fabric) {
        assert!(text(&output).contains("LinkWidthActive:.................4X"), "{}", text(&output));
    }
    if let Some(output) = run("ibstat", &[], &fabric) {
        let text = text(&output);
        for line in ["State: Active", "Rate: 40", "Base lid: 1", "Port GUID: 0x0000000000000011"] {
            assert!(text.contains(line), "{line:?} is missing in {text}");
        }
    }
}

#[test]
fn umad_descriptors_behave_as_those_of_the_kernel() {
    // The test starts its own executable again, with the preloaded library.
    if std::env::var_os(UNDER_THE_LIBRARY).is_some() {
        return child::check_descriptors();
    }
    let fabric = Fabric::start("child");
    let own = std::env::current_exe().expect("the path of the test executable is known");
    let output = preloaded(own.to_str().expect("the path is UTF-8"), &fabric)
        .env(UNDER_THE_LIBRARY, "1")
        .args(["--exact", "umad_descriptors_behave_as_those_of_the_kernel", "--nocapture"])
        .output()
        .expect("the program can be started");
    let (out, error) = (text(&output), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{error}", output.status);
    assert!(out.contains("1 passed"), "{out}");
}

#[test]
fn missing_simulator_is_reported_on_stderr() {
    let fabric = Fabric::start("gone");
    let mut command = preloaded("ls", &fabric);
    command.env("IBSIM_SOCKNAME", "nobody-has-this-name").env("UMAD_PRELOAD_PATIENCE", "0.1");
    let output = command.arg("/sys/class/infiniband").output().expect("the program can be started");
    assert!(!output.status.success());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("no simulator listens on @nobody-has-this-name:ctl"), "{error}");
}
