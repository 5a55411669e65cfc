#!/usr/bin/env python3
"""What a message of Kafka costs pubmark's clients, beside Kafka's own performance tools and kcat.

tools/kafka_parity.py [--messages N] [--rates 10000,1000] [--rounds N] [--set KEY=VALUE]...

One broker is started. The programs take turns at it: each sends N messages of 1 KiB at a rate, from one producer to one
consumer, with acks=all, linger 5 ms and batches of 16 KiB. A turn costs the CPU time of its producer and of its
consumer (user and system). Each program also has a turn of the same length at 10 messages/s, and its CPU time is
subtracted, so that start and idle work do not count. Prints both, and a table of CPU time per message: medians over the
rounds. Exit code 1 if pubmark's producer costs more than another one.

pubmark's CPU time is that of its agents in the window, because coordinator and report serve no message. kcat is fed
every 2 ms with what is due, which is how the performance tool paces itself.

The program is $PUBMARK (default: target/release/pubmark). Needs Java, kcat, Kafka (`pubmark systems kafka --install`)
and its tools ($KAFKA_TOOLS, a folder with jars; `make kafka-parity` installs all).
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PUBMARK = os.environ.get("PUBMARK", str(ROOT / "target/release/pubmark"))
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "pubmark"
BROKER = CACHE / "systems/kafka/lib"
TOOLS = pathlib.Path(os.environ.get("KAFKA_TOOLS") or CACHE / "test/kafka-tools/lib")
PAYLOAD_BYTES = 1024
LINGER_MS = 5
BATCH_BYTES = 16384
# Of turns in which nearly nothing is sent.
IDLE_PER_S = 10
FEED_S = 0.002
# Until all consumers are there; for the rest of a turn.
JOIN_S = 60
PATIENCE_S = 60
# As Kafka's start scripts set them.
JAVA = ["java", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"]
JAVA += ["-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15", "-Djava.awt.headless=true"]
JAVA += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
log.dirs={folder}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
"""


class Failed(Exception):
    """A turn that says nothing."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(what, seconds, holds):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise Failed(f"not within {seconds} s: {what}")
        time.sleep(0.05)


@contextlib.contextmanager
def broker(folder):
    """Runs a broker. Gives its address."""
    port, controller = free_port(), free_port()
    properties, log = folder / "server.properties", folder / "broker.log"
    properties.write_text(PROPERTIES.format(port=port, controller=controller, folder=folder))
    java = [*JAVA, "-Xmx1G", "-cp", f"{BROKER}/*"]
    store = ["kafka.tools.StorageTool", "format", "--cluster-id", "cHVibWFyay0tLXB1Ym1hcg", "--config", str(properties)]
    subprocess.run([*java, *store], check=True, stdout=subprocess.DEVNULL)
    with log.open("w") as output:
        server = subprocess.Popen([*java, "kafka.Kafka", str(properties)], stdout=output, stderr=output)

    def is_up():
        if server.poll() is not None:
            raise Failed(f"the broker has ended: {log.read_text()[-500:]}")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        wait_until("the broker accepts connections", PATIENCE_S, is_up)
        yield f"127.0.0.1:{port}"
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


class Measured:
    """A program whose CPU time is measured."""

    def __init__(self, command, **more):
        self.command, self.cpu_s = command, None
        self.process = subprocess.Popen(command, **more)

    def ended(self):
        if self.cpu_s is None:
            pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                self.process.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_s = usage.ru_utime + usage.ru_stime
        return self.cpu_s is not None

    def finish(self, seconds):
        """Waits for its end. Returns its CPU time, s."""
        wait_until(f"the end of {self.command[0]}", seconds, self.ended)
        if self.process.returncode != 0:
            raise Failed(f"{' '.join(map(str, self.command))} ended with {self.process.returncode}")
        return self.cpu_s

    def kill(self):
        if not self.ended():
            self.process.kill()
            wait_until(f"the end of {self.command[0]}", PATIENCE_S, self.ended)


def tool(name, *arguments):
    return [*JAVA, "-Xmx512M", "-cp", f"{TOOLS}/*", f"org.apache.kafka.tools.{name}", *map(str, arguments)]


def create_topic(address, topic):
    options = ["--bootstrap-server", address, "--create", "--topic", topic, "--partitions", 1]
    done = subprocess.run(tool("TopicCommand", *options), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"no topic: {done.stdout}{done.stderr}")


def members(address, group):
    options = ["--bootstrap-server", address, "--describe", "--group", group, "--members"]
    command = tool("consumer.group.ConsumerGroupCommand", *options)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return sum(line.startswith(group) for line in done.stdout.splitlines())


def play_tools(address, topic, messages, rate, folder):
    """Kafka's own tools."""
    create_topic(address, topic)
    settings = [f"bootstrap.servers={address}", "acks=all", f"linger.ms={LINGER_MS}", f"batch.size={BATCH_BYTES}"]
    # As with pubmark at QoS 1.
    settings += ["enable.idempotence=false", "compression.type=none"]
    source = ["--topic", topic, "--num-records", messages, "--record-size", PAYLOAD_BYTES, "--throughput", rate]
    sink = ["--bootstrap-server", address, "--topic", topic, "--num-records", messages, "--group", topic]
    sink += ["--timeout", int(PATIENCE_S * 1000), "--from-latest"]
    with (folder / f"{topic}.log").open("w") as log:
        consumer = Measured(tool("ConsumerPerformance", *sink), stdout=log, stderr=log)
        try:
            wait_until("the consumer joins its group", JOIN_S, lambda: members(address, topic) == 1)
            producer = Measured(tool("ProducerPerformance", *source, "--producer-props", *settings), stdout=log, stderr=log)
            try:
                sent = producer.finish(messages / rate + PATIENCE_S)
                return sent, consumer.finish(PATIENCE_S)
            finally:
                producer.kill()
        finally:
            consumer.kill()


