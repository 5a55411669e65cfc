//! `--metrics`: the state of a study, in the text format that Prometheus scrapes (OpenMetrics 1.0). Everything is made
//! on request.

use super::{HttpRequest, HttpResponse, HttpServer};
use crate::failure::Failure;
use crate::output::note;
use crate::progress::board::SharedBoard;
use crate::telemetry::{Family, Labels, MetricKind, Metrics};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt::Error;
use std::net::SocketAddr;
use std::sync::Arc;

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves the metrics at an address, and prints it.
pub fn serve(shared: Arc<SharedBoard>, address: SocketAddr) -> Result<HttpServer, Failure> {
    let registry = registry(shared);
    let answer = move |request: &HttpRequest| match request.path.as_str() {
        "/metrics" => {
            let mut text = String::new();
            match encode(&mut text, &registry) {
                Ok(()) => HttpResponse::ok(CONTENT_TYPE, text.into_bytes()),
                Err(_) => HttpResponse::status(503),
            }
        }
        _ => HttpResponse::status(404),
    };
    let server = HttpServer::start("--metrics", address, Arc::new(answer))?;
    note(&format!("metrics: http://{}/metrics", server.address));
    Ok(server)
}

fn registry(shared: Arc<SharedBoard>) -> Registry {
    let mut registry = Registry::with_prefix("pubmark");
    registry.register_collector(Box::new(Metrics::new(shared)));
    registry
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let snapshot = self.snapshot();
        let families = snapshot.progress().into_iter().chain(snapshot.cells());
        families.into_iter().try_for_each(|family| write(&mut encoder, &family))
    }
}

fn write(encoder: &mut DescriptorEncoder<'_>, family: &Family) -> Result<(), Error> {
    let kind = match family.kind {
        MetricKind::Gauge => MetricType::Gauge,
        MetricKind::Counter { .. } => MetricType::Counter,
    };
    let mut encoder = encoder.encode_descriptor(&family.name, family.help, None, kind)?;
    for (labels, value) in &family.samples {
        match labels.is_empty() {
            true => sample(&mut encoder, family.kind, *value)?,
            false => sample(&mut encoder.encode_family(&escaped(labels))?, family.kind, *value)?,
        }
    }
    Ok(())
}

fn sample(encoder: &mut MetricEncoder<'_>, kind: MetricKind, value: f64) -> Result<(), Error> {
    match kind {
        MetricKind::Gauge => encoder.encode_gauge(&value),
        MetricKind::Counter { .. } => encoder.encode_counter::<NoLabelSet, _, u64>(&value, None),
    }
}

/// Escapes the values: the encoder writes them unchanged.
fn escaped(labels: &Labels) -> Labels {
    let escape = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    labels.iter().map(|(name, value)| (name.clone(), escape(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::board::{CellState, LastRun};
    use pubmark_model::figure::Figure;

    #[test]
    fn hostile_labels_stay_within_their_quotes_and_cells_without_end_have_no_series() {
        let shared = Arc::new(SharedBoard::default());
        for index in 0..1_005 {
            let mut cell = CellState::default();
            cell.label = if index == 0 { "a\"} 1\\\n</script>".into() } else { format!("cell {index}") };
            cell.last = Some(LastRun { figures: vec![(Figure::DELIVERED_RATIO, 0.5)], valid: true });
            shared.lock().cells.push(cell);
        }
        let mut text = String::new();
        encode(&mut text, &registry(shared)).unwrap();
        let series: Vec<&str> = text.lines().filter(|line| line.starts_with("pubmark_cell_delivered_ratio{")).collect();
        assert_eq!(series.len(), 1_000);
        assert_eq!(series[0], r#"pubmark_cell_delivered_ratio{cell="1",system="",label="a\"} 1\\\n</script>"} 0.5"#);
        assert!(text.ends_with("# EOF\n"));
    }
}
