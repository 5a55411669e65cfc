"""Words of the command line that are Ray's own: labels of nodes, runtime environments."""

import argparse
import dataclasses
import json
import re


@dataclasses.dataclass
class Wanted:
    """What is wanted of a cluster: so many hosts, or as many as there are nodes, each with
    resources and labels, in Ray's words; and what runs there in this environment."""

    hosts: int = None
    resources: dict = dataclasses.field(default_factory=dict)
    labels: dict = dataclasses.field(default_factory=dict)
    runtime_env: dict = None

    def init_options(self):
        """More for `ray.init`."""
        return {"runtime_env": self.runtime_env} if self.runtime_env else {}

    def group_options(self, hosts):
        """What a placement group of so many hosts is made with."""
        options = {"bundles": [dict(self.resources)] * hosts, "strategy": "STRICT_SPREAD"}
        if self.labels:
            # A Ray that knows no labels says so by this word.
            options["bundle_label_selector"] = [dict(self.labels)] * hosts
        return options

    def of(self, nodes):
        """Those of Ray's nodes that live and have the labels."""
        return [node for node in nodes if node["Alive"] and holds(node.get("Labels", {}), self.labels)]

    def __str__(self):
        with_labels = f" and the labels {self.labels}" if self.labels else ""
        return f"{self.resources}{with_labels}"


def label(text):
    """NAME=VALUE: a node has this label. VALUE may be what Ray's label selectors take:
    `a`, `!a`, `in(a,b)`, `!in(a,b)`."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"`{text}` is no NAME=VALUE")
    return name, value


def holds(labels, selector):
    """Whether a node with these labels is one that a selector asks for."""
    return all(_holds(labels.get(name), value) for name, value in selector.items())


def _holds(found, value):
    negated = value.startswith("!")
    listed = re.fullmatch(r"in\((.*)\)", value[negated:])
    wanted = [one.strip() for one in listed[1].split(",")] if listed else [value[negated:]]
    return (found in wanted) != negated


def runtime_env(path):
    """A file with a runtime environment, JSON or YAML, as `ray job submit --runtime-env`
    takes it."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{path}: {error.strerror}") from error
    found = _read(path, text)
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError(f"{path} is no runtime environment: a table of keys and values")
    return found


def _read(path, text):
    try:
        return json.loads(text)
    except ValueError:
        # Ray has it with itself.
        import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise argparse.ArgumentTypeError(f"{path} is neither JSON nor YAML: {error}") from error
