"""Hosts of a Ray cluster: one bundle of a placement group each, and an actor in it."""

import ipaddress

import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from . import node

# The nodes have this module from the driver, and need not install it.
ray.cloudpickle.register_pickle_by_value(node)

# Reads of several sessions wait at once in one actor.
SESSIONS_AT_ONCE = 32


class NoRoom(Exception):
    """The cluster cannot give what was asked for."""


class Cluster:
    """The hosts of one study. They are given back when this is closed."""

    def __init__(self, address, wanted, timeout_s):
        """What is `wanted` of the cluster at an address: see `words.Wanted`."""
        options = {"log_to_driver": False, "logging_level": "warning", "namespace": "pubmark"}
        ray.init(address=address, **options, **wanted.init_options())
        nodes = wanted.of(ray.nodes())
        hosts = wanted.hosts or len(nodes)
        if hosts > len(nodes) or not nodes:
            labelled = f" with the labels {wanted.labels}" if wanted.labels else ""
            raise NoRoom(f"{hosts or 'any'} hosts are wanted, and the cluster has {len(nodes)} nodes{labelled}")
        self._group = placement_group(**wanted.group_options(hosts))
        if not self._group.wait(timeout_s):
            remove_placement_group(self._group)
            raise NoRoom(
                f"the cluster did not give {hosts} nodes with {wanted} each within {timeout_s} s: "
                "it is in use, or none has as much (see `ray status`)"
            )
        remote = ray.remote(node.Node)
        actors = [remote.options(**self._place(index)).remote() for index in range(hosts)]
        facts = ray.get([actor.facts.remote() for actor in actors], timeout=timeout_s)
        # Ray's own names are long, and differ each time: hosts are called by their
        # addresses' order, so that the same one has the server again.
        found = sorted(zip(facts, actors), key=lambda each: ipaddress.ip_address(each[0][1]))
        self.hosts = {
            f"node{number}": Host(f"node{number}", actor, node_id, address)
            for number, ((node_id, address), actor) in enumerate(found, start=1)
        }

    def _place(self, index):
        strategy = PlacementGroupSchedulingStrategy(
            placement_group=self._group,
            placement_group_bundle_index=index,
            # What pubmark starts there is not Ray's to place.
            placement_group_capture_child_tasks=False,
        )
        return {
            "num_cpus": 0,
            "max_concurrency": SESSIONS_AT_ONCE,
            "max_restarts": 0,
            "scheduling_strategy": strategy,
        }

    def close(self):
        """Ends the actors and what they have started, and gives the bundles back."""
        for host in self.hosts.values():
            ray.kill(host.actor)
        remove_placement_group(self._group)
        ray.shutdown()


class Host:
    """A node, and what was carried to it and from it."""

    def __init__(self, name, actor, node_id, address):
        self.name = name
        self.actor = actor
        self.node_id = node_id
        self.address = address
        self.carried_bytes = [0, 0]

    def call(self, method, *arguments, timeout_s):
        """Calls the actor. What it raises says which host is lost."""
        try:
            return ray.get(getattr(self.actor, method).remote(*arguments), timeout=timeout_s)
        except ray.exceptions.GetTimeoutError as error:
            raise Lost(f"{self} did not answer within {timeout_s} s") from error
        except ray.exceptions.RayError as error:
            raise Lost(f"{self} is lost: {first_line(error)}") from error

    def __str__(self):
        return f"Ray's node {self.address} ({self.node_id[:12]})"


class Lost(Exception):
    """A host is lost."""


def first_line(error):
    """What an error of Ray's says, without its pages."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
