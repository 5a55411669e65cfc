use super::walk::walk;
use crate::plan::StudyPlan;
use crate::registry;
use pubmark_model::cell::Cell;
use pubmark_model::study::{ReadOptions, Study};
use std::collections::HashSet;

fn cells(axes: &str) -> Vec<Cell> {
    registry::load().unwrap();
    let text =
        format!("title = \"t\"\n[workload]\ntransport = \"tcp\"\n[axes]\nsystem = [\"kernel\", \"nng\"]\n{axes}");
    let study = Study::parse("t", &text, &registry::find, &ReadOptions::default()).unwrap();
    StudyPlan::new(study).unwrap().cells().to_vec()
}

#[test]
fn a_walk_comes_to_each_point_once() {
    let cells = cells("payload = [\"16B\", \"1KB\", \"2KB\"]\nsubscribers = [1, 2]\npattern = [\"fan-out\"]\n");
    let walked = walk(&cells, 7);
    assert_eq!(walked.len(), 6);
    assert!(walked.iter().all(|point| point.len() == 2));
    let all: HashSet<usize> = walked.iter().flatten().copied().collect();
    assert_eq!(all.len(), 12);
    assert_ne!(walk(&cells, 8), walked, "the seed decides what comes first");
    assert_eq!(walk(&cells, 7), walked);
}

/// Wherever it is broken off, each value of each axis has been come to about as
/// often as any other.
#[test]
fn a_walk_that_is_broken_off_is_spread_over_all_axes() {
    let cells = cells(
        "payload = [\"16B\", \"1KB\", \"2KB\", \"4KB\"]\nsubscribers = [1, 2, 3, 4]\nrate = [10, 20]\npattern = [\"fan-out\"]\n",
    );
    for seed in 0..20 {
        let walked = walk(&cells, seed);
        for length in [2, 4, 8, 12, 20, 31] {
            for axis in ["payload", "subscribers", "rate"] {
                let mut values: Vec<String> = Vec::new();
                let mut often: Vec<usize> = Vec::new();
                for cell in &cells {
                    let value = cell.axes[axis].to_string();
                    if !values.contains(&value) {
                        values.push(value);
                        often.push(0);
                    }
                }
                for point in &walked[..length] {
                    let value = cells[point[0]].axes[axis].to_string();
                    often[values.iter().position(|other| *other == value).unwrap()] += 1;
                }
                let (least, most) = (often.iter().min().unwrap(), often.iter().max().unwrap());
                assert!(most - least <= 2, "seed {seed}, {length} points, {axis}: {often:?}");
            }
        }
    }
}
