"""Checks that what `kubectl kustomize` prints fits together, for packages/kubernetes/check.

    agree.py PROGRAM FILE...

The program accepts the options that its containers give it. Selectors, ports, volumes and ConfigMaps name what exists.
Numbers that depend on each other do. Needs Python 3 with PyYAML.
"""

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import yaml

program, *files = sys.argv[1:]
objects = [each for file in files for each in yaml.safe_load_all(Path(file).read_text())]
named = {(each["kind"], each["metadata"]["name"]): each for each in objects}
pods = {name: each["spec"]["template"] for (_, name), each in named.items() if "template" in each.get("spec", {})}
# What a program may not take here: what it says then, what goes in the place of that, and what is left out so.
INSTEAD = [
    ("without S3", r"s3://", "", "stores in S3, without which this program is built"),
]
replaced = []


def adapted(text):
    for _, pattern, other, _ in replaced:
        text = re.sub(pattern, other, text)
    return text


def configs(pod):
    """The files of the ConfigMaps of a pod, by their paths."""
    [container] = pod["spec"]["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    for volume in pod["spec"]["volumes"]:
        if "configMap" in volume:
            for name, text in named["ConfigMap", volume["configMap"]["name"]]["data"].items():
                yield f"{mounts[volume['name']]}/{name}", text


def printed(pod, hostname):
    """Runs the program with --print-config as the container of a pod does, with its files in a temporary directory."""
    [container] = pod["spec"]["containers"]
    with tempfile.TemporaryDirectory() as made:
        local = {path: f"{made}/{Path(path).name}" for path, _ in configs(pod)}
        for path, text in configs(pod):
            Path(local[path]).write_text(adapted(text))
        variables = {}
        for entry in container["env"]:
            source = entry.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            value = {None: entry.get("value"), "metadata.name": hostname}.get(source, "0")
            for name, known in variables.items():
                value = value.replace(f"$({name})", known)
            variables[entry["name"]] = local.get(value, value)
        variables = {name: adapted(value) for name, value in variables.items()}
        words = [adapted(local.get(word, word)) for word in container["args"]]
        return subprocess.run([program, *words, "--print-config"], env={**os.environ, **variables}, text=True,
                              capture_output=True)


def options(pod, hostname):
    """The options in effect."""
    while (done := printed(pod, hostname)).returncode:
        signs = [each for each in INSTEAD if each[0] in done.stderr and each not in replaced]
        if not signs:
            sys.exit(f"{hostname}: {done.stderr}")
        print(f"left out: {signs[0][-1]}")
        replaced.extend(signs)
    return tomllib.loads(done.stdout)[pod["spec"]["containers"][0]["args"][0]]


def labels_fit(selector, pod):
    return selector.items() <= pod["metadata"]["labels"].items()


def size(text):
    return float(text.rstrip("Gi")) * 1024**3


for (kind, name), each in named.items():
    spec = each.get("spec", {})
    if kind in ("Service", "PodDisruptionBudget", "NetworkPolicy", "StatefulSet"):
        selector = spec["podSelector"] if kind == "NetworkPolicy" else spec["selector"]
        selector = selector.get("matchLabels", selector)
        selected = [pod for pod in pods.values() if labels_fit(selector, pod)]
        assert len(selected) == 1, f"{kind} {name}: {selector} selects {len(selected)} kinds of pods"
        [pod] = selected
        ports = {port["name"] for port in pod["spec"]["containers"][0]["ports"]}
        wanted = [port["targetPort"] for port in spec["ports"]] if kind == "Service" else []
        wanted += [port["port"] for rule in spec.get("ingress", []) for port in rule["ports"]]
        assert ports.issuperset(wanted), f"{kind} {name}: ports {wanted}, the container has {ports}"
for name, pod in pods.items():
    [container] = pod["spec"]["containers"]
    claims = [claim["metadata"]["name"] for claim in named.get(("StatefulSet", name), {"spec": {}})["spec"]
              .get("volumeClaimTemplates", [])]
    volumes = {volume["name"] for volume in pod["spec"]["volumes"]} | set(claims)
    assert volumes == {mount["name"] for mount in container["volumeMounts"]}, f"{name}: volumes {volumes}"
    limit = size(container["resources"]["limits"]["memory"])
    found = options(pod, f"{name}-0")
    command = container["args"][0].upper()
    for variable in (entry["name"] for entry in container["env"]):
        option = variable.removeprefix(f"WEBSTRATA_{command}_").lower().replace("_", "-")
        assert option in found or variable in ("POD_NAME", "WEBSTRATA_CONFIG"), f"{name}: no option for {variable}"
    assert size(found["memory"]) < limit, f"{name}: --memory is not below the limit of the container"
    print(f"{name}: the program accepts {len(found)} options")
    if "drain" in found:
        assert pod["spec"]["terminationGracePeriodSeconds"] > float(found["drain"]), f"{name}: killed while it drains"
    if "hosts" in found:
        [text] = [text for path, text in configs(pod) if path.endswith("hosts.txt")]
        hosts = [line for line in text.splitlines() if not line.startswith("#")]
        job = named["Job", name]["spec"]
        names = [f"{name}-{number}.{pod['spec']['subdomain']}:4000" for number in range(job["completions"])]
        assert hosts == names and job["parallelism"] == job["completions"], f"{name}: hosts.txt should have {names}"
        assert ("Service", pod["spec"]["subdomain"]) in named, f"{name}: no Service for the names"
