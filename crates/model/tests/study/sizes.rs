//! Sizes of messages that vary, in studies.

use crate::support::*;
use pubmark_model::cell::Cell;
use pubmark_model::plan::cells;
use pubmark_model::study::ReadOptions;

#[test]
fn sizes_vary_by_cell_and_flow_and_not_where_they_are_searched() {
    let start = "title = \"t\"\n[workload]\ntransport = \"tcp\"\n";
    let axes = "[axes]\nsystem = \"alpha\"\npayload = [64, \"mix 64B 50% 1KiB 50%\", \"file s.txt\"]\n";
    let sizes = "[sizes]\n\"s.txt\" = \"64 9\\n4096 1\"\n";
    let study = good(&format!("{start}{sizes}{axes}"));
    assert_eq!((good(&study.to_toml()), study.missing_sizes()), (study.clone(), Vec::new()));
    let of = |cell: &Cell| (cell.workload.payload_bytes, cell.workload.mean_payload_bytes());
    let found: Vec<_> = cells(&study).unwrap().iter().map(of).collect();
    assert_eq!(found, [(64, 64.0), (1_024, 544.0), (4_096, 467.2)]);
    let unread = good(&format!("{start}{axes}"));
    assert_eq!(unread.missing_sizes(), ["s.txt"]);
    let errors = cells(&unread).unwrap_err()[0].message.clone();
    assert!(errors.contains("`payload = \"file s.txt\"`"), "{errors}");
    let flow = format!("{start}{sizes}[flows.one]\npayload = \"file s.txt\"\n[axes]\nsystem = \"alpha\"\n");
    let cell = &cells(&good(&flow)).unwrap()[0];
    assert_eq!(cell.flows()[0].workload.payload_sizes.as_ref().unwrap().text(), "file s.txt");
    let goal = "[capacity]\nobjective = \"p99 < 5ms\"\nover = \"payload\"\n";
    let searched = format!("{start}payload = \"uniform 64B to 1KiB\"\n{goal}[axes]\nsystem = \"alpha\"\n");
    let errors = read(&searched, &ReadOptions::default()).unwrap_err().to_string();
    assert!(errors.contains("cannot search over `payload`, which is `uniform 64B to 1KiB`"), "{errors}");
}