def play_kcat(address, topic, messages, rate, folder):
    """kcat."""
    create_topic(address, topic)
    sink = ["kcat", "-C", "-b", address, "-t", topic, "-p", "0", "-o", "beginning", "-c", str(messages), "-f", ""]
    source = ["kcat", "-P", "-b", address, "-t", topic, "-p", "0", "-X", "acks=all", "-X", f"linger.ms={LINGER_MS}"]
    source += ["-X", f"batch.size={BATCH_BYTES}"]
    line = b"x" * PAYLOAD_BYTES + b"\n"
    with (folder / f"{topic}.log").open("w") as log:
        consumer = Measured(sink, stdout=log, stderr=log)
        producer = Measured(source, stdin=subprocess.PIPE, stdout=log, stderr=log)
        try:
            pipe = producer.process.stdin
            began, sent = time.monotonic(), 0
            while sent < messages:
                due = min(messages, int((time.monotonic() - began) * rate) + 1)
                pipe.write(line * (due - sent))
                pipe.flush()
                sent = due
                time.sleep(FEED_S)
            pipe.close()
            return producer.finish(PATIENCE_S), consumer.finish(PATIENCE_S)
        finally:
            producer.kill()
            consumer.kill()


def play_pubmark(address, topic, messages, rate, folder, settings):
    """pubmark."""
    results = folder / topic
    command = [PUBMARK, "bench", f"kafka://{address}", "--qos", "1", "--pairs", "1", "--rate", str(rate), "--json", "-q"]
    command += ["--payload", f"{PAYLOAD_BYTES}B", "--warmup", "1s", "--repeats", "1", "--out", str(results)]
    options = [f"count={messages}", f"drain={PATIENCE_S}s", f"options.linger={LINGER_MS}ms"]
    options += [f"options.batch={BATCH_BYTES}B", *settings]
    command += [word for option in options for word in ("--set", option)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=messages / rate + 2 * PATIENCE_S)
    try:
        run = json.loads(done.stdout)["runs"][0]
        counts = run["counts"]
        if counts["delivered"] != messages:
            raise Failed(f"pubmark delivered {counts['delivered']} of {messages} messages")
        cpu = {agent["name"].split("-")[0]: agent["usage"]["cpu_s"] for agent in run["agents"]}
        return cpu["publishers"], cpu["subscribers"]
    except (json.JSONDecodeError, LookupError) as error:
        raise Failed(f"pubmark gave no figures: {error!r}: {done.stderr[-500:]}") from error


def compare(address, rate, messages, rounds, programs, folder):
    """Plays the turns of a rate. Returns the CPU time per message of each program's producer and consumer, s."""
    idle_messages = max(1, round(messages * IDLE_PER_S / rate))
    found = {name: [] for name in programs}
    for number in range(rounds):
        for name, play in programs.items():
            topic = f"{name}-{rate}-{number}"
            idle = play(address, f"{topic}-idle", idle_messages, IDLE_PER_S, folder)
            full = play(address, topic, messages, rate, folder)
            costs = [(much - little) / (messages - idle_messages) for much, little in zip(full, idle)]
            found[name].append(costs)
            words = [f"{much:.2f} s less {little:.2f} s" for much, little in zip(full, idle)]
            print(f"  {rate}/s, {name}: producer {words[0]}, consumer {words[1]}", flush=True)
    return {name: [statistics.median(side) for side in zip(*costs)] for name, costs in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=100_000, help="messages of a turn [default: 100000]")
    parser.add_argument("--rates", default="10000,1000", help="messages/s [default: 10000,1000]")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each program at each rate [default: 3]")
    parser.add_argument("--only", default="pubmark,tools,kcat", help="programs [default: pubmark,tools,kcat]")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a key of pubmark's study")
    arguments = parser.parse_args()
    play = {"tools": play_tools, "kcat": play_kcat}
    play["pubmark"] = lambda *turn: play_pubmark(*turn, arguments.set)
    programs = {name: play[name] for name in arguments.only.split(",")}
    missing = [str(folder) for folder in (BROKER, TOOLS) if not folder.is_dir()]
    missing += [name for name in ("java", "kcat", PUBMARK) if not shutil.which(name)]
    if missing:
        print(f"missing: {', '.join(missing)}\nhint: make kafka-parity", file=sys.stderr)
        return 2
    good = True
    with tempfile.TemporaryDirectory(prefix="kafka-parity-") as place, broker(pathlib.Path(place)) as address:
        for rate in map(int, arguments.rates.split(",")):
            costs = compare(address, rate, arguments.messages, arguments.rounds, programs, pathlib.Path(place))
            print(f"\n| {rate} messages/s | producer, µs/message | consumer, µs/message |\n|---|---:|---:|")
            for name, (producer, consumer) in costs.items():
                print(f"| {name} | {producer * 1e6:.1f} | {consumer * 1e6:.1f} |")
            print(flush=True)
            ours = costs.get("pubmark")
            good &= ours is None or all(ours[0] <= other[0] for other in costs.values())
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        print(f"error: {failure}", file=sys.stderr)
        sys.exit(2)
