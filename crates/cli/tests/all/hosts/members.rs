//! A cluster whose members are on hosts of their own.

use super::{Network, WHY, only_run};
use crate::left_out::leave_out;
use crate::support::{Place, stderr};
use serde_json::Value;

/// Makes three hosts for members, and one for clients.
fn cluster_of_three(place: &Place, letter: char) -> Option<(Network, String)> {
    let servers = ["b1", "b2", "b3"].map(|host| (host.to_owned(), "server"));
    let hosts = servers.into_iter().chain([("c1".to_owned(), "publishers"), ("c2".to_owned(), "subscribers")]);
    let network = Network::of(letter, hosts.collect())?;
    let path = network.hosts(place);
    Some((network, path))
}

fn count(run: &Value, name: &str) -> u64 {
    run["counts"][name].as_u64().unwrap_or_else(|| panic!("{name}: {}", run["counts"]))
}

/// Each member is on its own host; the leader among them is killed, and all that was acknowledged arrives.
#[test]
fn members_on_hosts_of_their_own_form_a_cluster_that_outlives_its_leader() {
    let place = Place::new();
    let Some((network, hosts)) = cluster_of_three(&place, 'm') else {
        return leave_out("members_on_hosts_of_their_own", WHY);
    };
    let all = ["bench", "nats-jetstream", "--qos", "1", "--durable", "--pairs", "3", "--rate", "50", "--repeats", "1"];
    let set = ["--set", "options.members=3", "--set", "options.replicas=3", "--set", "options.ack_wait=1s"];
    let bench = |out: &str, more: &[&str]| {
        let mut command = place.command(&[&all[..], &set, more].concat());
        only_run(command.args(["--json", "--hosts", &hosts, "--out", out]))
    };
    let run = bench("plain", &["--duration", "2s"]);
    let counts = ["sent", "acked", "delivered", "lost", "duplicated"].map(|name| count(&run, name));
    assert_eq!(counts, [300, 300, 300, 0, 0]);
    for agent in run["agents"].as_array().unwrap() {
        let to = agent["applied"]["connected_to"].as_str().unwrap();
        let own = ["b1", "b2", "b3"].map(|host| format!("{}:", network.address(host)));
        assert!(to.split(',').zip(&own).all(|(to, own)| to.starts_with(own)), "{to}");
    }
    assert_eq!(run["hosts"].as_array().unwrap().len(), 5);
    let members = run["deployment"]["members"].as_array().unwrap();
    assert_eq!(members.iter().map(|member| member["number"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
    let each = members.iter().map(|member| member["cpu_cores"].as_f64().unwrap());
    let together = run["server"]["cpu_cores"].as_f64().unwrap();
    assert!((each.sum::<f64>() - together).abs() <= 0.2 * together + 0.02, "{}: {together}", run["deployment"]);
    assert!(members.iter().all(|member| member["rss_bytes_median"].as_u64().unwrap() > 1 << 20), "{members:?}");
    let logs = ["run-0-server-1.log", "run-0-server-2.log", "run-0-server-3.log"];
    logs.iter().for_each(|log| assert!(place.path("plain/logs").join(log).exists(), "{log} was copied back"));
    let run =
        bench("killed", &["--duration", "14s", "--set", "drain=20s", "--fault", "kill server leader at 2s for 4s"]);
    let fault = &run["fault_log"][0];
    assert!(fault["member"].as_u64().is_some_and(|number| (1..=3).contains(&number)), "{fault}");
    assert!(fault["until_ns"].is_u64() && fault["listens_ns"].is_u64(), "it is back: {fault}");
    assert_eq!((count(&run, "acked_lost"), &run["error"]), (0, &Value::Null), "{}", run["counts"]);
    assert!(count(&run, "acked") > 0 && count(&run, "delivered") >= count(&run, "acked"), "{}", run["counts"]);
    assert_eq!(network.processes(), Vec::<String>::new());
    assert_eq!(std::fs::read_dir(place.tmp()).unwrap().count(), 0, "a folder is left behind");
}

#[test]
fn what_members_on_several_hosts_cannot_do_is_refused_first() {
    let place = Place::new();
    let Some((network, hosts)) = cluster_of_three(&place, 'n') else {
        return leave_out("what_members_on_several_hosts_cannot_do", WHY);
    };
    let set = ["bench", "nats-jetstream", "--qos", "1", "--durable", "--set", "options.members=3", "--hosts", &hosts];
    let plan = place.run(&[&set[..], &["--dry-run"]].concat());
    let plan = String::from_utf8(plan.stdout).unwrap();
    assert!(plan.contains("server on b1, b2, b3, publishers on c1, subscribers on c2"), "{plan}");
    for (more, says) in [
        (&["--tls"][..], "no certificates of one authority"),
        (&["--fault", "cut power of server 2 at 1s for 1s"], "on another host"),
        (&["--fault", "cut link 1-2 at 1s for 1s"], "reached from this machine only"),
    ] {
        let refused = place.run(&[&set[..], more].concat());
        assert_eq!(refused.status.code(), Some(2), "{more:?}");
        assert!(stderr(&refused).contains(says), "{more:?}: {}", stderr(&refused));
    }
    let rabbit = ["bench", "rabbitmq-amqp", "--set", "options.members=3", "--hosts", &hosts];
    let refused = place.run(&rabbit);
    assert!(stderr(&refused).contains("loopback interface only"), "{}", stderr(&refused));
    assert_eq!(network.processes(), Vec::<String>::new());
}
