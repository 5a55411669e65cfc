//! Agents that measure wrongly, in real runs: a line of the correct agent in Python is changed, and the run fails with
//! the agent's name and both figures.

use crate::bindings::here;
use crate::support::{Benched, Place};
use pubmark_host::cache::cache_folder;
use pubmark_study::registry;
use std::path::Path;

const SYSTEM: &str = "zeromq-python";

/// A wrong agent: the file and the line that is changed, its replacement, the run that shows it, and the texts of the
/// error.
struct WrongAgent {
    name: &'static str,
    file: &'static str,
    right: &'static str,
    wrong: &'static str,
    run: &'static [&'static str],
    says: &'static [&'static str],
}

const WRONG: [WrongAgent; 6] = [
    WrongAgent {
        name: "only the first 100 latencies are recorded",
        file: "books.py",
        right: "                latencies.append(latency)\n                wholes.append(whole)\n",
        wrong: "                if len(latencies) < 100:\n                    latencies.append(latency)\n                    wholes.append(whole)\n",
        run: &[],
        says: &["agent subscribers contradicts itself: `latency` has 100 times, but 200 messages came"],
    },
    WrongAgent {
        name: "latencies are 10 ms too high",
        file: "books.py",
        right: "latency = max(0, whole - sent + free) if",
        wrong: "latency = 10_000_000 + max(0, whole - sent + free) if",
        run: &[],
        says: &["agent subscribers contradicts itself: `latency` is 10", "but `intended_latency` is "],
    },
    WrongAgent {
        name: "rates are whole numbers",
        file: "books.py",
        right: "round(work[\"rate\"] * 1000)",
        wrong: "int(work[\"rate\"]) * 1000",
        run: &["--rate", "5.9"],
        says: &["agent publishers contradicts the plan: publisher 0 offered 5 messages, but 6 were due in the window"],
    },
    WrongAgent {
        name: "what is more than 0.5 s late is passed over",
        file: "pubmark_agent.py",
        right: "            intended = due if dues else at\n",
        wrong: "            if dues and at - due > SECOND // 2:\n                due = window.start + next(dues)\n                continue\n            intended = due if dues else at\n",
        run: &["--pattern", "request-reply", "--fault", "stop subscribers at 100ms for 800ms", "--duration", "1200ms"],
        says: &[
            "agent publishers contradicts the plan: publisher 0 offered ",
            " messages, but 240 were due in the window",
        ],
    },
    WrongAgent {
        name: "all publishers draw the same Poisson gaps",
        file: "books.py",
        right: "work[\"seed\"] ^ (publisher << 32)",
        wrong: "work[\"seed\"] ^ (0 << 32)",
        run: &["--pairs", "3", "--set", "arrival=poisson"],
        says: &["agent publishers contradicts the plan: publisher ", "were due in the window"],
    },
    WrongAgent {
        name: "processor time is that of one thread",
        file: "pubmark_agent.py",
        right: "cpu = time.process_time_ns()",
        wrong: "cpu = time.thread_time_ns()",
        run: &["--rate", "4000", "--duration", "2s", "--set", "pacing=spin"],
        says: &["agent publishers contradicts what its host saw: `usage.cpu_ns` is 0.0", "but its process used "],
    },
];

impl WrongAgent {
    /// Makes a run with the wrong agent, or with the correct one if not `wrong`.
    fn play(&self, wrong: bool) -> Benched {
        let place = Place::new();
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents").join(SYSTEM);
        let folder = place.path("agent");
        std::fs::create_dir(&folder).unwrap();
        for entry in std::fs::read_dir(from).unwrap().flatten().filter(|entry| entry.path().is_file()) {
            std::fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
        }
        let file = folder.join(self.file);
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text.matches(self.right).count(), 1, "{} has `{}` once", self.file, self.right);
        if wrong {
            std::fs::write(&file, text.replace(self.right, self.wrong)).unwrap();
        }
        let python = cache_folder(&registry::built_in(SYSTEM).unwrap()).join("python/bin/python");
        let system = format!(
            "title = \"t\"\nabout = \"a\"\nlicence = \"MIT\"\nhomepage = \"https://example.org\"\ndriver = \"zeromq\"\n\
             agent = [{:?}, \"-B\", {:?}]\ntransports = [\"tcp\"]\n\
             patterns = [\"pairs\", \"fan-out\", \"request-reply\"]\n",
            python.display(),
            folder.join("agent.py").display()
        );
        std::fs::write(place.path("mine.toml"), system).unwrap();
        let bench = place.bench(&[&["mine.toml", "--transport", "tcp"], self.run].concat());
        place.assert_swept();
        bench
    }
}

#[test]
fn an_agent_that_measures_wrongly_fails_its_run_by_name() {
    if !here("an_agent_that_measures_wrongly_fails_its_run_by_name", &[SYSTEM]) {
        return;
    }
    for agent in WRONG {
        let bench = agent.play(true);
        let error = bench.error();
        assert!(agent.says.iter().all(|says| error.contains(says)), "{}: {error}\n{}", agent.name, bench.said);
    }
}

#[test]
fn the_right_agent_is_believed_in_the_same_runs() {
    if !here("the_right_agent_is_believed_in_the_same_runs", &[SYSTEM]) {
        return;
    }
    for agent in WRONG {
        assert_eq!(agent.play(false).error(), "", "{}", agent.name);
    }
}
