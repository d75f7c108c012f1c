//! The third-party components of the program and its libraries: their licences, and a bill of materials (SBOM).

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::{Result, output_of};
use crate::root;

/// Packages whose program or library is part of a release.
const ROOTS: [&str; 3] = ["ibfabric", "ib-preload", "ib-acm-capi"];

/// A crate of a registry that is linked into the program or a library.
pub(super) struct Component {
    name: String,
    version: String,
    licence: String,
    directory: PathBuf,
    /// Package URLs of the components that it depends on.
    dependencies: Vec<String>,
}

impl Component {
    fn url(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

/// Returns cargo's description of the packages and their dependencies for one target.
pub(super) fn metadata(target: Option<&str>) -> Result<Value> {
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let text = output_of(
        Command::new("cargo")
            .args(["metadata", "--locked", "--format-version", "1", "--filter-platform"])
            .arg(target.unwrap_or(&host))
            .current_dir(root()),
    )?;
    Ok(serde_json::from_str(&text)?)
}

/// Returns the version of the program.
pub(super) fn version(metadata: &Value) -> Result<String> {
    let packages = array(&metadata["packages"]);
    let found = packages.iter().find(|package| package["name"] == "ibfabric");
    let found = found.and_then(|package| package["version"].as_str());
    Ok(found.ok_or("cargo metadata has not reported the package ibfabric")?.to_owned())
}

/// Returns the linked crates in the order of their names. Proc macros and build scripts are not linked.
pub(super) fn linked(metadata: &Value) -> Result<Vec<Component>> {
    let id = |value: &Value| value["id"].as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, &Value> =
        array(&metadata["packages"]).iter().map(|package| (id(package), package)).collect();
    let nodes: BTreeMap<String, &Value> =
        array(&metadata["resolve"]["nodes"]).iter().map(|node| (id(node), node)).collect();
    let dependencies = |of: &str| -> Vec<String> {
        let all = nodes.get(of).map_or(&[][..], |node| array(&node["deps"]));
        let normal = all
            .iter()
            .filter(|edge| array(&edge["dep_kinds"]).iter().any(|kind| kind["kind"].is_null()));
        let ids = normal.filter_map(|edge| edge["pkg"].as_str());
        let linked = ids.filter(|id| {
            let targets = packages.get(*id).map_or(&[][..], |package| array(&package["targets"]));
            !targets.iter().any(|target| array(&target["kind"]).iter().any(|it| it == "proc-macro"))
        });
        linked.map(str::to_owned).collect()
    };
    let of_root = |package: &&&Value| ROOTS.iter().any(|name| package["name"] == **name);
    let mut pending: Vec<String> = packages.values().filter(of_root).map(|it| id(it)).collect();
    let mut seen = HashSet::new();
    let mut found = BTreeMap::new();
    while let Some(next) = pending.pop() {
        if !seen.insert(next.clone()) {
            continue;
        }
        let edges = dependencies(&next);
        let package = packages.get(&next).ok_or("a dependency has no package")?;
        if !package["source"].is_null() {
            let text = |field: &str| -> Result<String> {
                let value = package[field].as_str();
                Ok(value.ok_or_else(|| format!("package {next} has no {field}"))?.to_owned())
            };
            let manifest = PathBuf::from(text("manifest_path")?);
            let component = Component {
                name: text("name")?,
                version: text("version")?,
                licence: text("license")?.replace('/', " OR "),
                directory: manifest.parent().unwrap_or(Path::new("/")).to_owned(),
                dependencies: edges
                    .iter()
                    .filter_map(|id| packages.get(id))
                    .filter_map(|it| Some((it["name"].as_str()?, it["version"].as_str()?)))
                    .map(|(name, version)| format!("pkg:cargo/{name}@{version}"))
                    .collect(),
            };
            found.insert((component.name.clone(), component.version.clone()), component);
        }
        pending.extend(edges);
    }
    Ok(found.into_values().collect())
}

/// Returns the licences of the program, of the linked crates, and of the C library.
pub(super) fn licences(linked: &[Component], is_musl: bool) -> Result<String> {
    let mut text = String::from(
        "ibfabric is licensed under MIT OR Apache-2.0. Its source is at\n\
         https://github.com/ibfabric/ibfabric\n\n",
    );
    text += &fs::read_to_string(root().join("LICENSE-MIT"))?;
    // Many crates have the same text; it is printed once, after the names of all of them.
    let mut owners: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for component in linked {
        let files = licence_files(&component.directory)?;
        if files.is_empty() {
            let name = &component.name;
            return Err(format!("{name}: found no licence file in the crate").into());
        }
        for file in files {
            let owner = format!("{} {} ({})", component.name, component.version, component.licence);
            let licence = String::from_utf8_lossy(&fs::read(&file)?).replace("\r\n", "\n");
            owners.entry(licence.trim().to_owned()).or_default().push(owner);
        }
    }
    for (licence, owners) in owners {
        write!(text, "\n{}\n{}\n\n{licence}\n", "-".repeat(78), owners.join("\n"))?;
    }
    for (name, file) in c_library(is_musl)? {
        let licence = fs::read_to_string(&file).map_err(|error| {
            let file = file.display();
            format!("{file}: {error}: the program contains {name}, build on Debian or Ubuntu")
        })?;
        write!(text, "\n{}\n{name}\n\n{licence}\n", "-".repeat(78))?;
    }
    Ok(text)
}

/// Returns the files with licence texts in the directory of a crate.
fn licence_files(directory: &Path) -> Result<Vec<PathBuf>> {
    const PREFIXES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "UNLICENSE"];
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let is_licence = PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        if is_licence && entry.file_type()?.is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// Returns names and licence files of the Rust standard library and the C library that the program contains.
fn c_library(is_musl: bool) -> Result<Vec<(String, PathBuf)>> {
    let sysroot =
        output_of(Command::new("rustc").args(["--print", "sysroot"]).current_dir(root()))?;
    let rust = Path::new(sysroot.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    let mut found = vec![("the Rust standard library (MIT OR Apache-2.0)".to_owned(), rust)];
    if is_musl {
        found.push(("musl (MIT)".to_owned(), "/usr/share/doc/musl-dev/copyright".into()));
    } else {
        let glibc = "the GNU C library (LGPL-2.1-or-later), linked statically into the program";
        found.push((glibc.to_owned(), "/usr/share/doc/libc6-dev/copyright".into()));
        let text = "the GNU Lesser General Public License, version 2.1";
        found.push((text.to_owned(), "/usr/share/common-licenses/LGPL-2.1".into()));
    }
    Ok(found)
}

/// Returns the bill of materials as `CycloneDX` JSON.
pub(super) fn cyclonedx(linked: &[Component], version: &str, is_musl: bool) -> Result<String> {
    let rust = output_of(Command::new("rustc").arg("--version").current_dir(root()))?;
    let rust = rust.split(' ').nth(1).ok_or("rustc has not reported its version")?.to_owned();
    let (library, licence) = if is_musl { ("musl", "MIT") } else { ("glibc", "LGPL-2.1-or-later") };
    let component = |name: &str, version: &str, licence: &str, url: &str| {
        json!({ "type": "library", "bom-ref": url, "name": name, "version": version, "purl": url,
                "licenses": [{ "expression": licence }] })
    };
    let mut components: Vec<Value> =
        linked.iter().map(|it| component(&it.name, &it.version, &it.licence, &it.url())).collect();
    let url = format!("pkg:generic/rust-std@{rust}");
    components.push(component("rust-std", &rust, "MIT OR Apache-2.0", &url));
    components.push(json!({
        "type": "library", "bom-ref": library, "name": library,
        "licenses": [{ "expression": licence }],
    }));
    let names: HashSet<String> = linked.iter().map(Component::url).collect();
    let mut dependencies: Vec<Value> = Vec::new();
    for it in linked {
        let on: Vec<&String> = it.dependencies.iter().filter(|url| names.contains(*url)).collect();
        dependencies.push(json!({ "ref": it.url(), "dependsOn": on }));
    }
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": {
            "type": "application", "bom-ref": "ibfabric", "name": "ibfabric", "version": version,
            "purl": format!("pkg:cargo/ibfabric@{version}"),
            "licenses": [{ "expression": "MIT OR Apache-2.0" }],
        } },
        "components": components,
        "dependencies": dependencies,
    });
    Ok(format!("{bill:#}\n"))
}

/// Returns the elements of an array, or an empty slice if the value is not an array.
fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
