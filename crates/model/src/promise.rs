//! Promises of an acknowledgement, and the faults that test them.

use crate::fault::{Act, Fault, Script, Target};
use crate::words::words;

words! {
    /// What acknowledged messages survive, the mildest fault first.
    Promise {
        /// The link between clients and server is cut.
        CutLink = "survives cut link",
        /// The server is stopped, and goes on later.
        Freeze = "survives freeze",
        /// The server is killed.
        Kill = "survives kill",
        /// The power of the server's machine is cut.
        PowerCut = "survives power cut",
    }
}

impl Promise {
    /// Returns the promise that a script of faults tests: that of its hardest fault, which is what losses are due to.
    pub fn tested_by(script: &Script) -> Option<Promise> {
        let of_fault = |fault: &Fault| match (fault.what, fault.who) {
            (Act::CutPower, Target::Server) => Some(Promise::PowerCut),
            (Act::Kill, Target::Server) => Some(Promise::Kill),
            (Act::Stop, Target::Server) => Some(Promise::Freeze),
            (Act::Cut, Target::Link) => Some(Promise::CutLink),
            _ => None,
        };
        script.0.iter().filter_map(of_fault).max()
    }

    /// Returns a fault that tests it.
    pub fn fault(self) -> &'static str {
        match self {
            Promise::CutLink => "cut link at 2s for 1s",
            Promise::Freeze => "stop server at 2s for 1s",
            Promise::Kill => "kill server at 2s for 1s",
            Promise::PowerCut => "cut power of server at 2s for 1s",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_tests_what_its_hardest_fault_breaks() {
        let tested = |script: &str| Promise::tested_by(&Script::parse(script).unwrap());
        for promise in Promise::ALL {
            assert_eq!(tested(promise.fault()), Some(*promise));
            assert_eq!(Promise::parse(promise.word()), Ok(*promise));
        }
        assert_eq!(tested("cut link at 0s for 8s, cut power of server at 5s for 1s"), Some(Promise::PowerCut));
        for other in ["none", "kill publishers at 1s", "cut clients at 1s", "restart server at 1s"] {
            assert_eq!(tested(other), None, "{other}");
        }
        let error = Promise::parse("survives flood").unwrap_err().to_string();
        assert!(Promise::ALL.iter().all(|promise| error.contains(promise.word())), "{error}");
    }
}
