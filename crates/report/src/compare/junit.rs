//! Gates as JUnit XML, which most programs for continuous integration read: a test
//! case a gate and cell that it looks at.

use super::gate::{GateOutcome, GateResult};
use crate::words::{BROKEN, OPEN};
use std::fmt::Write;

/// The gates as a suite of this name. A gate that is broken is a failure; one of which
/// nothing can be said is an error, as the machine's doing it is no failure.
pub fn junit(suite: &str, gates: &[GateResult]) -> String {
    let count = |wanted: fn(GateOutcome) -> bool| gates.iter().filter(|gate| wanted(gate.outcome)).count();
    let failures = count(|outcome| outcome == GateOutcome::Failed);
    let errors = count(|outcome| matches!(outcome, GateOutcome::TooNoisy | GateOutcome::Undecided));
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuites>\n  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\">",
        escape(suite),
        gates.len()
    );
    for gate in gates {
        let _ = write!(out, "    <testcase classname=\"{}\" name=\"{}\"", escape(suite), escape(&gate.gate));
        let (tag, kind, what) = match gate.outcome {
            GateOutcome::Passed => {
                out.push_str("/>\n");
                continue;
            }
            GateOutcome::Failed => ("failure", BROKEN, &gate.failed),
            GateOutcome::TooNoisy => ("error", "too noisy", &gate.too_noisy),
            GateOutcome::Undecided => ("error", OPEN, &gate.undecided),
        };
        let first = what.first().map(String::as_str).unwrap_or_default();
        let all = what.join("\n");
        let _ = writeln!(
            out,
            ">\n      <{tag} type=\"{kind}\" message=\"{}\">{}</{tag}>\n    </testcase>",
            escape(first),
            escape(&all)
        );
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

/// A text within XML. What XML 1.0 cannot hold at all is left out.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => out.push(c),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_gates_are_failures_and_open_ones_errors() {
        let mut gates = ["p99 > +10%", "p50 > +10%", "lost = 0", "x"]
            .map(GateResult::new)
            .map(|gate| GateResult { comparisons: 1, ..gate });
        gates[0].failed.push("a <b> & \"c\"\u{1b}[31m: +20 %".into());
        gates[1].too_noisy.push("a: −3 … +40 %".into());
        gates[2].undecided.push("a (no run)".into());
        let text = junit("pubmark ab", &gates.map(GateResult::settled));
        assert!(text.contains("tests=\"4\" failures=\"1\" errors=\"2\""), "{text}");
        assert!(text.contains("name=\"p99 &gt; +10%\""), "{text}");
        assert!(text.contains("message=\"a &lt;b&gt; &amp; &quot;c&quot;[31m: +20 %\""), "{text}");
        assert!(text.contains("<error type=\"too noisy\"") && text.contains("<error type=\"open\""), "{text}");
        assert!(text.contains("name=\"x\"/>") && !text.contains('\u{1b}'), "{text}");
    }
}
