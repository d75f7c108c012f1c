//! Metrics in the text exposition format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write as _};

/// Labels of a sample. Each is a name and a value.
pub type Labels = [(&'static str, String)];

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricType {
    /// A number that only increases.
    Counter,
    /// A number that increases and decreases.
    Gauge,
    /// Cumulative counts of observations by upper bound, with the sum and the number of all observations.
    Histogram,
}

/// A page of metrics, which is the response to a scrape.
///
/// ```
/// use ib_types::prometheus::{MetricType, Page};
///
/// let mut page = Page::default();
/// page.family("reads_total", MetricType::Counter, "Reads").sample(&[("path", "a".to_owned())], 7);
/// let text = "# HELP reads_total Reads\n# TYPE reads_total counter\nreads_total{path=\"a\"} 7\n";
/// assert_eq!(page.into_text(), text);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Page {
    text: String,
}

/// A metric on a [`Page`]. The caller adds samples to it.
#[derive(Debug)]
pub struct Family<'a> {
    text: &'a mut String,
    name: String,
}

impl Page {
    /// Adds a metric: its name, type and help text. The caller adds samples to the returned
    /// [`Family`].
    pub fn family(&mut self, name: &str, kind: MetricType, help: &str) -> Family<'_> {
        let kind = match kind {
            MetricType::Counter => "counter",
            MetricType::Gauge => "gauge",
            MetricType::Histogram => "histogram",
        };
        let text = &mut self.text;
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { text, name: name.to_owned() }
    }

    /// Returns the text of the page.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }
}

impl Family<'_> {
    /// Adds a sample.
    pub fn sample(&mut self, labels: &Labels, value: impl Display) {
        self.sample_of("", labels, value);
    }

    /// Adds a sample whose metric name has a suffix, such as `_bucket`, `_sum` or `_count` of a histogram.
    pub fn sample_of(&mut self, suffix: &str, labels: &Labels, value: impl Display) {
        let Self { text, name } = self;
        let _ = write!(text, "{name}{suffix}");
        for (index, (label, value)) in labels.iter().enumerate() {
            text.push(if index == 0 { '{' } else { ',' });
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(text, "{label}=\"{value}\"");
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(text, "{end} {value}");
    }
}
