//! Rankings of whole reports: how often equal systems are called different, and
//! what a difference in every block makes of it.

use crate::lab::{Lab, latency};
use pubmark_report::{Placing, Report};

/// Normal noise from a seed: the sum of twelve uniform numbers less six.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

const SYSTEMS: [&str; 3] = ["alpha", "beta", "gamma"];
const PAYLOADS: [&str; 4] = ["64B", "128B", "256B", "512B"];

/// A study of 4 points and 3 systems, whose blocks drift by a half and whose
/// runs differ by 5 %; alpha is faster by this factor.
fn study(noise: &mut Noise, repeats: u32, factor: f64) -> Report {
    let list = |names: &[&str]| names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    let mut lab = Lab::new(&format!(
        "[axes]\nsystem = [{}]\npayload = [{}]\n[run]\nrepeats = {repeats}\n",
        list(&SYSTEMS),
        list(&PAYLOADS)
    ));
    for payload in PAYLOADS {
        for repeat in 1..=repeats {
            let block = 100_000.0 * (0.5 * noise.uniform()).exp();
            for system in SYSTEMS {
                let own = if system == "alpha" { 1.0 / factor } else { 1.0 };
                let ns = block * own * (0.05 * noise.normal()).exp();
                lab.run(&format!("{system} {payload}"), repeat, |run| latency(run, &[(ns as u64, 2_000)]));
            }
        }
    }
    lab.report()
}

fn winners(report: &Report) -> Vec<&str> {
    let placing = |point: &'_ pubmark_report::Point| point.best().map(|ranked| ranked.placing.clone());
    let name = |placing| match placing {
        Some(Placing::Winner(name)) => SYSTEMS.into_iter().find(|system| **system == name),
        _ => None,
    };
    report.points().iter().filter_map(|point| name(placing(point))).collect()
}

/// At a rate of 5 in 100, more than 11 of 100 tables are seen once in 200 times.
#[test]
fn of_a_hundred_tables_of_equal_systems_few_name_a_winner() {
    let mut noise = Noise(1);
    for repeats in [2, 3, 5] {
        let wrong = (0..100).filter(|_| !winners(&study(&mut noise, repeats, 1.0)).is_empty()).count();
        assert!(wrong <= 11, "{wrong} of 100 tables with {repeats} repeats");
    }
}

#[test]
fn a_difference_in_every_block_is_found_though_the_blocks_drift() {
    let mut noise = Noise(2);
    let found: usize = (0..20)
        .map(|_| {
            let report = study(&mut noise, 5, 1.3);
            let winners = winners(&report);
            assert!(winners.iter().all(|winner| *winner == "alpha"), "{winners:?}");
            winners.len()
        })
        .sum();
    assert!(found >= 60, "{found} of 80 points");
}
