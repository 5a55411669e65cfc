"""The manifests, against schemas: Kubernetes' own (of the package kubernetes-validate), Ray's
own for its cluster launcher, and for RayJob one of what is used, which is beside this file."""

import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import jsonschema
import kubernetes_validate
import ray.autoscaler
import yaml

from pubmark_ray import cli

ENGINES = pathlib.Path(__file__).parents[2]
KUBERNETES = "1.30"

# A program that fills in a template as `kubectl get -o go-template-file` does.
FILL = """package main

import ("encoding/json"; "os"; "text/template")

func main() {
	var pods any
	if err := json.NewDecoder(os.Stdin).Decode(&pods); err != nil { panic(err) }
	filled := template.Must(template.ParseFiles(os.Args[1]))
	if err := filled.Execute(os.Stdout, pods); err != nil { panic(err) }
}
"""


def read(path):
    return yaml.safe_load((ENGINES / path).read_text(encoding="utf-8"))


class Manifests(unittest.TestCase):
    def test_the_job_is_one_of_kubernetes(self):
        job = read("kubernetes/hosts.yaml")
        kubernetes_validate.validate(job, KUBERNETES, strict=True)
        self.assertEqual(job["spec"]["completions"], job["spec"]["parallelism"], "all hosts at once")
        job["spec"]["template"]["spec"]["contaners"] = []
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(job, KUBERNETES, strict=True)

    def test_the_rayjob_is_one_of_kuberay(self):
        job = read("ray/rayjob.yaml")
        schema = json.loads(pathlib.Path(__file__).with_name("rayjob.schema.json").read_text(encoding="utf-8"))
        jsonschema.validate(job, schema)
        cluster = job["spec"]["rayClusterSpec"]
        groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
        for group in groups:
            pod = {"apiVersion": "v1", "kind": "Pod", **group["template"]}
            kubernetes_validate.validate(pod, KUBERNETES, strict=True)
        words = job["spec"]["entrypoint"].split()
        asked = cli.parser().parse_args(words[1:])
        nodes = 1 + sum(group["replicas"] for group in cluster["workerGroupSpecs"])
        self.assertEqual((words[0], asked.count), ("pubmark-ray", nodes))

    def test_the_clusters_file_is_one_of_rays(self):
        schema = pathlib.Path(ray.autoscaler.__file__).with_name("ray-schema.json")
        jsonschema.validate(read("ray/cluster.yaml"), json.loads(schema.read_text(encoding="utf-8")))

    @unittest.skipUnless(shutil.which("go"), "there is no Go here")
    def test_the_pods_become_a_file_of_hosts(self):
        def pod(index):
            annotations = {"batch.kubernetes.io/job-completion-index": str(index)}
            metadata = {"name": f"pubmark-hosts-{index}-x", "namespace": "bench", "annotations": annotations}
            return {"metadata": metadata, "status": {"podIP": f"10.1.0.{index}"}}

        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "fill.go"
            program.write_text(FILL, encoding="utf-8")
            filled = subprocess.run(
                ["go", "run", program, ENGINES / "kubernetes/hosts.toml.tmpl"],
                input=json.dumps({"items": [pod(0), pod(1)]}),
                capture_output=True,
                text=True,
                check=True,
                timeout=120,
            ).stdout
        for line in [
            "[hosts.h0]",
            'reach = ["kubectl", "exec", "-i", "-n", "bench", "pod/pubmark-hosts-1-x", "--"]',
            'address = "10.1.0.1"',
            'roles = ["publishers", "subscribers"]',
        ]:
            self.assertIn(line, filled.splitlines())
        self.assertEqual(filled.count('roles = ["server"]'), 1)


if __name__ == "__main__":
    unittest.main()
