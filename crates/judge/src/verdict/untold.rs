//! What agents cannot tell of themselves: nobody is blamed by it, and nobody
//! called clean.

use pubmark_model::record::{AgentShare, RunRecord, Untold};

/// What is not known, and what that leaves open.
struct Words {
    of_one: &'static str,
    of_several: &'static str,
    so: &'static str,
}

fn words(what: Untold) -> Words {
    let (of_one, of_several, so) = match what {
        Untold::Pauses => {
            ("whether it stood still", "whether they stood still", "latencies may have such pauses in them")
        }
        Untold::OwnLag => (
            "how late its publishers were by their own doing",
            "how late their publishers were by their own doing",
            "that is in the latencies, and is not judged",
        ),
        Untold::ReceiveLag => (
            "how long messages waited for its loop",
            "how long messages waited for their loops",
            "that is in the latencies, and is not judged",
        ),
        Untold::Stalls => (
            "whether its subscribers heard nothing for a while",
            "whether their subscribers heard nothing for a while",
            "silences are not seen",
        ),
    };
    Words { of_one, of_several, so }
}

fn cannot(record: &RunRecord, what: Untold) -> Vec<&AgentShare> {
    record.agents.iter().filter(|agent| agent.cannot_tell.contains(&what)).collect()
}

/// The first of these that an agent cannot tell, in words; none where all tell all.
pub fn of(record: &RunRecord, any: &[Untold]) -> Option<String> {
    any.iter().find_map(|what| {
        let names: Vec<String> = cannot(record, *what).iter().map(|agent| format!("`{}`", agent.name)).collect();
        match names.as_slice() {
            [] => None,
            [one] => Some(format!("the agent {one} cannot tell {}", words(*what).of_one)),
            several => Some(format!("the agents {} cannot tell {}", several.join(", "), words(*what).of_several)),
        }
    })
}

/// All that agents cannot tell, and what that leaves open.
pub fn noted(record: &RunRecord) -> Vec<String> {
    let all = [Untold::Pauses, Untold::OwnLag, Untold::ReceiveLag, Untold::Stalls];
    let says = |what: Untold| Some(format!("{}: {}", of(record, &[what])?, words(what).so));
    all.into_iter().filter_map(says).collect()
}
