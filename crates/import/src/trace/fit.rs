//! From the rows of a trace to a study that sends similar traffic.

use super::counts::rounded;
use super::flow_fit::{FlowFit, TraceExtent};
use super::row::{TraceError, TraceRow};
use crate::flow_name::flow_name;
use crate::toml_text::{comment, quoted};
use crate::{ImportedStudy, Remark};
use pubmark_model::flow::MOST_FLOWS;
use pubmark_model::units::{Ns, SECOND, format_time};
use std::collections::HashMap;
use std::fmt::Write;

/// Most flows whose statistics are kept. Above this number the smaller half is dropped.
const KEPT_MAX: usize = 1_024;
/// Topics that the line on the rest names.
const NAMED_MAX: usize = 3;
/// Length of the window if no rate changes, at most.
const STEADY_WINDOW: Ns = 60 * SECOND;
/// Length of the window, at most: rates change over a day at most.
const WINDOW_MAX: Ns = 24 * 3_600 * SECOND;
/// Highest mean rate that is believed, messages per second.
const RATE_MAX: f64 = 1e8;

/// The statistics of a trace: a few MB at most, however long it is.
#[derive(Default)]
pub struct TraceFit {
    flows: HashMap<String, FlowFit>,
    first_ns: Option<u64>,
    last_ns: u64,
    messages: u64,
    /// Messages of flows that were dropped, and true if there were any.
    dropped: u64,
}

/// Choices for the study.
#[derive(Clone, Copy, Debug)]
pub struct TraceFitOptions<'a> {
    /// Name of the trace, for title and errors.
    pub file: &'a str,
    /// Factor of all rates.
    pub scale: f64,
    /// System of the study.
    pub system: &'a str,
}

impl TraceFit {
    /// Adds a message.
    pub fn add(&mut self, row: &TraceRow<'_>) {
        let at_ns = row.time_ns.saturating_sub(*self.first_ns.get_or_insert(row.time_ns));
        self.last_ns = self.last_ns.max(at_ns);
        self.messages += 1;
        if let Some(flow) = self.flows.get_mut(&*row.flow) {
            return flow.add(at_ns, row.bytes);
        }
        if self.flows.len() == KEPT_MAX {
            self.drop_small();
        }
        self.flows.entry(row.flow.clone().into_owned()).or_insert_with(FlowFit::new).add(at_ns, row.bytes);
    }

    /// Drops the smaller half of the flows.
    fn drop_small(&mut self) {
        let mut all: Vec<(u64, String)> = self.flows.iter().map(|(name, flow)| (flow.messages, name.clone())).collect();
        all.sort();
        for (messages, name) in all.drain(..KEPT_MAX / 2) {
            self.flows.remove(&name);
            self.dropped += messages;
        }
    }

    /// Returns a study with a flow for each of the 16 most frequent topics.
    ///
    /// # Errors
    /// The trace has no two times, or its times cannot be right.
    pub fn study(mut self, options: &TraceFitOptions<'_>) -> Result<ImportedStudy, TraceError> {
        let wrong = |message: String| TraceError { file: options.file.to_owned(), line: None, message };
        if self.last_ns == 0 {
            let message = "all messages have the same time, and a rate needs two. Record for longer";
            return Err(wrong(message.into()));
        }
        let gaps = self.messages.saturating_sub(1).max(1);
        let length_ns = (u128::from(self.last_ns) * u128::from(self.messages) / u128::from(gaps)) as u64;
        let rate = self.messages as f64 / (length_ns as f64 / 1e9);
        if rate > RATE_MAX {
            return Err(wrong(format!(
                "{rate:.0} messages/s cannot be right: whole numbers are nanoseconds. Write seconds with a decimal point"
            )));
        }
        let extent = TraceExtent { messages: self.messages, last_ns: self.last_ns, length_ns, scale: options.scale };
        let mut topics: Vec<(String, FlowFit)> = self.flows.drain().collect();
        topics.sort_by(|(one, a), (other, b)| b.messages.cmp(&a.messages).then_with(|| one.cmp(other)));
        let (mut names, mut tables, mut changes) = (Vec::new(), String::new(), false);
        for (topic, flow) in topics.iter_mut().take(MOST_FLOWS) {
            let name = flow_name(topic, "flow", &names);
            let table = flow.table(&name, topic, &extent);
            names.push(name);
            tables += &table.text;
            changes |= table.changes;
        }
        let mut text = format!(
            "# Fitted to {}: {} messages in {:.3} s, {}.\n",
            comment(options.file),
            self.messages,
            length_ns as f64 / 1e9,
            self.skew(&topics)
        );
        let mut remarks = Vec::new();
        if let Some(rest) = self.rest(&topics) {
            let _ = writeln!(text, "# {}", comment(&rest));
            remarks.push(Remark::Differs(rest));
        }
        let window_ns = length_ns.min(if changes { WINDOW_MAX } else { STEADY_WINDOW }).max(SECOND);
        if changes && length_ns > WINDOW_MAX {
            let compressed = "rates change over 24 h at most: the course is compressed to this time";
            let _ = writeln!(text, "# {compressed}");
            remarks.push(Remark::Differs(compressed.into()));
        }
        let _ = write!(
            text,
            "title = {}\nquestion = \"\"\n\n[workload]\nduration = \"{}\"\n{}{tables}\n[axes]\nsystem = [{}]\n",
            quoted(options.file),
            format_time(rounded(window_ns)),
            if changes { "warmup = \"0s\"\n" } else { "" },
            quoted(options.system)
        );
        Ok(ImportedStudy { text, remarks })
    }

