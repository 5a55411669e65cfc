//! Objectives of recovery, such as `caught_up < 10s`: they need a fault, and a window that shows what follows it.

use crate::capacity::CapacityGoal;
use crate::fault::{self, Act, Script};
use crate::figure::{Figure, Unit};
use crate::objective::{Objective, ObjectiveTerm, Relation};
use crate::units::{MILLISECOND, Ns, SECOND, format_time};
use crate::workload::{SLICE_LEAST, SLICE_MOST, slice_of};
use serde_json::{Map, Value};

/// Figures that only a run with a fault has.
const OF_FAULTS: [Figure; 6] = [
    Figure::SILENCE,
    Figure::BEYOND,
    Figure::CAUGHT_UP,
    Figure::LISTENS_AFTER,
    Figure::CLIENTS_BACK,
    Figure::CLIENTS_NOT_BACK,
];
/// Objective of a load that is carried: no queue grows.
const CARRIED: &str = "backlog <= 1%";
/// Time after a fault in which clients are watched if no term has a bound of its own, ns.
const WATCHED: Ns = 5 * SECOND;

/// Reasons why an objective of recovery cannot be answered by runs with these faults.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecoveryError {
    /// The runs have no fault.
    #[error("`{0}` needs a fault: add one, such as `stop server at 5s for 2s`")]
    NoFault(String),
    /// A fault never ends.
    #[error("`{0}` never ends, so nothing recovers: use `cut clients at …`, or a fault of the server or the link")]
    NoEnd(String),
    /// A fault affects clients only.
    #[error("`{0}` leaves the server in reach, so nothing recovers: use a fault of the server or the link")]
    NoOutage(String),
    /// A fault begins too early.
    #[error("`{fault}` begins before there is anything to compare with: let it begin at {} or later", format_time(*.least_ns))]
    TooEarly {
        /// The fault.
        fault: String,
        /// Earliest start, ns from the window's beginning.
        least_ns: Ns,
    },
}

impl ObjectiveTerm {
    fn is_of_fault(&self) -> bool {
        OF_FAULTS.contains(&self.figure())
    }
}

impl Objective {
    /// True if a term is about a figure that only runs with faults have.
    pub fn is_of_fault(&self) -> bool {
        self.terms().iter().any(ObjectiveTerm::is_of_fault)
    }

    /// Returns what is asked of a run without a fault: the other terms or, without any, that the load is carried.
    pub fn without_fault(&self) -> Objective {
        let terms: Vec<&str> =
            self.terms().iter().filter(|term| !term.is_of_fault()).map(ObjectiveTerm::text).collect();
        let text = if terms.is_empty() { CARRIED.to_owned() } else { terms.join(" and ") };
        Objective::parse(&text).unwrap_or_else(|_| self.clone())
    }

    /// Returns the length of a window that shows whether a run with these faults meets the objective, ns.
    ///
    /// # Errors
    /// No run with these faults can meet it.
    pub fn recovery_window_ns(&self, faults: &Script) -> Result<Ns, RecoveryError> {
        let Some(first) = faults.0.first() else {
            let term = self.terms().iter().find(|term| term.is_of_fault());
            return Err(RecoveryError::NoFault(term.map_or_else(String::new, |term| term.text().to_owned())));
        };
        for fault in &faults.0 {
            match fault.killed_side() {
                Some(_) => return Err(RecoveryError::NoEnd(fault.to_string())),
                None if fault.who.is_clients() && fault.what != Act::Cut => {
                    return Err(RecoveryError::NoOutage(fault.to_string()));
                }
                None => {}
            }
        }
        let is_upper = |term: &&ObjectiveTerm| matches!(term.relation(), Relation::Below | Relation::AtMost);
        let times = self.terms().iter().filter(|term| term.is_of_fault() && term.figure().unit() == Unit::Ns);
        let bound_ns = times.filter(is_upper).map(|term| term.bound() as Ns).max().unwrap_or(WATCHED);
        let ends_ns = faults.0.iter().map(|fault| fault.until_ns().unwrap_or(fault.at_ns)).max().unwrap_or(0);
        // Two slices more show that it is over.
        let shown_ns = ends_ns.saturating_add(bound_ns);
        let window_ns = shown_ns.saturating_add((shown_ns / 9).clamp(2 * SLICE_LEAST, 2 * SLICE_MOST));
        let window_ns = window_ns.next_multiple_of(100 * MILLISECOND);
        let least_ns = slice_of(window_ns).next_multiple_of(SLICE_LEAST);
        match first.at_ns < least_ns {
            true => Err(RecoveryError::TooEarly { fault: first.to_string(), least_ns }),
            false => Ok(window_ns),
        }
    }
}

impl CapacityGoal {
    /// Returns the goal of a search that has the runs of these axes: what is about a fault is asked of cells with a
    /// fault only, and the others show what the load is without one.
    pub fn of_axes(&self, axes: &Map<String, Value>) -> CapacityGoal {
        let has_fault = axes.get("fault").is_some_and(|script| script != fault::NONE);
        match self.until.is_of_fault() && !has_fault {
            true => CapacityGoal { until: self.until.without_fault(), ..self.clone() },
            false => self.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_shows_the_bound_and_what_is_not_about_the_fault_holds_without_one() {
        let objective = Objective::parse("caught_up < 10s and lost = 0").unwrap();
        assert!(objective.is_of_fault() && !Objective::usual().is_of_fault());
        assert_eq!(objective.without_fault().to_string(), "lost = 0");
        assert_eq!(Objective::parse("clients_back_after < 1s").unwrap().without_fault().to_string(), "backlog <= 1%");
        let window = |script: &str| objective.recovery_window_ns(&Script::parse(script).unwrap());
        // 17 s, and two slices of a twentieth, which are a second at most.
        assert_eq!(window("stop server at 5s for 2s"), Ok(18_900 * MILLISECOND));
        assert_eq!(window("cut clients at 30s"), Ok(42 * SECOND));
        let twice = window("stop server at 5s for 2s, cut link at 8s for 2s");
        assert_eq!(twice, Ok(22 * SECOND), "the last to end");
        assert_eq!(window("none"), Err(RecoveryError::NoFault("caught_up < 10s".into())));
        let kill = "kill publishers at 5s";
        assert_eq!(window(kill), Err(RecoveryError::NoEnd(kill.into())));
        let stop = "stop publishers at 5s for 1s";
        assert_eq!(window(stop), Err(RecoveryError::NoOutage(stop.into())));
        let early = window("stop server at 100ms for 2s");
        let least_ns = 680 * MILLISECOND;
        assert_eq!(early, Err(RecoveryError::TooEarly { fault: "stop server at 100ms for 2s".into(), least_ns }));
    }
}
