//! Builds the Debian package, the Python wheel and the container image from a release.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Format, LICENCES, Release, Result, SELF_TEST, STATIC, check, execute, output_of};
use crate::root;

/// Builds a package in the output directory, runs its self-test if requested, and returns its file name.
pub(super) fn build(format: Format, release: &Release, is_checked: bool) -> Result<String> {
    match format {
        Format::Deb => deb(release, is_checked),
        Format::Wheel => wheel(release, is_checked),
        Format::Image => image(release, is_checked),
    }
}

/// Builds the Debian package from the program and the libraries that cargo has built.
fn deb(release: &Release, is_checked: bool) -> Result<String> {
    // Debian requires a changelog in its own format.
    let time =
        output_of(Command::new("git").args(["log", "-1", "--format=%cD"]).current_dir(root()))?;
    let changelog = format!(
        "ibfabric ({}-1) unstable; urgency=medium\n\n  * Changes: https://github.com/ibfabric/ibfabric/blob/main/CHANGELOG.md\n\n \
         -- The ibfabric authors <ibfabric@users.noreply.github.com>  {}\n",
        release.version,
        time.trim(),
    );
    fs::write(release.output.join("changelog"), changelog)?;
    let words = ["--package", "ibfabric", "--profile", &release.profile, "--no-build", "--output"];
    let file = format!("ibfabric_{}-1_{}.deb", release.version, debian_architecture()?);
    let path = release.output.join(&file);
    let mut command = Command::new("cargo");
    command.arg("deb").args(words).arg(&path).current_dir(root());
    execute(&mut command).map_err(|error| {
        format!("{error}; if cargo-deb is missing, run `cargo install --locked cargo-deb`")
    })?;
    if is_checked {
        let unpacked = tempfile::tempdir()?;
        execute(Command::new("dpkg-deb").arg("-x").arg(&path).arg(unpacked.path()))?;
        let tree = unpacked.path().join("usr");
        check::program(&tree.join("bin/ibfabric"))?;
        check::preload_library(&tree)?;
    }
    Ok(file)
}

fn debian_architecture() -> Result<String> {
    let text = output_of(Command::new("dpkg").arg("--print-architecture"))?;
    Ok(text.trim().to_owned())
}

/// Builds the wheel. pip installs its data directory into the environment's prefix. So the program finds the preload
/// library in `../lib/ibfabric`, relative to its own directory.
fn wheel(release: &Release, is_checked: bool) -> Result<String> {
    let project = release.output.join("wheel");
    let data = project.join("ibfabric.data/data");
    if project.exists() {
        fs::remove_dir_all(&project)?;
    }
    fs::create_dir_all(&data)?;
    for directory in ["lib/ibfabric", "share"] {
        let to = data.join(directory);
        fs::create_dir_all(to.parent().unwrap_or(&data))?;
        execute(Command::new("cp").arg("-r").arg(release.tree.join(directory)).arg(&to))?;
    }
    fs::copy(root().join("packaging/python/pyproject.toml"), project.join("pyproject.toml"))?;
    for licence in ["LICENSE-MIT", "LICENSE-APACHE", "README.md"] {
        fs::copy(root().join(licence), project.join(licence))?;
    }
    fs::copy(release.output.join(LICENCES), project.join(LICENCES))?;
    let wheels = project.join("wheels");
    let mut command = Command::new("maturin");
    command.args(["build", "--locked", "--profile", &release.profile, "--out"]).arg(&wheels);
    execute(command.arg("--").args(STATIC).current_dir(&project))
        .map_err(|error| format!("{error}; if maturin is missing, run `pip install maturin`"))?;
    let built = fs::read_dir(&wheels)?.next().ok_or("maturin has built no wheel")??;
    let file = built.file_name().into_string().map_err(|_| "the wheel's name is not UTF-8")?;
    fs::copy(built.path(), release.output.join(&file))?;
    if is_checked {
        let environment = tempfile::tempdir()?;
        execute(Command::new("python3").args(["-m", "venv"]).arg(environment.path()))?;
        let pip = environment.path().join("bin/pip");
        execute(Command::new(pip).args(["install", "--quiet", "--no-index"]).arg(built.path()))?;
        let program = environment.path().join("bin/ibfabric");
        execute(Command::new(&program).arg("--version"))?;
        check::program(&program)?;
        check::preload_library(environment.path())?;
    }
    Ok(file)
}

/// Builds the image from `packaging/Containerfile` as an OCI archive.
fn image(release: &Release, is_checked: bool) -> Result<String> {
    let tag = format!("ibfabric:{}", release.version);
    let file = format!("{}-image.tar", release.name);
    let path = release.output.join(&file);
    // The image gets its /tmp from the release tree. It is created only here, so that the tarball has no /tmp.
    let temporary = release.tree.join("tmp");
    fs::create_dir_all(&temporary)?;
    let mut command = buildah("build");
    command.args(["--isolation", "chroot", "--tag", &tag, "--file"]);
    execute(command.arg(root().join("packaging/Containerfile")).arg(&release.tree))?;
    remove_if_present(&path)?;
    execute(buildah("push").arg(&tag).arg(format!("oci-archive:{}:{tag}", path.display())))?;
    if is_checked {
        let container = output_of(buildah("from").args(["--pull-never", &tag]))?;
        let mut command = buildah("run");
        command.args(["--isolation", "chroot", container.trim(), "--", "/usr/bin/ibfabric"]);
        let tested = execute(command.args(SELF_TEST));
        execute(buildah("rm").arg(container.trim()))?;
        tested?;
    }
    Ok(file)
}

/// Returns a command of buildah that needs no overlay file system.
fn buildah(command: &str) -> Command {
    let mut buildah = Command::new("buildah");
    buildah.args(["--storage-driver", "vfs", command]);
    buildah
}

fn remove_if_present(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
