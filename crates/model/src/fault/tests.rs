use super::*;
use crate::units::SECOND;

#[test]
fn a_script_reads_back_in_the_order_of_its_times() {
    let script = Script::parse("kill  server at 10s for 2000ms,stop publishers at 500ms for 1.5s").unwrap();
    assert_eq!(script.to_string(), "stop publishers at 500ms for 1500ms, kill server at 10s for 2s");
    assert_eq!(Script::parse(&script.to_string()), Ok(script.clone()));
    assert!(script.breaks_connections());
    assert_eq!(script.on(Target::Server).count(), 1);
    assert_eq!(script.0[0].until_ns(), Some(2 * SECOND));
    assert_eq!(Script::parse("none").unwrap().to_string(), "none");
    assert_eq!(script.outlasts(12 * SECOND), None);
    assert_eq!(script.outlasts(12 * SECOND - 1), Some(&script.0[1]));
}

#[test]
fn clients_that_are_killed_stay_away() {
    let script = Script::parse("kill subscribers at 5s,kill publishers at 1500ms").unwrap();
    assert_eq!(script.to_string(), "kill publishers at 1500ms, kill subscribers at 5s");
    assert_eq!(Script::parse(&script.to_string()), Ok(script.clone()));
    let sides: Vec<_> = script.killed_sides().collect();
    assert_eq!(sides, [(1_500_000_000, Target::Publishers), (5 * SECOND, Target::Subscribers)]);
    assert!(!script.breaks_connections(), "nobody comes back, so nobody need be able to");
    assert_eq!((script.0[0].until_ns(), script.outlasts(5 * SECOND + 1)), (None, None));
    assert_eq!(script.outlasts(5 * SECOND), Some(&script.0[1]), "it would happen when all is over");
    let json = serde_json::to_string(&script).unwrap();
    assert!(!json.contains("for_ns"), "{json}");
    assert_eq!(serde_json::from_str::<Script>(&json).unwrap(), script);
    let killed_server = Script::parse("kill server at 1s for 0s").unwrap();
    assert_eq!((killed_server.killed_sides().count(), killed_server.0[0].until_ns()), (0, Some(SECOND)));
}

#[test]
fn a_share_of_the_clients_is_cut_at_an_instant_and_may_be_cut_again() {
    let script = Script::parse("cut clients at 3s, cut 50% of clients at 1s, cut 10% of subscribers at 1s").unwrap();
    assert_eq!(script.to_string(), "cut 10% of subscribers at 1s, cut 50% of clients at 1s, cut clients at 3s");
    assert_eq!(Script::parse(&script.to_string()), Ok(script.clone()));
    let percents: Vec<_> = script.0.iter().map(Fault::cut_percent).collect();
    assert_eq!(percents, [Some(10), Some(50), Some(100)]);
    assert!(script.breaks_connections() && script.killed_sides().next().is_none());
    assert_eq!((script.outlasts(3 * SECOND), script.outlasts(3 * SECOND + 1)), (Some(&script.0[2]), None));
    let json = serde_json::to_string(&script).unwrap();
    assert_eq!(serde_json::from_str::<Script>(&json).unwrap(), script);
    for (count, percent, cut) in [(10, 50, 5), (10, 100, 10), (3, 50, 1), (1, 50, 0), (7, 1, 0), (1_000, 1, 10)] {
        assert_eq!((0..count).filter(|id| is_cut(*id, percent)).count(), cut, "{percent}% of {count}");
    }
}

#[test]
fn a_disk_is_filled_for_a_while_and_everybody_goes_on() {
    for text in ["fill disk of server at 5s for 3s", "fill disk of server leader at 5s for 3s"] {
        let script = Script::parse(text).unwrap();
        assert_eq!(script.to_string(), text);
        assert!(script.needs_disk() && !script.cuts_power() && script.breaks_connections());
        let json = serde_json::to_string(&script).unwrap();
        assert!(json.contains("\"fill_disk\""), "{json}");
        assert_eq!(serde_json::from_str::<Script>(&json).unwrap(), script);
    }
}

