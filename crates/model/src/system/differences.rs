//! Finds the effective settings of a system that differ from the vendor defaults.

use super::System;
use crate::options::Options;
use crate::secret::HIDDEN;
use crate::tuning::{DefaultValue, SettingDifference, Tuning, Use};
use crate::workload::Workload;
use serde_json::Value;

/// Reason for a value that the study or the command line set.
const SET: &str = "set for this run";

impl Tuning {
    /// Returns the effective differences with these options; `None` for an attached server, whose
    /// settings are unknown.
    pub fn of(system: &System, asked: Use, options: &Options, workload: &Workload) -> Option<Tuning> {
        if options.contains_key("endpoint") {
            return None;
        }
        let of_options = system.options.iter().filter_map(|spec| {
            let tuned = spec.tuned.as_ref()?;
            let value = options.get(&spec.name)?;
            let (stock, stays) = match &tuned.stock {
                DefaultValue::Value(stock) if stock == value => return None,
                DefaultValue::Value(stock) => (Some(stock.clone()), None),
                DefaultValue::Stays(why) => (None, Some(why)),
            };
            if tuned.with_durable && !workload.durable {
                return None;
            }
            let ours = spec.default.as_ref() == Some(value);
            let why = match (ours, stays) {
                (false, _) => SET.to_owned(),
                (true, None) => tuned.why.clone(),
                (true, Some(stays)) => format!("{}; {stays}", tuned.why),
            };
            let name = spec.name.clone();
            let shown = |value: &Value| if spec.is_secret() { HIDDEN.into() } else { value.clone() };
            let (value, stock) = (shown(value), stock.as_ref().map(shown));
            Some(SettingDifference { name, value, stock, why, moves: tuned.moves.clone() })
        });
        let fixed = system.fixed.iter().map(|fixed| SettingDifference {
            name: fixed.name.clone(),
            value: fixed.value.as_str().into(),
            stock: fixed.stock.as_deref().map(Value::from),
            why: fixed.why.clone(),
            moves: Vec::new(),
        });
        Some(Tuning { asked, differences: of_options.chain(fixed).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure_group::FigureGroup;
    use crate::setting::Settings;
    use serde_json::json;

    const SYSTEM: &str = r#"
title = "t"
about = "a"
licence = "MIT"
homepage = "h"
driver = "mock"
patterns = ["pairs"]

[options.saved_every_s]
kind = "count"
default = 1
stock = 1800
why = "a crash would lose half an hour"
moves = ["counts"]
with_durable = true
doc = "seconds between saves"

[options.window]
kind = "count"
default = 0
stock = 20
why = "20 make a round trip the limit"
doc = "messages on their way"

[options.heap]
kind = "count"
default = 50
stays = "its makers set an amount, which fits no limit"
why = "half of the memory given"
doc = "percent"

[fixed.statistics]
value = "off"
stock = "on"
why = "it would call home"
"#;

    fn options(system: &System, asked: Use) -> Options {
        system.options.iter().filter_map(|spec| Some((spec.name.clone(), spec.value(asked)?))).collect()
    }

    #[test]
    fn differences_in_force_are_listed_with_their_reasons() {
        let system = System::parse("t", "t.toml", SYSTEM).unwrap();
        let mut workload = Workload::resolve(&Settings::default()).unwrap();
        let names = |tuning: &Tuning| tuning.differences.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
        let tuned = Tuning::of(&system, Use::Tuned, &options(&system, Use::Tuned), &workload).unwrap();
        assert_eq!(names(&tuned), ["window", "heap", "statistics"], "what is not durable is not saved");
        workload.durable = true;
        let tuned = Tuning::of(&system, Use::Tuned, &options(&system, Use::Tuned), &workload).unwrap();
        assert_eq!(names(&tuned), ["saved_every_s", "window", "heap", "statistics"]);
        let saved = &tuned.differences[0];
        assert_eq!((&saved.value, &saved.stock), (&json!(1), &Some(json!(1800))));
        assert_eq!(
            (saved.why.as_str(), &saved.moves[..]),
            ("a crash would lose half an hour", &[FigureGroup::Counts][..])
        );
        assert!(tuned.differences[2].why.ends_with("which fits no limit"), "{:?}", tuned.differences[2]);

        let stock = options(&system, Use::Stock);
        assert_eq!((&stock["saved_every_s"], &stock["window"], &stock["heap"]), (&json!(1800), &json!(20), &json!(50)));
        let left = Tuning::of(&system, Use::Stock, &stock, &workload).unwrap();
        assert_eq!(names(&left), ["heap", "statistics"], "what cannot be theirs stays, and is said");

        // A user's value is effective in both server configurations, and is not a default.
        let mut set = stock;
        set.insert("window".into(), json!(5));
        let found = Tuning::of(&system, Use::Stock, &set, &workload).unwrap();
        assert_eq!((found.differences[0].name.as_str(), found.differences[0].why.as_str()), ("window", SET));
    }

    #[test]
    fn half_of_what_is_to_be_said_of_a_setting_is_refused() {
        for (from, to, says) in [
            ("stock = 20\n", "", "`why` without"),
            ("why = \"20 make a round trip the limit\"\n", "", "has no `why`"),
            ("stock = 20\n", "stock = 0\n", "is the default as well"),
            ("stock = 20\n", "stock = 20\nstays = \"x\"\n", "both"),
            ("moves = [\"counts\"]", "moves = [\"losses\"]", "losses"),
            ("value = \"off\"\n", "", "no `value`"),
        ] {
            let text = SYSTEM.replace(from, to);
            assert_ne!(text, SYSTEM, "{from}");
            let error = System::parse("t", "t.toml", &text).unwrap_err().to_string();
            assert!(error.contains(says), "should say {says:?}: {error}");
        }
    }
}
