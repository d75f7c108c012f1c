//! The static files of the page, which are embedded into the binary.

use crate::up::web::File;

/// Builds the table of files from the files' names. The first file is the page itself.
macro_rules! files {
    ($page:literal $(, $name:literal)* $(,)?) => {
        &[
            File { name: "", kind: kind($page), content: content!($page) },
            $(File { name: $name, kind: kind($name), content: content!($name) }),*
        ]
    };
}

macro_rules! content {
    ($name:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/page/", $name))
    };
}

/// All static files.
pub(super) const FILES: &[File] = files![
    "index.html",
    "acm-panel.js",
    "address.js",
    "api.js",
    "app.css",
    "camera.js",
    "colours.js",
    "controls.js",
    "dom.js",
    "fabric-panel.js",
    "fabric.js",
    "flat.js",
    "force.js",
    "format.js",
    "gl.js",
    "health.js",
    "histogram.js",
    "icon.svg",
    "legend.js",
    "load-panel.js",
    "log-panel.js",
    "main.js",
    "names.js",
    "node-panel.js",
    "notice.js",
    "overlay.js",
    "path-panel.js",
    "picking.js",
    "plates.js",
    "problems-panel.js",
    "quadtree.js",
    "rows.js",
    "rtrs-panel.js",
    "shaders.js",
    "stage.js",
    "state.js",
    "styles.js",
    "table.js",
    "tabs.js",
    "path.js"
];

/// Returns the media type of a file with the given name.
const fn kind(name: &str) -> &'static str {
    match name.as_bytes() {
        [.., b'.', b'h', b't', b'm', b'l'] => "text/html; charset=utf-8",
        [.., b'.', b'c', b's', b's'] => "text/css; charset=utf-8",
        [.., b'.', b'j', b's'] => "text/javascript; charset=utf-8",
        [.., b'.', b's', b'v', b'g'] => "image/svg+xml",
        _ => panic!("file type without a media type"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_of_the_directory_are_embedded() {
        let directory = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/page"));
        let names = directory
            .expect("the directory can be read")
            .map(|entry| entry.expect("the directory can be read").file_name());
        let mut names: Vec<String> =
            names.map(|name| name.into_string().expect("the name is UTF-8")).collect();
        names.sort();
        let page = |name: &'static str| if name.is_empty() { "index.html" } else { name };
        let mut listed: Vec<&str> = FILES.iter().map(|file| page(file.name)).collect();
        listed.sort_unstable();
        assert_eq!(listed, names);
        assert!(FILES[0].kind.starts_with("text/html"));
        assert_eq!(kind("a.js"), "text/javascript; charset=utf-8");
    }
}
