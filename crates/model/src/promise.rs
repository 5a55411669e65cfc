//! Promises of an acknowledgement, and the faults and workloads that test them.

use crate::cell::Cell;
use crate::fault::{Act, Fault, Script, Target};
use crate::words::words;
use crate::workload::Workload;

words! {
    /// What acknowledged messages survive, the mildest first.
    Promise {
        /// Subscribers take fewer messages than are sent to them.
        SlowConsumer = "survives slow consumer",
        /// The link between clients and server is cut.
        CutLink = "survives cut link",
        /// The server is stopped, and goes on later.
        Freeze = "survives freeze",
        /// The server's disk is full, and has room again later.
        FullDisk = "survives full disk",
        /// The server is killed.
        Kill = "survives kill",
        /// The power of the server's machine is cut.
        PowerCut = "survives power cut",
    }
}

impl Promise {
    /// Returns the promise that the runs of a cell test: that of its hardest fault, which is what losses are due to, or
    /// without a fault that of its slow subscribers. `None` if nothing is acknowledged, or nothing happens to it.
    pub fn tested_in(cell: &Cell) -> Option<Promise> {
        let slow = || (cell.faults.is_empty() && is_slow(&cell.workload)).then_some(Promise::SlowConsumer);
        let tested = Promise::tested_by(&cell.faults).or_else(slow);
        tested.filter(|_| cell.workload.qos > 0)
    }

    /// Returns the promise that a script of faults tests: that of its hardest fault.
    fn tested_by(script: &Script) -> Option<Promise> {
        let of_fault = |fault: &Fault| match (fault.what, fault.who) {
            (Act::CutPower, Target::Server) => Some(Promise::PowerCut),
            (Act::Kill, Target::Server) => Some(Promise::Kill),
            (Act::FillDisk, Target::Server) => Some(Promise::FullDisk),
            (Act::Stop, Target::Server) => Some(Promise::Freeze),
            (Act::Cut, Target::Link) => Some(Promise::CutLink),
            _ => None,
        };
        script.0.iter().filter_map(of_fault).max()
    }

    /// Returns keys of a study that test it.
    pub fn keys(self) -> &'static str {
        match self {
            Promise::SlowConsumer => "rate = 100 and consume = 50",
            Promise::CutLink => "fault = \"cut link at 2s for 1s\"",
            Promise::Freeze => "fault = \"stop server at 2s for 1s\"",
            Promise::FullDisk => "fault = \"fill disk of server at 2s for 1s\"",
            Promise::Kill => "fault = \"kill server at 2s for 1s\"",
            Promise::PowerCut => "fault = \"cut power of server at 2s for 1s\"",
        }
    }
}

/// True if subscribers at times take fewer messages than one publisher sends.
fn is_slow(workload: &Workload) -> bool {
    let Some(taken) = workload.consume.profile() else { return false };
    workload.rate.profile().is_none_or(|sent| taken.per_ks().start() < sent.per_ks().end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_tests_what_its_hardest_fault_breaks() {
        let tested = |script: &str| Promise::tested_by(&Script::parse(script).unwrap());
        for promise in Promise::ALL {
            let fault = promise.keys().strip_prefix("fault = ").map(|text| text.trim_matches('"'));
            assert_eq!(fault.and_then(tested), fault.map(|_| *promise), "{promise}");
            assert_eq!(Promise::parse(promise.word()), Ok(*promise));
        }
        assert_eq!(tested("cut link at 0s for 8s, cut power of server at 5s for 1s"), Some(Promise::PowerCut));
        for other in ["none", "kill publishers at 1s", "cut clients at 1s", "restart server at 1s"] {
            assert_eq!(tested(other), None, "{other}");
        }
        let error = Promise::parse("survives flood").unwrap_err().to_string();
        assert!(Promise::ALL.iter().all(|promise| error.contains(promise.word())), "{error}");
    }

    #[test]
    fn subscribers_are_slow_if_they_take_less_than_is_sent() {
        let slow = |rate: &str, consume: &str| is_slow(&Workload::of([("rate", rate), ("consume", consume)]).unwrap());
        assert!(slow("100", "50") && slow("max", "50") && slow("100", "steps 1000 0.001 each 1s"));
        assert!(!slow("100", "100") && !slow("100", "200") && !slow("100", "max"));
        assert!(Promise::SlowConsumer < Promise::CutLink && Promise::Freeze < Promise::FullDisk);
    }
}
