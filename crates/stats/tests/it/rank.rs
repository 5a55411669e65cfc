use pubmark_stats::{Better, Estimate, Interval, Ranking, Undecided, rank};

fn entry(lo: f64, value: f64, hi: f64) -> Estimate {
    let interval = Some(Interval { lo, hi });
    Estimate { value, interval }
}

fn point(value: f64) -> Estimate {
    Estimate { value, interval: None }
}

fn tie(names: &[&str]) -> Ranking {
    Ranking::Tie(names.iter().map(|name| (*name).to_owned()).collect())
}

#[test]
fn an_interval_apart_wins() {
    let entries =
        [("nats", entry(9.0, 10.0, 11.0)), ("redis", entry(1.0, 2.0, 3.0)), ("mosquitto", entry(3.5, 5.0, 9.5))];
    assert_eq!(rank(&entries, Better::Lower), Ranking::Winner("redis".into()));
    assert_eq!(rank(&entries, Better::Higher), tie(&["nats", "mosquitto"]));
}

#[test]
fn only_overlap_with_the_best_makes_a_tie() {
    // b overlaps both, c overlaps b alone.
    let entries = [("c", entry(6.0, 7.0, 8.0)), ("b", entry(3.0, 5.0, 6.5)), ("a", entry(1.0, 2.0, 4.0))];
    assert_eq!(rank(&entries, Better::Lower), tie(&["a", "b"]));
    assert_eq!(rank(&entries, Better::Higher), tie(&["c", "b"]));
}

#[test]
fn touching_ends_overlap() {
    let entries = [("a", entry(1.0, 2.0, 3.0)), ("b", entry(3.0, 4.0, 5.0))];
    assert_eq!(rank(&entries, Better::Lower), tie(&["a", "b"]));
    assert_eq!(rank(&entries, Better::Higher), tie(&["b", "a"]));
    let apart = [("a", entry(1.0, 2.0, 2.9)), ("b", entry(3.0, 4.0, 5.0))];
    assert_eq!(rank(&apart, Better::Lower), Ranking::Winner("a".into()));
}

#[test]
fn a_single_run_anywhere_decides_nothing() {
    let entries = [("a", entry(1.0, 2.0, 3.0)), ("b", point(1_000.0)), ("c", point(2_000.0))];
    let expected = Undecided::NoInterval(vec!["b".into(), "c".into()]);
    assert_eq!(rank(&entries, Better::Lower), Ranking::Undecided(expected));
}

#[test]
fn one_entry_or_none_decides_nothing() {
    let one = [("a", entry(1.0, 2.0, 3.0))];
    for entries in [&one[..], &[]] {
        let expected = Ranking::Undecided(Undecided::TooFew);
        assert_eq!(rank(entries, Better::Higher), expected);
    }
}

#[test]
fn numbers_that_are_none_decide_nothing() {
    for bad in [point(f64::NAN), entry(f64::NEG_INFINITY, 1.0, 2.0), entry(3.0, 2.0, 1.0)] {
        let entries = [("a", entry(1.0, 2.0, 3.0)), ("bad", bad)];
        let expected = Undecided::Unusable(vec!["bad".into()]);
        assert_eq!(rank(&entries, Better::Lower), Ranking::Undecided(expected));
    }
}
