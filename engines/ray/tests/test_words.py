"""Words of the command line and what becomes of them, without Ray."""

import contextlib
import importlib.metadata
import io
import json
import os
import pathlib
import re
import tempfile
import unittest

from pubmark_ray import cli
from pubmark_ray.words import Wanted, holds

RUN = ["run", "STUDY"]


class Words(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def file(self, text):
        path = os.path.join(self.folder, "env")
        pathlib.Path(path).write_text(text, encoding="utf-8")
        return path

    def wanted(self, *options):
        return cli.wanted(cli.parser().parse_args(["run", *options, "STUDY"]))

    def refused(self, *options):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as ended:
            self.wanted(*options)
        self.assertEqual(ended.exception.code, cli.USAGE)
        return said.getvalue()

    def test_resources_and_labels_go_to_each_bundle(self):
        wanted = self.wanted("--cpus=2", "--resource=fast=1", "--label=rack=a", "--label=region=in(eu,us)")
        bundle, selector = {"CPU": 2.0, "fast": 1.0}, {"rack": "a", "region": "in(eu,us)"}
        options = {"bundles": [bundle] * 2, "strategy": "STRICT_SPREAD", "bundle_label_selector": [selector] * 2}
        self.assertEqual(wanted.group_options(2), options)
        self.assertNotIn("bundle_label_selector", self.wanted().group_options(1), "older versions have no labels")
        self.assertIn("rack", str(wanted))

    def test_nodes_are_counted_that_live_and_have_the_labels(self):
        def node(rack, alive=True):
            return {"Alive": alive, "Labels": {"rack": rack}}

        nodes = [node("a"), node("b"), node("a", alive=False), {"Alive": True}]
        self.assertEqual(Wanted(labels={"rack": "a"}).of(nodes), nodes[:1])
        self.assertEqual(len(Wanted().of(nodes)), 3)
        for value, expected in [("a", True), ("!a", False), ("in(b, a)", True), ("!in(b,a)", False), ("in(b)", False)]:
            self.assertEqual(holds({"rack": "a"}, {"rack": value}), expected, value)

    def test_a_runtime_environment_is_read_from_json_and_yaml(self):
        found = {"env_vars": {"A": "1"}}
        for text in [json.dumps(found), 'env_vars:\n  A: "1"\n']:
            wanted = self.wanted("--runtime-env", self.file(text))
            self.assertEqual(wanted.init_options(), {"runtime_env": found})
        self.assertEqual(self.wanted().init_options(), {})

    def test_what_is_no_label_and_no_environment_is_refused(self):
        self.assertIn("`rack` is no NAME=VALUE", self.refused("--label=rack"))
        self.assertIn("is no runtime environment", self.refused("--runtime-env", self.file("[1]")))
        self.assertIn("No such file", self.refused("--runtime-env", os.path.join(self.folder, "none")))


class Package(unittest.TestCase):
    """The wheel that is installed."""

    def test_the_version_is_that_of_its_sources_and_the_licences_are_in_it(self):
        sources = os.environ["PUBMARK_RAY_SOURCES"]
        project = pathlib.Path(sources, "pyproject.toml").read_text(encoding="utf-8")
        version = re.search(r'^version = "(.*)"$', project, re.MULTILINE)[1]
        package = importlib.metadata.distribution("pubmark-ray")
        self.assertEqual(package.version, version)
        self.assertEqual(package.metadata["License-Expression"], "Apache-2.0 OR MIT")
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"]:
            files = [file for file in package.files if file.name == licence]
            self.assertEqual(len(files), 1, licence)
            self.assertEqual(files[0].read_text(), pathlib.Path(sources, licence).read_text(encoding="utf-8"))
        self.assertIn("pubmark-ray", [script.name for script in package.entry_points])


if __name__ == "__main__":
    unittest.main()
