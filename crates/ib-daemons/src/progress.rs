//! What long work shows on a terminal.

use std::borrow::Cow;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A line on standard error that names the work at hand; nothing when that is no terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// Starts a line that names the first piece of work.
    #[must_use]
    pub fn start(what: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
        bar.set_style(spinner());
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// Names the next piece of work.
    pub fn next(&self, what: impl Into<Cow<'static, str>>) {
        self.0.set_style(spinner());
        self.0.set_message(what);
    }

    /// Names the next piece of work and returns a bar for it.
    pub fn count(&self, what: impl Into<Cow<'static, str>>) -> &ProgressBar {
        self.next(what);
        let style = ProgressStyle::with_template("{spinner} {msg} {wide_bar} {percent} % {eta}")
            .expect("the template is well formed");
        self.0.set_style(style);
        &self.0
    }
}

fn spinner() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {msg} {elapsed}").expect("the template is well formed")
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
