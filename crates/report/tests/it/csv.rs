use crate::lab::{Lab, latency, usage};
use pubmark_model::workload::Verify;
use tempfile::tempdir;

/// The contract: the axes, then these.
const HEADER: &str = "runs,valid_runs,counts_runs,rates_runs,p50_runs,p99_runs,cost_runs,\
verdict,best_times_min,best_times_max,repeats_more,delivered_is_lower_bound,caught_up_is_lower_bound,knee_axis,knee,knee_end,\
latency_min_ns,latency_min_ns_lo,latency_min_ns_hi,\
latency_mean_ns,latency_mean_ns_lo,latency_mean_ns_hi,\
latency_p50_ns,latency_p50_ns_lo,latency_p50_ns_hi,\
latency_p90_ns,latency_p90_ns_lo,latency_p90_ns_hi,\
latency_p95_ns,latency_p95_ns_lo,latency_p95_ns_hi,\
latency_p99_ns,latency_p99_ns_lo,latency_p99_ns_hi,\
latency_p999_ns,latency_p999_ns_lo,latency_p999_ns_hi,\
latency_max_ns,latency_max_ns_lo,latency_max_ns_hi,\
intended_latency_p50_ns,intended_latency_p50_ns_lo,intended_latency_p50_ns_hi,\
intended_latency_p99_ns,intended_latency_p99_ns_lo,intended_latency_p99_ns_hi,\
service_latency_p50_ns,service_latency_p50_ns_lo,service_latency_p50_ns_hi,\
service_latency_p99_ns,service_latency_p99_ns_lo,service_latency_p99_ns_hi,\
send_lag_p50_ns,send_lag_p50_ns_lo,send_lag_p50_ns_hi,\
send_lag_p99_ns,send_lag_p99_ns_lo,send_lag_p99_ns_hi,\
own_lag_p50_ns,own_lag_p50_ns_lo,own_lag_p50_ns_hi,\
own_lag_p99_ns,own_lag_p99_ns_lo,own_lag_p99_ns_hi,\
receive_lag_p50_ns,receive_lag_p50_ns_lo,receive_lag_p50_ns_hi,\
receive_lag_p99_ns,receive_lag_p99_ns_lo,receive_lag_p99_ns_hi,\
ack_latency_p50_ns,ack_latency_p50_ns_lo,ack_latency_p50_ns_hi,\
ack_latency_p99_ns,ack_latency_p99_ns_lo,ack_latency_p99_ns_hi,\
request_latency_p50_ns,request_latency_p50_ns_lo,request_latency_p50_ns_hi,\
request_latency_p99_ns,request_latency_p99_ns_lo,request_latency_p99_ns_hi,\
reply_latency_p50_ns,reply_latency_p50_ns_lo,reply_latency_p50_ns_hi,\
reply_latency_p99_ns,reply_latency_p99_ns_lo,reply_latency_p99_ns_hi,\
replier_time_p50_ns,replier_time_p50_ns_lo,replier_time_p50_ns_hi,\
replier_time_p99_ns,replier_time_p99_ns_lo,replier_time_p99_ns_hi,\
offered_per_s,offered_per_s_lo,offered_per_s_hi,\
sent_per_s,sent_per_s_lo,sent_per_s_hi,\
delivered_per_s,delivered_per_s_lo,delivered_per_s_hi,\
delivered_bytes_per_s,delivered_bytes_per_s_lo,delivered_bytes_per_s_hi,\
delivered_ratio,delivered_ratio_lo,delivered_ratio_hi,lost_ratio,lost_ratio_lo,lost_ratio_hi,\
backlog,backlog_lo,backlog_hi,drain_time_ns,drain_time_ns_lo,drain_time_ns_hi,\
catch_up_time_ns,catch_up_time_ns_lo,catch_up_time_ns_hi,\
replay_per_s,replay_per_s_lo,replay_per_s_hi,\
rebalances,rebalances_lo,rebalances_hi,rebalance_pause_ns,rebalance_pause_ns_lo,rebalance_pause_ns_hi,\
lag_max,lag_max_lo,lag_max_hi,\
lost,lost_lo,lost_hi,\
refused,refused_lo,refused_hi,\
not_sent,not_sent_lo,not_sent_hi,\
duplicated,duplicated_lo,duplicated_hi,\
reordered,reordered_lo,reordered_hi,\
unanswered,unanswered_lo,unanswered_hi,\
timed_out,timed_out_lo,timed_out_hi,\
corrupted,corrupted_lo,corrupted_hi,\
acked,acked_lo,acked_hi,\
acked_lost,acked_lost_lo,acked_lost_hi,acked_lost_ratio,acked_lost_ratio_lo,acked_lost_ratio_hi,\
late,late_lo,late_hi,\
latency_stddev_ns,latency_stddev_ns_lo,latency_stddev_ns_hi,\
jitter_ns,jitter_ns_lo,jitter_ns_hi,\
message_time_ns,message_time_ns_lo,message_time_ns_hi,\
language_floor_ns,language_floor_ns_lo,language_floor_ns_hi,\
binding_ns,binding_ns_lo,binding_ns_hi,\
over_baseline,over_baseline_lo,over_baseline_hi,\
floor_latency,floor_latency_lo,floor_latency_hi,\
floor_delivered,floor_delivered_lo,floor_delivered_hi,\
discovery_ns,discovery_ns_lo,discovery_ns_hi,\
steady_after_ns,steady_after_ns_lo,steady_after_ns_hi,\
fault_ratio,fault_ratio_lo,fault_ratio_hi,\
fault_silence_ns,fault_silence_ns_lo,fault_silence_ns_hi,\
outage_beyond_ns,outage_beyond_ns_lo,outage_beyond_ns_hi,\
caught_up_after_ns,caught_up_after_ns_lo,caught_up_after_ns_hi,\
listens_after_ns,listens_after_ns_lo,listens_after_ns_hi,\
clients_back_after_ns,clients_back_after_ns_lo,clients_back_after_ns_hi,\
clients_not_back,clients_not_back_lo,clients_not_back_hi,\
connected,connected_lo,connected_hi,\
connect_p50_ns,connect_p50_ns_lo,connect_p50_ns_hi,\
connect_p99_ns,connect_p99_ns_lo,connect_p99_ns_hi,\
tls_handshake_p50_ns,tls_handshake_p50_ns_lo,tls_handshake_p50_ns_hi,\
tls_handshake_p99_ns,tls_handshake_p99_ns_lo,tls_handshake_p99_ns_hi,\
subscribe_p50_ns,subscribe_p50_ns_lo,subscribe_p50_ns_hi,\
subscribe_p99_ns,subscribe_p99_ns_lo,subscribe_p99_ns_hi,\
churn_connected,churn_connected_lo,churn_connected_hi,\
churn_failed,churn_failed_lo,churn_failed_hi,\
churn_late,churn_late_lo,churn_late_hi,\
churn_connect_p50_ns,churn_connect_p50_ns_lo,churn_connect_p50_ns_hi,\
churn_connect_p99_ns,churn_connect_p99_ns_lo,churn_connect_p99_ns_hi,\
churn_tls_handshake_p99_ns,churn_tls_handshake_p99_ns_lo,churn_tls_handshake_p99_ns_hi,\
churn_subscribe_p99_ns,churn_subscribe_p99_ns_lo,churn_subscribe_p99_ns_hi,\
will_latency_p50_ns,will_latency_p50_ns_lo,will_latency_p50_ns_hi,\
will_latency_p99_ns,will_latency_p99_ns_lo,will_latency_p99_ns_hi,\
will_latency_max_ns,will_latency_max_ns_lo,will_latency_max_ns_hi,\
wills_due,wills_due_lo,wills_due_hi,\
wills_received,wills_received_lo,wills_received_hi,\
wills_undue,wills_undue_lo,wills_undue_hi,\
reconnected,reconnected_lo,reconnected_hi,\
reconnect_p50_ns,reconnect_p50_ns_lo,reconnect_p50_ns_hi,\
reconnect_p99_ns,reconnect_p99_ns_lo,reconnect_p99_ns_hi,\
cpu_ns_per_message,cpu_ns_per_message_lo,cpu_ns_per_message_hi,\
cpu_cores,cpu_cores_lo,cpu_cores_hi,\
server_cpu_cores,server_cpu_cores_lo,server_cpu_cores_hi,\
server_cpu_stddev_cores,server_cpu_stddev_cores_lo,server_cpu_stddev_cores_hi,\
rss_bytes_max,rss_bytes_max_lo,rss_bytes_max_hi,\
uss_bytes_median,uss_bytes_median_lo,uss_bytes_median_hi,\
server_rss_bytes_median,server_rss_bytes_median_lo,server_rss_bytes_median_hi,\
server_rss_bytes_max,server_rss_bytes_max_lo,server_rss_bytes_max_hi,\
server_uss_bytes_median,server_uss_bytes_median_lo,server_uss_bytes_median_hi,\
server_written_bytes,server_written_bytes_lo,server_written_bytes_hi,\
server_written_bytes_per_message,server_written_bytes_per_message_lo,server_written_bytes_per_message_hi,\
server_syncs,server_syncs_lo,server_syncs_hi,\
server_sync_time_ns,server_sync_time_ns_lo,server_sync_time_ns_hi,\
disk_writes,disk_writes_lo,disk_writes_hi,\
disk_flushes,disk_flushes_lo,disk_flushes_hi,\
disk_flush_time_ns,disk_flush_time_ns_lo,disk_flush_time_ns_hi,\
context_switches_per_message,context_switches_per_message_lo,context_switches_per_message_hi,\
subscriber_spread,subscriber_spread_lo,subscriber_spread_hi,\
shared_processor_ratio,shared_processor_ratio_lo,shared_processor_ratio_hi,\
runtime_paused_share,runtime_paused_share_lo,runtime_paused_share_hi,\
runtime_pause_max_ns,runtime_pause_max_ns_lo,runtime_pause_max_ns_hi,\
allocated_bytes_per_message,allocated_bytes_per_message_lo,allocated_bytes_per_message_hi,\
wire_bytes_per_message,wire_bytes_per_message_lo,wire_bytes_per_message_hi,\
clock_bound_ns,clock_bound_ns_lo,clock_bound_ns_hi";

