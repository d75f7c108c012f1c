//! Finds the fenced code blocks of a document, and the commands in them.

/// A fenced code block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The line number of the opening fence, counted from 1.
    pub(crate) line: usize,
    /// The info string: the language, and attributes of the block.
    pub(crate) info: String,
    pub(crate) lines: Vec<String>,
}

/// A command in a block of a document, with its expected result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The line number of the command, counted from 1.
    pub(crate) line: usize,
    /// The shell's input: the line after `$ `, and continuation lines after `> `.
    pub(crate) command: String,
    /// The expected output. `None` if the document shows no output, so that any output is accepted.
    pub(crate) output: Option<Vec<String>>,
    /// The expected exit status.
    pub(crate) status: i32,
    /// True if the command runs in the background.
    pub(crate) background: bool,
}

/// Returns the code blocks of a text. Fails if a fence is indented or a block is not closed.
pub(crate) fn blocks(text: &str) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, Block)> = None;
    for (number, line) in text.lines().enumerate() {
        match &mut open {
            Some((fence, block)) => {
                if line.trim() == *fence {
                    blocks.extend(open.take().map(|(_, block)| block));
                } else {
                    block.lines.push(line.to_owned());
                }
            }
            None => {
                let fence = &line[..line.len() - line.trim_start_matches('`').len()];
                if fence.len() >= 3 {
                    let info = line[fence.len()..].trim().to_owned();
                    open = Some((fence, Block { line: number + 1, info, lines: vec![] }));
                } else if line.trim_start().starts_with("```") {
                    return Err(format!(
                        "{}: found an indented fence, expected one at the start of a line",
                        number + 1
                    ));
                }
            }
        }
    }
    match open {
        Some((_, block)) => Err(format!("{}: the block is not closed", block.line)),
        None => Ok(blocks),
    }
}

impl Block {
    /// Returns the block's language, which is the first word of the info string.
    pub(crate) fn language(&self) -> &str {
        self.info.split_whitespace().next().unwrap_or("")
    }

    /// Returns NAME of the attribute `file=NAME`: the test writes the block to this file.
    pub(crate) fn file(&self) -> Option<&str> {
        self.info.split_whitespace().skip(1).find_map(|word| word.strip_prefix("file="))
    }

    /// Returns true if the attribute `numbers=vary` is set: numbers in the output are only examples.
    pub(crate) fn numbers_vary(&self) -> bool {
        self.info.split_whitespace().skip(1).any(|word| word == "numbers=vary")
    }

    /// Returns the block's commands: the lines that begin with `$ `, or all lines if no line does.
    pub(crate) fn steps(&self) -> Result<Vec<Step>, String> {
        let session = self.lines.iter().any(|line| line.starts_with("$ "));
        let mut steps: Vec<Step> = Vec::new();
        for (at, text) in self.lines.iter().enumerate() {
            let line = self.line + 1 + at;
            let command = if session { text.strip_prefix("$ ") } else { Some(text.as_str()) };
            if let Some(command) = command {
                if !command.trim().is_empty() && !command.starts_with('#') {
                    steps.push(Step::new(line, command));
                }
                continue;
            }
            let Some(step) = steps.last_mut() else {
                return Err(format!("{line}: found output, expected `$ ` and a command before it"));
            };
            match (text.strip_prefix("> "), &mut step.output) {
                (Some(more), None) => {
                    let whole = format!("{}\n{more}", step.command);
                    *step = Step::new(step.line, &whole);
                }
                (_, output) => output.get_or_insert_default().push(text.clone()),
            }
        }
        for step in &steps {
            let own = step.background && step.command.starts_with("ibfabric ");
            if own && step.output.is_none() && !step.command.contains('>') {
                let what = "a command in the background that shows no output to wait for";
                return Err(format!("{}: found {what}, expected a line such as READY", step.line));
            }
        }
        Ok(steps)
    }
}

impl Step {
    fn new(line: usize, command: &str) -> Self {
        let last = command.lines().last().unwrap_or("");
        let (words, comment) = last.rsplit_once(" #").unwrap_or((last, ""));
        let words = words.trim_end();
        let status = comment
            .split_once("exit status")
            .map(|(_, rest)| rest.trim_start_matches([':', ' ']))
            .map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>())
            .and_then(|digits| digits.parse().ok());
        Self {
            line,
            command: command.to_owned(),
            output: None,
            status: status.unwrap_or(0),
            background: words.ends_with('&') && !words.ends_with("&&"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_has_commands_with_output() {
        let text = "a\n```console\n$ one &\nREADY\n$ two \\\n>   three  # exit status: 2, and why\n\n$ four\n```\n";
        let blocks = blocks(text).expect("all blocks are closed");
        assert_eq!((blocks.len(), blocks[0].line, blocks[0].language()), (1, 2, "console"));
        let steps = blocks[0].steps().expect("the block is valid");
        assert_eq!(steps.len(), 3);
        assert_eq!((steps[0].line, steps[0].background), (3, true));
        assert_eq!(steps[0].output, Some(vec!["READY".to_owned()]));
        assert_eq!(steps[1].command, "two \\\n  three  # exit status: 2, and why");
        assert_eq!((steps[1].status, steps[1].background), (2, false));
        assert_eq!(steps[1].output, Some(vec![String::new()]));
        assert_eq!((steps[2].status, &steps[2].output), (0, &None));
    }

    #[test]
    fn block_without_prompts_has_commands_only() {
        let list = "```console\none  # what for\n# a remark\ntwo && three\n```\n";
        let steps =
            blocks(list).expect("all blocks are closed")[0].steps().expect("the block is valid");
        let commands: Vec<_> = steps.iter().map(|step| step.command.as_str()).collect();
        assert_eq!(commands, ["one  # what for", "two && three"]);
        assert!(!steps[1].background);
    }

    #[test]
    fn files_have_names() {
        let file = &blocks("````text file=a.conf\n```\n````\n").expect("all blocks are closed")[0];
        assert_eq!((file.file(), &file.lines[..]), (Some("a.conf"), &["```".to_owned()][..]));
    }

    #[test]
    fn invalid_blocks_are_reported() {
        assert_eq!(blocks("\n```console\n$ a\n"), Err("2: the block is not closed".to_owned()));
        assert!(blocks("* a\n  ```\n  ```\n").is_err());
        let lost = &blocks("```console\nlost\n$ a\n```").expect("all blocks are closed")[0];
        assert!(lost.steps().expect_err("output needs a command").starts_with("2: found output"));
        let silent =
            &blocks("```console\n$ ibfabric sim a &\n```").expect("all blocks are closed")[0];
        assert!(silent.steps().expect_err("output is required").starts_with("2: found a command"));
    }
}
