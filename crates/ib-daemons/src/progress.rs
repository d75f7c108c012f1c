//! Shows the progress of a long task on a terminal.

use std::borrow::Cow;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A status line on standard error; disabled if standard error is not a terminal, or if only errors are printed.
pub struct Progress(ProgressBar);

impl Progress {
    /// Starts the status line with the name of the first step.
    #[must_use]
    pub fn start(what: &'static str) -> Self {
        let target = if crate::message::is_quiet() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(5)
        };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(spinner());
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// Shows the name of the next step.
    pub fn next(&self, what: impl Into<Cow<'static, str>>) {
        self.0.set_style(spinner());
        self.0.set_message(what);
    }

    /// Shows the name of the next step, and returns a progress bar for this step.
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
