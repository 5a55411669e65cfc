use super::*;
use crate::header::Header;
use crate::payload_content::PayloadContent;
use crate::setting::Settings;
use crate::workload::Workload;
use proptest::prelude::*;

fn sizes(text: &str) -> PayloadSizes {
    Payload::parse(text).unwrap().sizes(&SizeFiles::new()).unwrap()
}

/// Draws the first messages of four publishers.
fn drawn(text: &str, each: u32) -> Vec<u64> {
    let sizes = MessageSizes::new(sizes(text), 7);
    let of = |publisher| (0..each).map(move |sequence| (publisher, sequence));
    (0..4).flat_map(of).map(|(publisher, sequence)| sizes.bytes(publisher, sequence) as u64).collect()
}

#[test]
fn what_is_written_reads_back() {
    for text in [
        "1KiB",
        "uniform 64B to 4KiB",
        "lognormal p50 512B p99 16KiB max 64KiB",
        "mix 64B 90% 4KiB 9% 1MiB 1%",
        "mix 16B 99.9999% 1MB 0.0001%",
        "file sizes of today.txt",
    ] {
        let payload = Payload::parse(text).unwrap();
        assert_eq!(Payload::parse(&payload.to_string()), Ok(payload), "{text}");
    }
    let spaced = Payload::parse("  mix 64B 90%,  4096 10% ").unwrap();
    assert_eq!(spaced, Payload::Mix(vec![(64, 900_000), (4_096, 100_000)]));
    assert_eq!(
        (Payload::parse("100").unwrap(), Payload::parse("1KB").unwrap().most_bytes()),
        (Payload::Constant(100), Some(1_000))
    );
}

#[test]
fn what_is_no_size_is_refused_with_the_way_out() {
    let order = |text: &str, lower: &str, upper: &str| PayloadError::Order {
        text: text.into(),
        lower: lower.into(),
        upper: upper.into(),
    };
    let sum = |text: &str, sum| PayloadError::Sum { text: text.into(), sum };
    for (text, error) in [
        ("8B", PayloadError::Range("8B".into())),
        ("2GiB", PayloadError::Range("2GiB".into())),
        ("uniform 8B to 64B", PayloadError::Range("8B".into())),
        ("uniform 64B to 64B", order("uniform 64B to 64B", "64B", "64B")),
        ("uniform 64B", PayloadError::Form("uniform 64B".into())),
        ("normal 64B", PayloadError::Form("normal 64B".into())),
        ("file ", PayloadError::Form("file".into())),
        ("lognormal p50 1KiB p99 64B max 1MiB", order("lognormal p50 1KiB p99 64B max 1MiB", "1KiB", "64B")),
        ("lognormal p50 64B p99 1KiB max 512B", order("lognormal p50 64B p99 1KiB max 512B", "1KiB", "512B")),
        ("mix 64B 90%", sum("mix 64B 90%", 900_000)),
        ("mix 64B 90% 128B 90%", sum("mix 64B 90% 128B 90%", 1_800_000)),
        ("mix 64B 50% 64B 50%", PayloadError::Twice("64B".into())),
        ("mix 64B 90% 128B", PayloadError::Share("128B".into())),
        ("mix 64B 90 128B 10%", PayloadError::Share("64B 90".into())),
        ("mix 64B 100%", PayloadError::Count(1)),
    ] {
        assert_eq!(Payload::parse(text), Err(error), "{text}");
    }
    assert!(matches!(Payload::parse("1kb"), Err(PayloadError::Size(_))));
    assert!(Payload::parse("1kb max").is_err() && Payload::parse("").is_err());
}

