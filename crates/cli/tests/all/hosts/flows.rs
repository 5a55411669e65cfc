//! Several flows over three hosts: each flow has agents of its own on each of them.

use super::{Network, WHY};
use crate::left_out::leave_out;
use crate::support::{Place, assert_adds_up, stderr};
use serde_json::Value;

fn counts(value: &Value) -> [u64; 5] {
    ["sent", "acked", "expected", "delivered", "lost"].map(|name| value["counts"][name].as_u64().unwrap())
}

#[test]
fn flows_topics_and_clients_that_come_and_go_count_exactly_over_hosts() {
    let Some(network) = Network::new('w') else { return leave_out("flows_topics_and_clients", WHY) };
    let place = Place::new();
    let hosts = network.hosts(&place);
    let mut command = place.command(&["bench", "mosquitto", "--duration", "2s", "--warmup", "300ms", "--repeats", "1"]);
    command.args(["--flow", "telemetry: pairs=3, rate=100, qos=1, churn=20/s", "--set", "topics=50"]);
    command.args(["--flow", "alarms: fan-out, subscribers=4, rate=50", "--hosts", &hosts, "--out", "r"]);
    let output = command.output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let run = &place.records("r")[0];
    assert_adds_up(run);
    assert_eq!(counts(run), [700, 600, 1000, 1000, 0]);
    let flows = run["flows"].as_array().unwrap();
    assert_eq!(flows.iter().map(counts).collect::<Vec<_>>(), [[600, 600, 600, 600, 0], [100, 0, 400, 400, 0]]);
    assert_eq!(["due", "connected", "failed"].map(|name| run["churn"][name].as_u64().unwrap()), [40, 40, 0]);
    let mut played: Vec<_> = run["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| ["flow", "host"].map(|name| agent[name].as_str().unwrap().to_owned()))
        .collect();
    played.sort();
    let expected = [
        ["alarms", "publishers"],
        ["alarms", "subscribers"],
        ["telemetry", "publishers"],
        ["telemetry", "subscribers"],
    ];
    assert_eq!(played, expected);
    assert_eq!(network.processes(), Vec::<String>::new());
}
