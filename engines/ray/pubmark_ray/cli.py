"""The command `pubmark-ray`."""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from .words import Wanted, label, runtime_env

USAGE, NO_ANSWER = 2, 3


def main():
    """Runs a command of the command line."""
    arguments = sys.argv[1:]
    # What reaches is started for each host, and needs neither Ray nor a parser.
    if arguments[:1] == ["reach"] and len(arguments) > 3:
        from .relay import reach

        sys.exit(reach(arguments[1], arguments[2], arguments[3:]))
    sys.exit(run(parser().parse_args(arguments)))


def parser():
    """What may be written."""
    top = argparse.ArgumentParser(prog="pubmark-ray", description="pubmark over the nodes of a Ray cluster")
    commands = top.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run", help="run a study over the nodes of a cluster")
    options(one)
    one.add_argument("study", help="a study, as `pubmark run` takes it")
    one.add_argument("rest", nargs=argparse.REMAINDER, help="arguments of `pubmark run`")
    # What `pubmark run --on ray` starts.
    other = commands.add_parser("exec", help="run pubmark with these arguments and a generated hosts file")
    options(other)
    other.add_argument("rest", nargs=argparse.REMAINDER, help="-- and arguments of `pubmark`")
    return top


def options(one):
    """Which nodes are wanted."""
    one.add_argument("--address", default="auto", help="the cluster, as `ray.init` takes it (default: auto)")
    one.add_argument("--nodes", type=int, dest="count", help="number of nodes (default: all)")
    one.add_argument("--cpus", type=float, default=1, help="processors to reserve on each node (default: 1)")
    one.add_argument(
        "--resource",
        action="append",
        default=[],
        type=resource,
        metavar="NAME=AMOUNT",
        help="a Ray resource that each node must have",
    )
    one.add_argument(
        "--label",
        action="append",
        default=[],
        type=label,
        metavar="NAME=VALUE",
        help="a label that each node must have, in the syntax of Ray's label selectors",
    )
    one.add_argument(
        "--runtime-env",
        type=runtime_env,
        metavar="FILE",
        help="Ray runtime environment of the nodes: a JSON or YAML file",
    )
    one.add_argument("--timeout", type=float, default=120, help="time to wait for the nodes, s (default: 120)")


def resource(text):
    """NAME=AMOUNT"""
    name, _, amount = text.partition("=")
    try:
        return name, float(amount)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"`{text}` is no NAME=AMOUNT") from error


def run(arguments):
    """Runs a study: its exit code."""
    pubmark = os.environ.get("PUBMARK") or shutil.which("pubmark")
    if not pubmark:
        print("pubmark-ray: `pubmark` is not on the PATH: run `pip install pubmark`", file=sys.stderr)
        return USAGE
    from .cluster import Cluster, NoRoom
    from .relay import Relay

    try:
        cluster = Cluster(arguments.address, wanted(arguments), arguments.timeout)
    except (NoRoom, ConnectionError) as error:
        print(f"pubmark-ray: {error}", file=sys.stderr)
        return NO_ANSWER
    with tempfile.TemporaryDirectory(prefix="pubmark-ray-") as folder:
        relay = Relay(folder, cluster.hosts)
        file = os.path.join(folder, "hosts.toml")
        with open(file, "w", encoding="utf-8") as out:
            out.write(hosts_file(list(cluster.hosts.values()), relay.path))
        try:
            return follow([pubmark, *given(arguments), "--hosts", file])
        finally:
            relay.close()
            there, back = (sum(host.carried_bytes[way] for host in cluster.hosts.values()) for way in (0, 1))
            print(f"pubmark-ray: carried {there} bytes to {len(cluster.hosts)} nodes and {back} back", file=sys.stderr)
            cluster.close()


def wanted(arguments):
    """What is wanted of a cluster."""
    return Wanted(
        hosts=arguments.count,
        resources={"CPU": arguments.cpus, **dict(arguments.resource)},
        labels=dict(arguments.label),
        runtime_env=arguments.runtime_env,
    )


def given(arguments):
    """The arguments of pubmark."""
    if arguments.command == "run":
        return ["run", arguments.study, *arguments.rest]
    return arguments.rest[1:] if arguments.rest[:1] == ["--"] else arguments.rest


def follow(command):
    """Runs pubmark until it ends. Who wants this to end wants it of pubmark, which
    clears up: this waits for it."""
    process = subprocess.Popen(command)
    for wanted in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(wanted, lambda number, _: process.send_signal(number))
    # Ctrl-C reaches both.
    signal.signal(signal.SIGINT, lambda *_: None)
    status = process.wait()
    return status if status >= 0 else 128 - status


def hosts_file(hosts, socket_path):
    """The file of hosts: the first has the server, where there are others for clients."""
    tables = []
    for index, host in enumerate(hosts):
        roles = ["server"] if index == 0 and len(hosts) > 1 else ["publishers", "subscribers"]
        roles = [] if len(hosts) == 1 else roles
        reach = [sys.executable, "-m", "pubmark_ray.cli", "reach", socket_path, host.name]
        table = f"[hosts.{host.name}]\nreach = [{quoted(reach)}]\naddress = {quoted([host.address])}\n"
        tables.append(table + (f"roles = [{quoted(roles)}]\n" if roles else ""))
    return "\n".join(tables)


def quoted(words):
    """Words of TOML."""
    escaped = (word.replace("\\", "\\\\").replace('"', '\\"') for word in words)
    return ", ".join(f'"{word}"' for word in escaped)


if __name__ == "__main__":
    main()
