//! Builds packages that need no compiler: a static program, a tarball, a Debian package, a Python wheel and an image.
//!
//! Only the program is linked statically, so one build of the dependencies serves the program and the libraries.
//! The preload library remains dynamic: it is loaded into programs that use the system's C library.

mod check;
mod components;
mod formats;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;

use crate::{TaskResult, cargo_artifact, root};

/// The command of the self-test.
const SELF_TEST: &[&str] = &["selftest"];

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Arguments of `package`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Packages to build in addition to the tarball.
    #[arg(value_enum)]
    formats: Vec<Format>,
    /// Runs the self-test of every package. The static program runs it as the user `nobody`, in an empty root
    /// directory.
    #[arg(long)]
    check: bool,
    /// Cargo profile of the build.
    #[arg(long, default_value = "dist")]
    profile: String,
    /// Target whose name ends with `-musl`. Its packages have no libraries. [default: the host's target]
    #[arg(long, value_name = "TRIPLE", value_parser = musl, conflicts_with = "formats")]
    target: Option<String>,
}

/// A package in addition to the tarball.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Debian package; needs `cargo install --locked cargo-deb`.
    Deb,
    /// Python wheel; needs `pip install maturin`.
    Wheel,
    /// Container image; needs buildah.
    Image,
}

/// Parses the triple of a musl target.
fn musl(triple: &str) -> std::result::Result<String, String> {
    if triple.ends_with("-musl") {
        Ok(triple.to_owned())
    } else {
        Err("expected a target whose name ends with -musl".to_owned())
    }
}

/// A release as a directory tree that can be copied to `/usr` or `/usr/local`.
struct Release {
    /// Directory of all packages.
    output: PathBuf,
    /// The directory tree.
    tree: PathBuf,
    /// File name of the tarball without its suffix.
    name: String,
    version: String,
    profile: String,
}

/// Builds the tarball and the requested packages, and writes their check sums.
pub(crate) fn run(args: &Args) -> TaskResult {
    let release = build(args)?;
    let tarball = tar(&release)?;
    if args.check {
        check::program(&release.tree.join("bin/ibfabric"))?;
        if args.target.is_none() {
            check::preload_library(&release.tree)?;
        }
    }
    let mut files = vec![tarball, format!("{}.cdx.json", release.name)];
    for format in &args.formats {
        files.push(formats::build(*format, &release, args.check)?);
    }
    let sums = output_of(Command::new("sha256sum").args(&files).current_dir(&release.output))?;
    fs::write(release.output.join("SHA256SUMS"), sums)?;
    eprintln!("{}: {}, SHA256SUMS", release.output.display(), files.join(", "));
    Ok(())
}