    /// Describes how unevenly messages are spread over topics.
    fn skew(&self, topics: &[(String, FlowFit)]) -> String {
        let number = topics.len();
        let share = |count: usize| {
            let messages: u64 = topics.iter().take(count).map(|(_, flow)| flow.messages).sum();
            100.0 * messages as f64 / self.messages as f64
        };
        match number {
            1 => "1 topic".into(),
            2..10 => format!("{number} topics; the busiest has {:.0} %", share(1)),
            _ => {
                let than = if self.dropped > 0 { "more than " } else { "" };
                let (first, tenth) = (share(1), share(number / 10));
                format!("{than}{number} topics; the busiest has {first:.0} %, the busiest tenth {tenth:.0} %")
            }
        }
    }

    /// Names what has no table, in one line; `None` if there is nothing.
    fn rest(&self, topics: &[(String, FlowFit)]) -> Option<String> {
        let rest = topics.get(MOST_FLOWS..).filter(|rest| !rest.is_empty())?;
        let messages = rest.iter().map(|(_, flow)| flow.messages).sum::<u64>() + self.dropped;
        let shown = |topic: &str| topic.chars().take(40).collect::<String>();
        let mut named: Vec<String> = rest.iter().take(NAMED_MAX).map(|(topic, _)| shown(topic)).collect();
        if rest.len() > NAMED_MAX || self.dropped > 0 {
            named.push("…".into());
        }
        let than = if self.dropped > 0 { "more than " } else { "" };
        Some(format!(
            "left out, because a study has {MOST_FLOWS} flows: {than}{} topics with {:.1} % of the messages ({}). To keep \
             them, give several one name in the column `flow`",
            rest.len(),
            100.0 * messages as f64 / self.messages as f64,
            named.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: TraceFitOptions<'_> = TraceFitOptions { file: "t.csv", scale: 1.0, system: "mosquitto" };

    fn fit(rows: impl Iterator<Item = (u64, String, u64)>) -> TraceFit {
        let mut fit = TraceFit::default();
        rows.for_each(|(time_ns, flow, bytes)| fit.add(&TraceRow { time_ns, flow: flow.into(), bytes }));
        fit
    }

    #[test]
    fn two_flows_have_their_own_rates() {
        let rows = (0..6_000_u64).map(|number| {
            let slow = number.is_multiple_of(10);
            (number * 10_000_000, if slow { "b/1" } else { "a/1" }.to_owned(), if slow { 1_000 } else { 64 })
        });
        let study = fit(rows).study(&TraceFitOptions { scale: 2.0, ..OPTIONS }).unwrap();
        assert_eq!(study.remarks, []);
        for wanted in [
            "# Fitted to t.csv: 6000 messages in 60.000 s, 2 topics; the busiest has 90 %.",
            "# a/1: 5400 messages, 90.0 %\n[flows.a-1]\npairs = 1\nrate = 180\n",
            "[flows.b-1]\npairs = 1\nrate = 20\narrival = \"uniform\"",
            "payload = \"1KB\" # all messages",
            "duration = \"60s\"\n",
        ] {
            assert!(study.text.contains(wanted), "{wanted}: {}", study.text);
        }
        assert!(study.text.len() < 1_024, "{}", study.text.len());
    }

    #[test]
    fn flows_beyond_the_most_are_named_in_one_line() {
        let rows = (0..40_000_u64).map(|number| {
            let topic = if number.is_multiple_of(2) { number % 32 } else { 100 + number % 20_000 };
            (number * 1_000_000, format!("t/{topic}"), 64)
        });
        let fit = fit(rows);
        assert!(fit.flows.len() <= KEPT_MAX);
        let study = fit.study(&OPTIONS).unwrap();
        assert_eq!(study.text.matches("[flows.").count(), MOST_FLOWS);
        assert_eq!(study.text.matches("left out, because a study has 16 flows: more than ").count(), 1);
        assert!(study.text.contains("with 50.0 % of the messages"), "{}", study.text);
    }

    #[test]
    fn times_that_cannot_be_right_are_refused() {
        let error = |rows: &[u64]| {
            let rows = rows.iter().map(|time_ns| (*time_ns, "a".to_owned(), 64));
            fit(rows).study(&OPTIONS).unwrap_err().to_string()
        };
        assert!(error(&[5, 5]).contains("t.csv: all messages have the same time"));
        assert!(error(&[0, 1, 2, 3]).contains("whole numbers are nanoseconds"));
    }
}
