//! What agents cannot tell of themselves: nobody is blamed by it, and nobody
//! called clean.

use pubmark_model::record::{AgentShare, RunRecord, Untold};

/// What is not known, and what that leaves open.
fn words(what: Untold) -> (&'static str, &'static str) {
    match what {
        Untold::Pauses => ("whether it stood still", "latencies may have its own pauses in them"),
        Untold::OwnLag => {
            ("how late its publishers were by their own doing", "that is in the latencies, and is not judged")
        }
        Untold::ReceiveLag => ("how long messages waited for its loop", "that is in the latencies, and is not judged"),
        Untold::Stalls => ("whether its subscribers heard nothing for a while", "silences are not seen"),
    }
}

fn cannot(record: &RunRecord, what: Untold) -> Vec<&AgentShare> {
    record.agents.iter().filter(|agent| agent.cannot_tell.contains(&what)).collect()
}

fn named(agents: &[&AgentShare]) -> String {
    let names: Vec<String> = agents.iter().map(|agent| format!("`{}`", agent.name)).collect();
    match names.as_slice() {
        [one] => format!("the agent {one}"),
        several => format!("the agents {}", several.join(", ")),
    }
}

/// The first of these that an agent cannot tell, in words; none where all tell all.
pub fn of(record: &RunRecord, any: &[Untold]) -> Option<String> {
    any.iter().find_map(|what| {
        let agents = cannot(record, *what);
        (!agents.is_empty()).then(|| format!("{} cannot tell {}", named(&agents), words(*what).0))
    })
}

/// All that agents cannot tell, and what that leaves open.
pub fn noted(record: &RunRecord) -> Vec<String> {
    let all = [Untold::Pauses, Untold::OwnLag, Untold::ReceiveLag, Untold::Stalls];
    let says = |what: Untold| Some(format!("{}: {}", of(record, &[what])?, words(what).1));
    all.into_iter().filter_map(says).collect()
}