/// Builds the program and the libraries, and fills the directory tree.
fn build(args: &Args) -> Result<Release> {
    let metadata = components::metadata(args.target.as_deref())?;
    let version = components::version(&metadata)?;
    let triple = args.target.as_deref();
    let processor = triple.and_then(|it| it.split('-').next()).unwrap_or(std::env::consts::ARCH);
    let suffix = if triple.is_some() { "-musl" } else { "" };
    let name = format!("ibfabric-{version}-{processor}-linux{suffix}");
    let output = root().join("target/package");
    let tree = output.join(&name);
    match fs::remove_dir_all(&tree) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => fs::create_dir_all(&tree)?,
    }
    let release = Release { output, tree, name, version, profile: args.profile.clone() };

    let mut common = vec!["--locked", "--profile", args.profile.as_str()];
    common.extend(triple.iter().flat_map(|triple| ["--target", triple]));
    let program = ["--package", "ibfabric", "--bin", "ibfabric", "--"];
    let program = [&common[..], &program, &STATIC].concat();
    let built = cargo_artifact("rustc", &program, "ibfabric")?;
    release.install(&built, "bin/ibfabric", 0o755)?;
    if triple.is_none() {
        let libraries = [("ib-preload", "ib_preload"), ("ib-acm-capi", "ibfabric_acm")];
        for (package, library) in libraries {
            let words = [&common[..], &["--package", package, "--lib"]].concat();
            let built = cargo_artifact("build", &words, library)?;
            release.install(&built, &format!("lib/ibfabric/lib{library}.so"), 0o644)?;
        }
        release.install_all("crates/ib-acm-capi/include", "include")?;
    }
    release.install_all("docs/man", "share/man/man1")?;
    let completions = [
        ("ibfabric.bash", "share/bash-completion/completions/ibfabric"),
        ("_ibfabric", "share/zsh/site-functions/_ibfabric"),
        ("ibfabric.fish", "share/fish/vendor_completions.d/ibfabric.fish"),
    ];
    for (from, to) in completions {
        release.install(&root().join("docs/completions").join(from), to, 0o644)?;
    }
    for unit in ["ibfabric-acm.service", "ibfabric-acm.socket", "ibfabric-sm.service"] {
        let to = format!("lib/systemd/system/{unit}");
        release.install(&root().join("docs").join(unit), &to, 0o644)?;
    }
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        release.install(&root().join(licence), &format!("{DOCUMENTS}/{licence}"), 0o644)?;
    }
    let linked = components::linked(&metadata)?;
    let licences = components::licences(&linked, triple.is_some())?;
    fs::write(release.output.join(LICENCES), &licences)?;
    release.install(&release.output.join(LICENCES), &format!("{DOCUMENTS}/{LICENCES}"), 0o644)?;
    let bill = release.output.join(format!("{}.cdx.json", release.name));
    fs::write(&bill, components::cyclonedx(&linked, &release.version, triple.is_some())?)?;
    release.install(&bill, &format!("{DOCUMENTS}/ibfabric.cdx.json"), 0o644)?;
    // The name of the file in the Debian package has no version.
    fs::copy(&bill, release.output.join("ibfabric.cdx.json"))?;
    Ok(release)
}

/// Directory of documents in the tree.
const DOCUMENTS: &str = "share/doc/ibfabric";
/// File name of the licences of everything that the program and the libraries contain.
const LICENCES: &str = "THIRD-PARTY-LICENSES.txt";
/// Options of rustc that link the program statically, without symbols.
const STATIC: [&str; 4] = ["-C", "target-feature=+crt-static", "-C", "strip=symbols"];

impl Release {
    /// Copies a file into the tree.
    fn install(&self, from: &Path, to: &str, mode: u32) -> Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let to = self.tree.join(to);
        fs::create_dir_all(to.parent().ok_or("the file has no directory")?)?;
        fs::copy(from, &to).map_err(|error| format!("{}: {error}", from.display()))?;
        Ok(fs::set_permissions(&to, fs::Permissions::from_mode(mode))?)
    }

    /// Copies all files of a directory of the checkout into a directory of the tree.
    fn install_all(&self, from: &str, to: &str) -> Result<()> {
        let directory = root().join(from);
        let entries = fs::read_dir(&directory);
        for entry in entries.map_err(|error| format!("{}: {error}", directory.display()))? {
            let entry = entry?;
            let name = entry.file_name();
            self.install(&entry.path(), &format!("{to}/{}", name.to_string_lossy()), 0o644)?;
        }
        Ok(())
    }
}

/// Writes the tarball and returns its file name. Two builds of one commit with equal trees result in equal tarballs.
fn tar(release: &Release) -> Result<String> {
    let time =
        output_of(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root()))?;
    let file = format!("{}.tar.gz", release.name);
    execute(
        Command::new("tar")
            .args([
                "--sort=name",
                "--owner=0",
                "--group=0",
                "--numeric-owner",
                "--mode=u=rwX,go=rX",
            ])
            .arg(format!("--mtime=@{}", time.trim()))
            .args(["-czf", &file, &release.name])
            .current_dir(&release.output),
    )?;
    Ok(file)
}

/// Runs a program; fails unless it succeeds.
fn execute(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|error| format!("{program}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{program}: {status}").into()) }
}

/// Runs a program and returns its standard output; fails unless it succeeds.
fn output_of(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    Err(format!("{program}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr)).into())
}
