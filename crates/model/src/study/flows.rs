//! Flows of a study: their keys on axes and on the command line, and the flows that are named.

use super::Axis;
use super::axis::listed;
use super::parse::Parser;
use crate::diagnostic::{Diagnostic, suggestion};
use crate::flow::{ALL, OWN_KEYS, PLAYING, key_of_flow};
use crate::setting::as_typed;

impl Parser<'_> {
    pub(super) fn set_of_flow(&mut self, name: &str, key: &str, text: &str) -> Result<(), Diagnostic> {
        let names: Vec<String> = self.study.flows.iter().map(|flow| flow.name.clone()).collect();
        let Some(flow) = self.study.flows.iter_mut().find(|flow| flow.name == name) else {
            let help =
                if names.is_empty() { "it has none".to_owned() } else { format!("its flows: {}", names.join(", ")) };
            return Err(Diagnostic::whole(format!("the study has no flow `{name}`")).help(help));
        };
        if !OWN_KEYS.contains(&key) {
            return Err(Diagnostic::whole(format!("a flow has no key `{key}`")).help(suggestion(key, OWN_KEYS)));
        }
        let axis = format!("flows.{name}.{key}");
        let values = key_of_flow(&axis).map(|(_, key)| listed(key, text)).transpose()?.unwrap_or_default();
        if let Some(axis) = self.study.axes.iter_mut().find(|known| known.name == axis) {
            axis.values = values;
            return Ok(());
        }
        if values.len() > 1 {
            self.study.axes.push(Axis { name: axis, values });
            return Ok(());
        }
        flow.set(key, text).map_err(Diagnostic::whole)
    }

    /// Leaves the flows of these names.
    pub(super) fn only_flows(&mut self, text: &str) -> Result<(), Diagnostic> {
        let wanted: Vec<&str> = text.split(',').map(str::trim).collect();
        let names: Vec<&str> = self.study.flows.iter().map(|flow| flow.name.as_str()).collect();
        if let Some(missing) = wanted.iter().find(|name| !names.contains(name)) {
            let message = format!("the study has no flow `{missing}`; its flows: {}", names.join(", "));
            return Err(Diagnostic::whole(message));
        }
        self.study.flows.retain(|flow| wanted.contains(&flow.name.as_str()));
        Ok(())
    }

    /// Refuses flows where one load is searched or two arms are compared, and names of flows that are none.
    pub(super) fn check_flows(&mut self) {
        let study = &self.study;
        let axes = study.axes.iter().chain(study.parts.iter().flat_map(|part| &part.axes));
        let names: Vec<&str> = study.flows.iter().map(|flow| flow.name.as_str()).chain([ALL]).collect();
        for value in axes.filter(|axis| axis.name == PLAYING).flat_map(|axis| &axis.values) {
            if study.flows.is_empty() || !names.iter().any(|name| value == name) {
                let message = format!("`playing = {}`: the study has no such flow", as_typed(value));
                let help = match study.flows.is_empty() {
                    true => "write [flows.NAME] tables".to_owned(),
                    false => format!("its flows: {}", names.join(", ")),
                };
                self.errors.push(Diagnostic::whole(message).help(help));
            }
        }
        let axes = study.axes.iter().chain(study.parts.iter().flat_map(|part| &part.axes));
        for (axis, flow) in axes.filter_map(|axis| Some((&axis.name, key_of_flow(&axis.name)?.0))) {
            if !names[..study.flows.len()].contains(&flow) {
                let message = format!("the axis `{axis}` is of the flow `{flow}`, and the study has no such flow");
                self.errors.push(Diagnostic::whole(message).help(format!("write a table [flows.{flow}]")));
            }
        }
        if study.settings.headroom == Some(true) && !study.flows.is_empty() {
            let message = "headroom = true cannot be combined with [flows.NAME]: a search changes one load";
            self.errors.push(Diagnostic::whole(message).help("leave one of them out, or write [capacity]"));
        }
        if let Some(goal) = study.capacity.as_ref().filter(|_| !study.recorded) {
            let wrong = goal.check_flows(&names[..study.flows.len()]);
            let wrong = wrong.map(|(what, help)| Diagnostic::whole(format!("[capacity]: {what}")).help(help));
            self.errors.extend(wrong);
        }
    }
}
