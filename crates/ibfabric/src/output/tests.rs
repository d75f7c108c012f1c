use std::sync::{Arc, Mutex};

use super::*;

/// An output that keeps the bytes written to it.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no thread has panicked").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no thread has panicked").clone())
            .expect("the output is UTF-8")
    }
}

#[test]
fn printed_text_has_no_control_characters() {
    let sink = Sink::default();
    let mut output = Output(Box::new(sink.clone()));
    write!(output, "h\u{e9}\t\x1b[2J\r\n\u{9b}31m").expect("the sink accepts data");
    assert_eq!(sink.text(), "h\u{e9}\t\\u{1b}[2J\\r\n\\u{9b}31m");
}

#[test]
fn printed_json_is_escaped_and_equal() {
    let sink = Sink::default();
    let text = "\x1b[2J\u{9b}31m\u{202e}\u{7f}\n\u{e9}";
    Output(Box::new(sink.clone())).json(&text).expect("the sink accepts data");
    let printed = sink.text();
    assert_eq!(printed, "\"\\u001b[2J\\u009b31m\\u202e\\u007f\\n\u{e9}\"\n");
    let read: String = serde_json::from_str(&printed).expect("the output is JSON");
    assert_eq!(read, text);
}