fn lab() -> Lab {
    let mut lab = Lab::new(
        "[axes]\nsystem = [\"alpha\", \"kernel\"]\npayload = [\"1KiB\"]\nqos = [0, 1]\n\
         [[skip]]\nqos = 1\nsystem = \"kernel\"\nwhy = \"cannot\"\n",
    );
    for repeat in [1, 2] {
        lab.run("alpha 1KiB qos=0", repeat, |run| {
            latency(run, &[(300, 999)]);
            run.rates.offered_per_s = 1_000.0;
            run.rates.sent_per_s = 1_000.0;
            run.rates.delivered_per_s = 997.5 + f64::from(repeat);
            run.rates.delivered_bytes_per_s = 1e6;
            run.counts.expected = 1_000;
            run.counts.delivered = 750;
            run.counts.lost = 250;
            run.generator = Some(usage(0.25));
            run.jitter_ns = Some(12.5);
        });
    }
    lab.run("kernel 1KiB qos=0", 1, |run| {
        latency(run, &[(100, 999)]);
        run.rates.delivered_per_s = 998.0;
    });
    lab
}

#[test]
fn the_header_is_a_contract() {
    let text = lab().report().csv().unwrap();
    let header = text.lines().next().unwrap();
    assert_eq!(header, format!("system,payload,qos,{HEADER}"));
}