#[test]
fn files_of_sizes_are_read_or_refused_by_line() {
    let sizes = read_sizes("s.txt", "# size count\n64B 900\n\n4KiB 99\n64\n1048576\n").unwrap();
    let classes: Vec<_> = sizes.classes().iter().map(|class| (class.weight, class.least, class.most)).collect();
    assert_eq!(classes, [(901, 64, 64), (99, 4_096, 4_096), (1, 1_048_576, 1_048_576)]);
    assert_eq!((sizes.text(), sizes.least_bytes(), sizes.most_bytes()), ("file s.txt", 64, 1_048_576));
    for (text, line, bad) in [
        ("64\n8", 2, "8"),
        ("64\n\nmany 4", 3, "many 4"),
        ("64 0", 1, "64 0"),
        ("64 1 2", 1, "64 1 2"),
        ("64,900", 1, "64,900"),
        ("2GiB", 1, "2GiB"),
    ] {
        let error = SizeFileError::Line { file: "s.txt".into(), line, text: bad.into() };
        assert_eq!(read_sizes("s.txt", text), Err(error), "{text}");
    }
    assert_eq!(read_sizes("s.txt", "# none\n\n"), Err(SizeFileError::Empty("s.txt".into())));
    let many: String = (100..5_000).map(|bytes| format!("{bytes}\n")).collect();
    let wrong = |source| Err(SizeFileError::Sizes { file: "s.txt".into(), source });
    assert_eq!(read_sizes("s.txt", &many), wrong(SizesError::Count(4_900)));
    assert_eq!(read_sizes("s.txt", "64 4294967297"), wrong(SizesError::Weight));
}

/// Every size between the two is equally likely. By the inequality of Dvoretzky, Kiefer and Wolfowitz, an empirical
/// distribution of n values is nowhere further from its own than sqrt(ln(2 / 10^-6) / 2n), but once in a million times.
fn within(mut values: Vec<u64>, cdf: impl Fn(u64) -> f64) {
    values.sort_unstable();
    let n = values.len() as f64;
    let bound = ((2e6f64).ln() / (2.0 * n)).sqrt();
    for (rank, bytes) in values.iter().enumerate() {
        // Several values may be equal: the number up to each is that of the last.
        if values.get(rank + 1) != Some(bytes) {
            let share = (rank + 1) as f64 / n;
            assert!((share - cdf(*bytes)).abs() <= bound, "{bytes} B: {share} instead of {} ± {bound}", cdf(*bytes));
        }
    }
}

#[test]
fn sizes_are_drawn_uniformly() {
    let values = drawn("uniform 64B to 4KiB", 25_000);
    assert!(values.contains(&64) && values.contains(&4_096));
    within(values, |bytes| (bytes - 63) as f64 / 4_033.0);
}

#[test]
fn sizes_are_drawn_from_the_log_normal_distribution() {
    let text = "lognormal p50 512B p99 16KiB max 64KiB";
    let (mu, sigma) = (512f64.ln(), (16_384f64 / 512.0).ln() / 2.326_347_874);
    let cdf = |bytes: u64| match bytes {
        65_536.. => 1.0,
        _ => pubmark_stats::normal_cdf(((bytes as f64 + 0.5).ln() - mu) / sigma),
    };
    within(drawn(text, 50_000), cdf);
    // The classes themselves follow it to a thousandth at their bounds, and the cap has what is above it.
    let sizes = sizes(text);
    let total: u64 = sizes.classes().iter().map(|class| class.weight).sum();
    let mut sum = 0;
    for class in sizes.classes() {
        sum += class.weight;
        assert!((sum as f64 / total as f64 - cdf(class.most)).abs() < 1e-6, "{class:?}");
    }
    assert_eq!((sizes.least_bytes(), sizes.most_bytes()), (16, 65_536));
    // E[min(X, m)] of a log-normal X, with the small sizes raised to the header's.
    let (m, phi) = (65_536f64, pubmark_stats::normal_cdf);
    let z = (m.ln() - mu) / sigma;
    let mean = (mu + sigma * sigma / 2.0).exp() * phi(z - sigma) + m * (1.0 - phi(z));
    assert!((sizes.mean_bytes() / mean - 1.0).abs() < 1e-3, "{} instead of {mean}", sizes.mean_bytes());
}

#[test]
fn sizes_are_drawn_by_their_shares() {
    let values = drawn("mix 64B 90% 4KiB 9% 1MiB 1%", 25_000);
    for (bytes, share) in [(64, 0.9f64), (4_096, 0.09), (1_048_576, 0.01)] {
        let count = values.iter().filter(|value| **value == bytes).count() as f64;
        let (mean, deviation) = (1e5 * share, (1e5 * share * (1.0 - share)).sqrt());
        // Five standard deviations: once in 1.7 million times.
        assert!((count - mean).abs() < 5.0 * deviation, "{bytes} B: {count}");
    }
    assert_eq!(sizes("mix 64B 90% 4KiB 9% 1MiB 1%").mean_bytes(), 0.9 * 64.0 + 0.09 * 4_096.0 + 0.01 * 1_048_576.0);
}

