//! Builds a folder of documents as a book with mdBook, and fails if mdBook reports an error.
//!
//! The documents are also read on the repository's site. There, links lead to source files, folders and documents that
//! the book does not contain. In the book, these links lead to the repository's site.

use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result};
use mdbook_driver::MDBook;
use mdbook_preprocessor::book::Book;
use mdbook_preprocessor::{Preprocessor, PreprocessorContext};

/// Extensions of files that are a part of the book.
const IN_BOOK: [&str; 3] = ["md", "png", "svg"];

fn main() -> Result<()> {
    let folder = std::env::args_os().nth(1).context("expected the folder of the documents")?;
    let mut book = MDBook::load(PathBuf::from(&folder))?;
    book.with_preprocessor(RepositoryLinks { folder: PathBuf::from(folder) });
    book.build()
}

/// Replaces links to files that are not in the book.
struct RepositoryLinks {
    /// The folder of the documents, relative to the root of the repository.
    folder: PathBuf,
}

impl Preprocessor for RepositoryLinks {
    fn name(&self) -> &str {
        "repository-links"
    }

    fn run(&self, context: &PreprocessorContext, mut book: Book) -> Result<Book> {
        let site: String = context
            .config
            .get("output.html.git-repository-url")?
            .context("expected output.html.git-repository-url in book.toml")?;
        book.for_each_chapter_mut(|chapter| {
            let Some(document) = &chapter.source_path else { return };
            let folder = self.folder.join(document.parent().unwrap_or(Path::new("")));
            chapter.content = self.replaced(&chapter.content, &folder, &site);
        });
        Ok(book)
    }
}

impl RepositoryLinks {
    /// Returns the text of a document in the given folder, with replaced links.
    fn replaced(&self, text: &str, folder: &Path, site: &str) -> String {
        let mut replaced = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("](") {
            replaced.push_str(&rest[..start + 2]);
            rest = &rest[start + 2..];
            let end = rest.find(')').unwrap_or(0);
            let (target, after) = rest.split_at(end);
            let (path, _) = target.split_once('#').unwrap_or((target, ""));
            let place = normal(&folder.join(path));
            let is_link =
                !path.is_empty() && !path.contains("://") && !path.contains(char::is_whitespace);
            let is_in_book = place.starts_with(&self.folder)
                && place.extension().is_some_and(|it| IN_BOOK.iter().any(|known| it == *known));
            if is_link && !is_in_book && place.exists() {
                replaced.push_str(&format!("{site}/blob/main/{}", place.display()));
                replaced.push_str(&target[path.len()..]);
            } else if let Some(folder) = path.strip_suffix("README.md") {
                // mdBook makes an index of a README, but leaves links to it unchanged.
                replaced.push_str(&format!("{folder}index.md{}", &target[path.len()..]));
            } else {
                replaced.push_str(target);
            }
            rest = after;
        }
        replaced + rest
    }
}

/// Removes the components `.` and `..` of a path.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_the_book_lead_to_the_repository() {
        // Cargo runs tests in the folder of the package.
        let links = RepositoryLinks { folder: PathBuf::from("src") };
        let text =
            "[a](../Cargo.toml#x) [b](c.md) [d](https://e.f) [g](#h) `i[j](k)` [l](README.md#m)";
        let expected = "[a](S/blob/main/Cargo.toml#x) [b](c.md) [d](https://e.f) [g](#h) `i[j](k)` [l](index.md#m)";
        assert_eq!(links.replaced(text, Path::new("src"), "S"), expected);
    }
}