#[test]
fn a_row_has_plain_numbers_and_blanks() {
    let text = lab().report().csv().unwrap();
    let lines: Vec<&str> = text.lines().collect();
    // A header, three cells; the skipped one has no row.
    assert_eq!(lines.len(), 4);
    assert!(lines[1].starts_with("alpha,1024,0,2,2,2,2,2,2,2,ok,,,,false,,,,,300,291.1"), "{}", lines[1]);
    let of = |name: &str| -> Vec<&str> {
        let place = lines[0].split(',').position(|head| head == name).unwrap();
        lines[1].split(',').skip(place).take(3).collect()
    };
    assert_eq!((of("offered_per_s"), of("delivered_per_s")[0]), (vec!["1000"; 3], "999"));
    assert_eq!(of("delivered_ratio"), ["0.75"; 3]);
    assert_eq!(of("lost_ratio"), ["0.25"; 3]);
    assert_eq!(of("lost"), ["250"; 3]);
    assert_eq!((of("duplicated"), of("corrupted")), (vec!["0"; 3], vec!["0"; 3]));
    for absent in ["latency_p99_ns", "own_lag_p50_ns", "server_cpu_cores", "acked", "connect_p50_ns"] {
        assert_eq!(of(absent), [""; 3], "{absent}");
    }
    // The same in both runs, of which a clock tells 1 ns apart:
    // exp(t of 1 degree × 1/300 / √2) = exp(12.706 / 300 / 1.4142) = 1.0304.
    let [value, lo, hi] = of("latency_p50_ns")[..] else { panic!() };
    let number = |text: &str| text.parse::<f64>().unwrap();
    assert_eq!(value, "300");
    assert!((number(hi) / 309.12 - 1.0).abs() < 1e-4 && (number(lo) / 291.15 - 1.0).abs() < 1e-4, "{lo} {hi}");
    // The kernel has one run: one block, and no interval.
    assert_eq!(of("floor_latency"), ["3", "", ""]);
    assert!(lines[2].starts_with("alpha,1024,1,0,0,0,0,0,0,0,missing,,,,,,,"), "{}", lines[2]);
    assert!(lines[3].starts_with("kernel,1024,0,1,1,1,1,1,1,1,reference,,,,false,,,,,100,,,"), "{}", lines[3]);
}

