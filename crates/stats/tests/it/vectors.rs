//! The checked-in vectors, and the rules that generate their data.

use serde::Deserialize;

#[derive(Deserialize)]
pub struct Vectors {
    pub normal: Normal,
    pub student: Student,
    pub holm: Vec<HolmCase>,
    pub rankings: Vec<RankingCase>,
    pub changes: Vec<ChangeCase>,
    pub trends: Vec<TrendCase>,
    pub typical: Vec<TypicalCase>,
    pub quantiles: Vec<QuantileCase>,
    pub histograms: Vec<HistogramCase>,
    pub hostile: Vec<(String, String, String)>,
}

#[derive(Deserialize)]
pub struct Normal {
    pub cdf: Vec<(f64, f64)>,
    pub erfc: Vec<(f64, f64)>,
}

#[derive(Deserialize)]
pub struct Student {
    pub p: Vec<(f64, f64, f64)>,
    pub t: Vec<(f64, f64, f64)>,
}

#[derive(Deserialize)]
pub struct RankingCase {
    /// Indexed by point, system and block.
    pub table: Vec<Vec<Vec<f64>>>,
    pub pairs: Vec<RankedPair>,
}

#[derive(Deserialize)]
pub struct RankedPair {
    pub point: usize,
    pub a: usize,
    pub b: usize,
    pub interval: (f64, f64),
    pub different: bool,
    pub same: bool,
}

#[derive(Deserialize)]
pub struct HolmCase {
    pub p: Vec<f64>,
    pub adjusted: Vec<f64>,
}

#[derive(Deserialize)]
pub struct ChangeCase {
    pub a: Vec<f64>,
    pub b: Vec<f64>,
    pub p: f64,
    pub lo: f64,
    pub hi: f64,
}

#[derive(Deserialize)]
pub struct TrendCase {
    pub name: String,
    pub values: Vec<f64>,
    pub s: i64,
    pub variance: f64,
    pub z: f64,
    pub p: f64,
    pub p_uncorrected: Option<f64>,
    pub resemblance: f64,
    pub p_resembling: f64,
    pub slope: f64,
    pub relative_change: f64,
}

#[derive(Deserialize)]
pub struct TypicalCase {
    pub values: Vec<f64>,
    pub median: f64,
    pub lo: f64,
    pub hi: f64,
}

#[derive(Deserialize)]
pub struct QuantileCase {
    pub name: String,
    pub count: u64,
    pub min: u64,
    pub max: u64,
    pub mean: f64,
    pub stddev: f64,
    pub at: Vec<(f64, u64)>,
}

#[derive(Deserialize)]
pub struct HistogramCase {
    pub name: String,
    pub digits: u8,
    pub rule: Rule,
    pub text: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub enum Rule {
    Named(String),
    Values(Vec<u64>),
}

impl Rule {
    /// Returns the values with their counts in the histogram.
    pub fn counts(&self) -> Vec<(u64, u64)> {
        let once = |value| (value, 1);
        match self {
            Rule::Values(values) => values.iter().copied().map(once).collect(),
            Rule::Named(name) if name == "runs" => match_length_runs(),
            Rule::Named(name) => distribution(name)[..3_000]
                .iter()
                .copied()
                .chain([0, 1, 2_047, 2_048, 3_600_000_000_000])
                .map(once)
                .collect(),
        }
    }
}

/// Returns, for each length, a run of buckets that hold one value, then one that holds as many as
/// the length, from bucket 0 on.
fn match_length_runs() -> Vec<(u64, u64)> {
    let lowest_value = |bucket: u64| match bucket {
        0..2_048 => bucket,
        _ => (1_024 + bucket % 1_024) << (bucket / 1_024 - 1),
    };
    (3..251_u64)
        .chain([257, 258])
        .flat_map(|run| std::iter::repeat_n(1, run as usize + 1).chain([run]))
        .zip(0..)
        .map(|(count, bucket)| (lowest_value(bucket), count))
        .collect()
}

pub fn load() -> Vectors {
    serde_json::from_str(include_str!("../vectors/vectors.json")).expect("vectors.json is valid")
}

pub fn distribution(name: &str) -> Vec<u64> {
    let rule = |i: u64| match name {
        "uniform" => (i * 7_919) % 1_000_003 + 1,
        "heavy" => 1_000_000_000_000 / ((i * 7_919) % 20_011 + 1),
        "bimodal" if !i.is_multiple_of(10) => 50_000 + i % 97,
        "bimodal" => 40_000_000 + (i * 31) % 5_000_000,
        other => panic!("no rule for {other}"),
    };
    (0..20_000).map(rule).collect()
}

#[track_caller]
pub fn assert_close(found: f64, expected: f64, relative: f64, what: &str) {
    let bound = expected.abs() * relative;
    assert!((found - expected).abs() <= bound, "{what}: {found:e}, expected {expected:e} within {bound:e}");
}
