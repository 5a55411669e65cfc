//! AsyncAPI documents become skeletons of studies that can be run.

use crate::support::{Place, stderr, stdout};

const VERSION_3: &str = r##"
asyncapi: 3.0.0
info: { title: "Pumps \"north\"", version: 1.0.0 }
servers:
  main: { host: broker.example, protocol: mqtt }
channels:
  pressureMeasured:
    address: pumps/{id}/pressure
    messages:
      pressure: { $ref: "#/components/messages/pressure" }
  stop:
    address: pumps/{id}/stop
    messages:
      stop: { payload: { type: string, enum: ["on", "off"] } }
  all:
    messages:
      raw: { payload: { schemaFormat: "application/vnd.apache.avro;version=1.9.0", schema: { type: string } } }
operations:
  onPressure:
    action: receive
    channel: { $ref: "#/channels/pressureMeasured" }
    traits: [{ $ref: "#/components/operationTraits/reliable" }]
  sendStop:
    action: send
    channel: { $ref: "#/channels/stop" }
    bindings: { mqtt: { qos: 2 } }
components:
  operationTraits:
    reliable: { bindings: { mqtt: { qos: 1 } } }
  messages:
    pressure:
      payload:
        type: object
        properties:
          bar: { type: integer, maximum: 999 }
          at: { $ref: "#/components/schemas/at" }
  schemas:
    at: { type: string, format: date-time }
"##;

const VERSION_2: &str = r##"{
  "asyncapi": "2.6.0",
  "info": {"title": "Orders", "version": "1"},
  "servers": {"main": {"url": "nats.example", "protocol": "nats"}},
  "channels": {
    "orders/new": {"publish": {"message": {"oneOf": [
      {"payload": {"type": "array", "minItems": 100, "items": {"type": "boolean"}}},
      {"payload": {"type": "null"}}]}}},
    "orders.new": {"subscribe": {"bindings": {"mqtt": {"qos": 1}}, "message": {"payload": {"$ref": "#/loop"}}}},
    "9": {"publish": {}, "subscribe": {}}
  },
  "loop": {"type": "object", "properties": {"next": {"$ref": "#/loop"}}}
}"##;

/// Returns the skeleton of a document and the remarks, once the skeleton has been planned as a study.
fn skeleton(document: &str) -> (String, String) {
    let place = Place::new();
    std::fs::write(place.path("asyncapi.yaml"), document).unwrap();
    let output = place.run(&["studies", "--from", "asyncapi.yaml"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    place.study(&text);
    let plan = place.run(&["run", "study.toml", "--dry-run"]);
    assert_eq!(plan.status.code(), Some(0), "{}\n{text}", stderr(&plan));
    (text, stderr(&output))
}

fn assert_has(text: &str, wanted: &[&str]) {
    for part in wanted {
        assert!(text.contains(part), "should have {part:?}:\n{text}");
    }
}

#[test]
fn a_channel_becomes_a_flow_with_direction_size_and_qos() {
    let (text, _) = skeleton(VERSION_3);
    // {"bar":999,"at":"2026-01-01T00:00:00Z"} is 39 bytes.
    assert_has(
        &text,
        &[
            "title = \"Pumps \\\"north\\\"\"",
            "# pumps/{id}/pressure: the application receives\n[flows.pressure-measured]\npattern = \"fan-in\"\n",
            "payload = \"39B\" # estimated from the schema\nqos = 1\n",
            "# pumps/{id}/stop: the application sends\n[flows.stop]\npattern = \"fan-out\"\n",
            "payload = \"16B\" # estimated from the schema\nqos = 2\n",
            "# all: no operation uses it\n[flows.channel]\npattern = \"pairs\"\npairs = 1\npayload = \"1KiB\" # no schema",
            "system = [\"mosquitto\"]",
        ],
    );
}

#[test]
fn the_older_version_says_it_from_the_view_of_the_users() {
    let (text, said) = skeleton(VERSION_2);
    assert_has(
        &text,
        &[
            "# orders/new: the application receives\n[flows.orders-new]\npattern = \"fan-in\"\n",
            "payload = \"601B\" # estimated",
            "# orders.new: the application sends\n[flows.orders-new-2]\npattern = \"fan-out\"\n",
            "payload = \"1KiB\" # no schema that a size can be estimated from\nqos = 0\n",
            "# 9: the application sends and receives\n[flows.channel]\npattern = \"pairs\"\n",
            "system = [\"nats\"]",
        ],
    );
    assert!(said.contains("orders-new-2: QoS 1, of which the system has at most 0"), "{said}");
}

#[test]
fn more_channels_than_flows_and_unknown_protocols_are_told() {
    let channels: String = (0..20).map(|number| format!("  c{number}: {{}}\n")).collect();
    let (text, said) =
        skeleton(&format!("asyncapi: 3.0.0\nservers: {{a: {{protocol: pulsar}}}}\nchannels:\n{channels}"));
    assert_eq!(text.matches("[flows.").count(), 16);
    assert!(said.contains("4 more channels: a study has at most 16 flows"), "{said}");
    assert!(said.contains("the servers name pulsar, which no system here has: the study has mosquitto"), "{said}");
}

#[test]
fn what_is_no_document_is_refused() {
    let place = Place::new();
    for (text, wanted) in [
        ("", "a.yaml: the file is empty"),
        ("openapi: 3.0.0\n", "a.yaml: not an AsyncAPI document"),
        ("asyncapi: 1.2.0\n", "a.yaml:1:11: AsyncAPI 1.2.0 is not supported; versions 2 and 3 are"),
        ("asyncapi: 3.0.0\nchannels: {}\n", "a.yaml: the document has no channels"),
        ("asyncapi: [\n", "not YAML"),
    ] {
        std::fs::write(place.path("a.yaml"), text).unwrap();
        let output = place.run(&["studies", "--from", "a.yaml"]);
        assert_eq!(output.status.code(), Some(2), "{text:?}");
        assert!(stderr(&output).contains(wanted), "{}", stderr(&output));
    }
    let output = place.run(&["studies", "--from", "none.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--from none.yaml: "), "{}", stderr(&output));
}
