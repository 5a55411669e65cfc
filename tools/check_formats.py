#!/usr/bin/env python3
"""Whether other tools read what pubmark writes: its metrics, its OTLP documents and its histograms.

tools/check_formats.py

Measures mosquitto with a fault, and reads the output with the parsers of Prometheus, of the OpenTelemetry protocol
and of HdrHistogram (prometheus-client, opentelemetry-proto, hdrhistogram). `make test-formats` installs them.
The program is $PUBMARK (default: target/debug/pubmark).
"""

import http.server
import io
import json
import math
import os
import pathlib
import re
import subprocess
import tempfile
import threading
import urllib.request

from google.protobuf import json_format
from hdrh.histogram import HdrHistogram
from hdrh.iterators import PercentileIterator
from hdrh.log import HistogramLogReader
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

ROOT = pathlib.Path(__file__).resolve().parent.parent
PUBMARK = os.environ.get("PUBMARK", str(ROOT / "target/debug/pubmark"))
LOAD = ["--pairs", "2", "--rate", "500", "--warmup", "200ms", "--duration", "2s", "--repeats", "3"]
FAULT = ["--fault", "stop server at 500ms for 200ms"]
# Series that appear during a run.
WANTED = {"pubmark_run_fault", "pubmark_server_cpu_seconds", "pubmark_cell_latency_p99_seconds", "pubmark_cell_valid"}
# A value in one of the tools may be any in its bucket: 0.1 % with three digits.
BUCKET = 0.002


class Collector(http.server.BaseHTTPRequestHandler):
    """Keeps the documents that are posted, with their paths."""

    posted = []

    def do_POST(self):
        Collector.posted.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format, *args):
        pass


def near(found, wanted):
    assert abs(found - wanted) <= BUCKET * max(wanted, 1), f"{found} is not {wanted}"


def measure(folder):
    """Measures, and parses every scrape meanwhile. Returns the records and the posted documents."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    served = ["--metrics", "0", "--otlp", f"http://127.0.0.1:{server.server_port}", "--out", "r"]
    command = [PUBMARK, "bench", "mosquitto", *LOAD, *FAULT, *served]
    run = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = ""
    while not (address := re.search(r"metrics: (http://\S+)", said)):
        line = run.stderr.readline()
        assert line, said
        said += line
    threading.Thread(target=run.stderr.read, daemon=True).start()
    families, scrapes = set(), 0
    while run.poll() is None and not WANTED <= families:
        try:
            text = urllib.request.urlopen(address[1], timeout=5).read().decode()
        except OSError:
            break
        scrapes += 1
        for family in text_string_to_metric_families(text):
            assert family.type in ("gauge", "counter") and family.documentation and family.samples, family
            families.add(family.name)
    assert WANTED <= families, f"{WANTED - families} in none of {scrapes} scrapes"
    assert run.wait() in (0, 3)
    server.shutdown()
    lines = (folder / "r/runs.jsonl").read_text().splitlines()
    print(f"prometheus-client: {len(families)} metrics")
    return [json.loads(line) for line in lines], Collector.posted


def check_otlp(records, posted):
    """Parses each document by the protocol's definition, which refuses unknown fields."""
    lost, faults = {}, []
    for path, body in posted:
        if path == "/v1/logs":
            logs = json_format.Parse(body, ExportLogsServiceRequest())
            faults += [one for part in logs.resource_logs for scope in part.scope_logs for one in scope.log_records]
            continue
        assert path == "/v1/metrics", path
        document = json_format.Parse(body, ExportMetricsServiceRequest())
        for part in document.resource_metrics:
            for metric in (metric for scope in part.scope_metrics for metric in scope.metrics):
                points = metric.sum.data_points or metric.gauge.data_points
                assert points and all(point.time_unix_nano > 0 for point in points), metric
                for point in points:
                    labels = {one.key: one.value.string_value for one in point.attributes}
                    if metric.name == "pubmark_cell_lost" and labels.get("flow") == "all":
                        lost[labels["repeat"]] = point.as_double
    wanted = {str(record["repeat"]): record["counts"]["lost"] for record in records}
    assert lost == wanted, f"{lost} is not {wanted}"
    assert [fault.body.string_value for fault in faults] == ["stop server"] * len(records), faults
    print(f"opentelemetry-proto: {len(posted)} documents")


def report(folder, form):
    command = [PUBMARK, "report", "r", "--format", form]
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout


def check_hlog(folder, records):
    """Compares the percentiles of each run, read from the log, with those of its record."""
    path = folder / "r.hlog"
    path.write_text(report(folder, "hlog"))
    reader = HistogramLogReader(str(path), HdrHistogram(1, 3_600_000_000_000, 3))
    for record in records:
        histogram, wanted = reader.get_next_interval_histogram(), record["latency_ns"]
        assert histogram.get_total_count() == wanted["count"], record["repeat"]
        assert histogram.get_tag().startswith("mosquitto"), histogram.get_tag()
        for name, percentile in [("p50", 50), ("p90", 90), ("p99", 99), ("p999", 99.9), ("max", 100)]:
            near(histogram.get_value_at_percentile(percentile), wanted[name])
    assert reader.get_next_interval_histogram() is None
    print(f"hdrhistogram: {len(records)} lines of the log")


def increment_as_the_original(self):
    """Takes whole halvings of the distance to 100 %, as HdrHistogram for Java does; its port 0.10.8 does not."""
    level = self.percentile_to_iterate_to
    if level < 100:
        halvings = int(math.log2(100 / (100 - level))) + 1
        self.percentile_to_iterate_to += 100 / (self.percentile_ticks_per_half_distance * 2**halvings)


def check_hgrm(folder, records):
    """Compares the table with that of HdrHistogram's own tool, over all runs."""
    whole = HdrHistogram(1, 3_600_000_000_000, 3)
    for record in records:
        whole.add(HdrHistogram.decode(record["histograms"]["latency"].encode()))
    PercentileIterator.increment_iteration_level = increment_as_the_original
    printed = io.BytesIO()
    whole.output_percentile_distribution(printed, 1_000.0)

    def rows(text):
        return [line.split()[:3] for line in text.splitlines() if re.match(r"\s*\d", line)]

    ours, theirs = rows(report(folder, "hgrm")), rows(printed.getvalue().decode())
    assert [row[1:] for row in ours] == [row[1:] for row in theirs], f"{ours}\n{theirs}"
    for own, other in zip(ours, theirs):
        near(float(own[0]), float(other[0]))
    print(f"hdrhistogram: {len(ours)} rows of the table")


with tempfile.TemporaryDirectory(prefix="pubmark-formats-") as name:
    place = pathlib.Path(name)
    made, sent = measure(place)
    check_otlp(made, sent)
    check_hlog(place, made)
    check_hgrm(place, made)