#[test]
fn the_publishers_end_with_the_servers_power() {
    let script = Script::parse("cut power of server at 5s for 3s").unwrap();
    assert_eq!(script.to_string(), "cut power of server at 5s for 3s, kill publishers at 5s");
    assert_eq!(Script::parse(&script.to_string()), Ok(script.clone()));
    assert!(script.cuts_power() && script.breaks_connections() && script.0[0].ends_server());
    let json = serde_json::to_string(&script).unwrap();
    assert!(json.contains("\"cut_power\""), "{json}");
    assert_eq!(serde_json::from_str::<Script>(&json).unwrap(), script);
    let before = "kill publishers at 4s, cut power of server at 5s for 0s";
    assert_eq!(Script::parse(before).unwrap().to_string(), before);
    assert!(!Script::parse("kill server at 5s for 3s").unwrap().cuts_power());
    let member = "cut power of server 2 at 5s for 3s";
    assert_eq!(Script::parse(member).unwrap().to_string(), member, "the others go on");
}

#[test]
fn what_cannot_be_is_refused_with_the_way_out() {
    for (text, says) in [
        ("", "write `stop server at 5s for 1s`"),
        ("stop server", "write `stop server at 5s for 1s`"),
        ("stpo server at 5s for 1s", "did you mean `stop`?"),
        ("stop severs at 5s for 1s", "did you mean `server`?"),
        ("stop server at 5s", "for how long"),
        ("stop server at 5 for 1s", "`5` is not a time"),
        ("stop server at 5s for 1s please", "is not a fault"),
        ("stop server at 5s for 0s", "no time"),
        ("kill server at 5s", "for how long"),
        ("kill publishers", "write `stop server at 5s for 1s`"),
        ("kill publishers at 5s for 2s", "stays away for the rest of the run"),
        ("kill subscribers at 5s for 1s", "`cut link at … for …`, after which clients come back"),
        ("kill publishers at 5s, kill publishers at 6s", "nobody is there any more after `kill publishers at 5s`"),
        ("stop subscribers at 4s for 2s, kill subscribers at 5s", "before `stop subscribers at 4s for 2s` is over"),
        ("stop server at 5s for 1s,", "is not a fault"),
        ("cut server at 5s for 1s", "`cut link at … for …`"),
        ("cut power of link at 5s for 1s", "write `cut power of server at … for …`"),
        ("cut power of server at 5s", "for how long"),
        ("fill disk of publishers at 5s for 1s", "write `fill disk of server at … for …`"),
        ("fill disk of server at 5s", "for how long"),
        ("fill disk of server at 5s for 0s", "no time"),
        ("cut power of server at 5s for 1s, stop publishers at 6s for 1s", "nobody is there any more"),
        ("kill link at 5s for 1s", "`cut link at … for …`"),
        ("cut link at 5s for 0s", "no time"),
        ("cut clients at 5s for 1s", "comes back at once: write `cut clients at …`"),
        ("kill clients at 5s", "write `cut clients at …`"),
        ("cut 0% of clients at 5s", "a whole number from 1 to 100"),
        ("cut half of clients at 5s", "a whole number from 1 to 100"),
        ("kill 50% of publishers at 5s", "write `cut N% of clients at …`"),
        ("cut clients at 5s, cut 10% of clients at 5s", "before `cut clients at 5s` is over"),
        ("stop server at 5s for 1s, stop server at 5500ms for 1s", "before `stop server at 5s for 1s` is over"),
    ] {
        let error = Script::parse(text).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
    assert!(Script::parse("stop server at 5s for 1s, stop publishers at 5s for 1s").is_ok());
}

#[test]
fn a_fault_names_a_member_or_its_role() {
    let script =
        Script::parse("kill server leader at 1s for 2s, stop server 2 at 4s for 1s, kill server 3 at 9s").unwrap();
    let text = "kill server leader at 1s for 2s, stop server 2 at 4s for 1s, kill server 3 at 9s";
    assert_eq!(script.to_string(), text);
    let members: Vec<_> = script.0.iter().map(|fault| fault.member).collect();
    assert_eq!(members, [Some(Members::Leader), Some(Members::Number(2)), Some(Members::Number(3))]);
    assert!(script.0.iter().all(Fault::breaks_connections), "leaders move, and clients follow");
    assert_eq!((script.0[2].until_ns(), script.0[2].killed_side()), (None, None), "it stays away");
    let json = serde_json::to_string(&script).unwrap();
    assert_eq!(serde_json::from_str::<Script>(&json).unwrap(), script);
    for text in ["restart server at 1s", "restart server rolling at 1s", "restart server leader at 1s"] {
        let script = Script::parse(text).unwrap();
        assert_eq!((script.to_string().as_str(), script.0[0].until_ns()), (text, None));
        assert!(script.breaks_connections());
    }
    for (text, says) in [
        ("kill server rolling at 1s for 1s", "write `server leader`"),
        ("kill server 0 at 1s for 1s", "write `server leader`"),
        ("stop server follower at 1s for 1s", "write `server leader`"),
        ("stop server leader at 1s", "for how long"),
        ("restart server at 1s for 2s", "write `restart server at 5s`"),
        ("restart subscribers at 1s", "write `restart server at 5s`"),
        ("kill server leader at 1s for 3s, stop server 2 at 2s for 1s", "is over"),
    ] {
        let error = Script::parse(text).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[test]
fn links_between_members_are_cut_by_their_numbers() {
    let text =
        "cut link 1-2 at 1s for 3s, cut link 1-3 at 1s for 3s, cut link leader at 5s for 1s, cut link 3 at 7s for 1s";
    let script = Script::parse(text).unwrap();
    assert_eq!(script.to_string(), text);
    let members: Vec<_> = script.0.iter().map(|fault| fault.member.unwrap()).collect();
    assert_eq!(members, [Members::Pair(1, 2), Members::Pair(1, 3), Members::Leader, Members::Number(3)]);
    assert!(script.cuts_members() && script.breaks_connections() && script.on(Target::Link).next().is_none());
    let json = serde_json::to_string(&script).unwrap();
    assert_eq!(serde_json::from_str::<Script>(&json).unwrap(), script);
    assert_eq!(Script::parse("cut link 2-1 at 1s for 1s").unwrap().to_string(), "cut link 1-2 at 1s for 1s");
    for (text, says) in [
        ("cut link 1-1 at 1s for 1s", "two members"),
        ("cut link 0-1 at 1s for 1s", "two members"),
        ("cut link 0 at 1s for 1s", "two members"),
        ("cut link 1-2 at 1s", "for how long"),
        ("cut link 1-2 at 1s for 3s, cut link 2-1 at 2s for 1s", "is over"),
        ("cut link 1-2 at 1s for 3s, cut link leader at 2s for 1s", "is over"),
    ] {
        let error = Script::parse(text).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[test]
fn a_host_has_a_link_of_its_own() {
    let script = Script::parse("cut link b1 at 10s for 5s, cut link b2 at 11s for 1s, cut link at 12s for 1s").unwrap();
    assert_eq!(script.to_string(), "cut link b1 at 10s for 5s, cut link b2 at 11s for 1s, cut link at 12s for 1s");
    assert_eq!(Script::parse(&script.to_string()), Ok(script.clone()));
    let hosts: Vec<Option<&str>> = script.0.iter().map(|fault| fault.host.as_deref()).collect();
    assert_eq!(hosts, [Some("b1"), Some("b2"), None]);
    assert_eq!(script.on(Target::Link).count(), 1, "only that one is a proxy's");
    assert!(script.breaks_connections());
    let twice = Script::parse("cut link b1 at 1s for 2s, cut link b1 at 2s for 1s").unwrap_err().to_string();
    assert!(twice.contains("before `cut link b1 at 1s for 2s` is over"), "{twice}");
}
