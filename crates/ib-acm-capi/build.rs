//! Sets the soname of the library. The number in the soname is the version of the binary interface.

#[expect(clippy::disallowed_macros, reason = "cargo reads standard output")]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let system = std::env::var("CARGO_CFG_TARGET_OS");
    if system.is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libibfabric_acm.so.0");
    }
}
