//! Generates the pictures of README.md: the output of `ibfabric selftest` as a drawing, and the web page of
//! `ibfabric up` in a browser.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use crate::{TaskResult, release_binary, root};

/// Width of a character in units of the drawing.
const LETTER: f64 = 8.4;
const LINE: f64 = 20.0;
const EDGE: f64 = 16.0;

/// Generates both pictures of README.md.
pub(crate) fn run() -> TaskResult {
    let binary = release_binary()?;
    let output = Command::new(&binary).args(["selftest", "--name", "picture"]).output()?;
    let said = String::from_utf8(output.stdout)?;
    if !output.status.success() {
        return Err(format!("the self-test exited with {}: {said}", output.status).into());
    }
    let text = format!("$ ibfabric selftest\n{said}");
    fs::write(root().join("docs/tour.svg"), draw(&text, 128))?;
    let status = Command::new("node")
        .args(["tests/browser/picture.mjs", "docs/page.png"])
        .env("IBFABRIC", &binary)
        .current_dir(root())
        .status()
        .map_err(|error| format!("node: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err("cannot take the picture of the web page; see tests/browser/README.md".into())
    }
}

/// Draws text as a terminal would show it, in lines of at most `columns` characters.
fn draw(text: &str, columns: usize) -> String {
    let lines: Vec<String> = text.lines().flat_map(|line| wrap(line, columns)).collect();
    let longest = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let width = 2.0 * EDGE + longest as f64 * LETTER;
    let height = 2.0 * EDGE + lines.len() as f64 * LINE;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" role=\"img\" aria-label=\"What ibfabric selftest prints\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1d2430\"/>\n\
         <g font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\" \
         fill=\"#e4e8ee\" xml:space=\"preserve\">\n"
    );
    for (number, line) in lines.iter().enumerate() {
        let y = EDGE + LINE * (number as f64 + 0.7);
        let (marked, rest) = match line.strip_prefix("ok") {
            Some(rest) => ("<tspan fill=\"#7bd88f\">ok</tspan>", rest),
            None => ("", line.as_str()),
        };
        let rest = rest.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        writeln!(svg, "<text x=\"{EDGE}\" y=\"{y:.1}\">{marked}{rest}</text>")
            .expect("a write to a string succeeds");
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// Folds a line as a terminal would, but only between words.
fn wrap(line: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in line.split_inclusive(' ') {
        let last = lines.last_mut().expect("the list is not empty");
        if last.chars().count() + word.trim_end().chars().count() > columns {
            // Continuation lines are indented by 24 characters, so that they are below the texts of the checks.
            lines.push(format!("{:24}{word}", ""));
        } else {
            last.push_str(word);
        }
    }
    lines
}