/// What another implementation computes: see the test vectors of the agent protocol.
#[test]
fn the_first_sizes_are_known() {
    let first = |text: &str, publisher| {
        let sizes = MessageSizes::new(sizes(text), 1);
        [0, 1, 2, 3].map(|sequence| sizes.bytes(publisher, sequence))
    };
    assert_eq!(first("uniform 64B to 4KiB", 0), [3129, 2170, 451, 3982]);
    assert_eq!(first("uniform 64B to 4KiB", 3), [2723, 2446, 638, 1222]);
    assert_eq!(first("mix 64B 50% 4KiB 50%", 0), [64, 64, 64, 4096]);
}

#[test]
fn both_ends_and_each_repeat_have_their_sizes() {
    let settings = [("payload", "uniform 64B to 1MiB"), ("pairs", "2"), ("verify", "full")];
    let workload = Workload::resolve(&Settings::of(settings).unwrap()).unwrap();
    assert_eq!((workload.payload_bytes, workload.least_payload_bytes()), (1 << 20, 64));
    let sizes = |workload: &Workload| {
        let sizes = workload.message_sizes().unwrap();
        (0..100).map(|sequence| sizes.bytes(1, sequence)).collect::<Vec<_>>()
    };
    let first = workload.of_repeat(1);
    let told: Workload = serde_json::from_str(&serde_json::to_string(&first).unwrap()).unwrap();
    assert_eq!((&told, sizes(&told)), (&first, sizes(&first)));
    assert_ne!(sizes(&first), sizes(&workload.of_repeat(2)));
    assert!(workload.wants_header_checksum(), "{workload:?}");
    let short =
        Workload::resolve(&Settings::of([("payload", "uniform 20B to 1MiB"), ("verify", "full")]).unwrap()).unwrap();
    assert!(!short.wants_header_checksum(), "the shortest has no room for it");
    let constant = Workload::resolve(&Settings::default()).unwrap();
    assert_eq!((constant.message_sizes(), constant.mean_payload_bytes()), (None, 1_024.0));
    assert!(!serde_json::to_string(&constant).unwrap().contains("payload_sizes"));
}

proptest! {
    #[test]
    fn a_draw_is_the_class_of_its_weight(
        weights in proptest::collection::vec(1u64..1_000_000, 1..200),
        draws in proptest::collection::vec(any::<u64>(), 100),
    ) {
        let classes: Vec<SizeClass> =
            (1..).zip(&weights).map(|(at, weight)| SizeClass { weight: *weight, least: 100 * at, most: 100 * at + 9 }).collect();
        let sizes = PayloadSizes::new(String::new(), classes.clone()).unwrap();
        let total: u64 = weights.iter().sum();
        for draw in draws.into_iter().chain([0, u64::MAX]) {
            let mut left = ((draw >> 32) * total) >> 32;
            let wanted = classes.iter().find(|class| match left < class.weight {
                true => true,
                false => { left -= class.weight; false }
            }).unwrap();
            let bytes = sizes.at(draw);
            prop_assert!((wanted.least..=wanted.most).contains(&bytes), "{bytes} {wanted:?}");
        }
    }
}

#[test]
fn a_short_message_after_a_longer_one_has_its_own_body() {
    let header = Header { intended_ns: 0, publisher: 0, sequence: 0, sent_ns: None, free_ns: None };
    for content in ["random", "zeros", "zeros 75%"].map(|text| PayloadContent::parse(text).unwrap()) {
        let sizes = MessageSizes::new(sizes("uniform 16B to 40B"), 1).with_content(content);
        for len in 16..40 {
            let mut buffer = [0xffu8; 40];
            sizes.restore_body(&header, &mut buffer[..len]);
            let is_restored = (25..32).contains(&len);
            let wanted =
                if is_restored { content.message(len)[24..].to_vec() } else { vec![0xff; len.saturating_sub(24)] };
            assert_eq!(buffer[24.min(len)..len], wanted, "{len}");
        }
    }
}