#[test]
fn damage_is_absent_and_not_zero_where_nobody_looked_at_bodies() {
    // Records of before have a 0 there, those of today nothing.
    for corrupted in [Some(0), None] {
        let mut lab = lab();
        for run in &mut lab.records.runs {
            (run.workload.verify, run.counts.corrupted) = (Verify::Header, corrupted);
        }
        let rows = lab.report().summary_json();
        assert_eq!((&rows[0]["corrupted"], &rows[0]["duplicated"]), (&serde_json::Value::Null, &0.into()));
        let text = lab.report().csv().unwrap();
        let mut lines = text.lines().map(|line| line.split(','));
        let place = lines.next().unwrap().position(|head| head == "corrupted").unwrap();
        assert_eq!(lines.next().unwrap().nth(place), Some(""));
    }
}

#[test]
fn the_file_is_the_text() {
    let (dir, report) = (tempdir().unwrap(), lab().report());
    let path = dir.path().join("summary.csv");
    report.write_csv(&path).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), report.csv().unwrap());
    let error = report.write_csv(&dir.path().join("no/such/folder")).unwrap_err();
    assert!(error.to_string().contains("cannot write"), "{error}");
}

#[test]
fn the_same_rows_are_objects() {
    let report = lab().report();
    let rows = report.summary_json();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 3);
    let keys: Vec<&str> = rows[0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys.join(","), report.csv().unwrap().lines().next().unwrap());
    assert_eq!(rows[0]["system"], "alpha");
    assert_eq!(rows[0]["payload"], 1024);
    assert_eq!(rows[0]["lost"], 250);
    assert_eq!(rows[0]["delivered_per_s"], 999);
    assert_eq!((&rows[0]["verdict"], &rows[0]["delivered_is_lower_bound"]), (&"ok".into(), &false.into()));
    assert!(rows[0]["latency_p999_ns"].is_null());
    assert!(rows[1]["delivered_per_s"].is_null());
}
