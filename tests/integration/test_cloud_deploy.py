"""What an operator copies: settings, chart, compose file, dashboard and unit file say what is true."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from prometheus_client.exposition import generate_latest

from os1_cloud.core import Answerer
from os1_cloud.engines.scripted import Scripted
from os1_cloud.metrics import Metrics
from os1_cloud.settings import Settings, read_settings

DEPLOY = Path(__file__).resolve().parents[2] / "cloud" / "deploy"


def yaml_of(text: str) -> Any:
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    return yaml.safe_load(text)


def test_the_example_settings_are_settings_also_what_is_commented_out(tmp_path: Path) -> None:
    assert read_settings(DEPLOY / "server.toml").models[0].kind == "llama"
    text = (DEPLOY / "server.toml").read_text()
    whole = re.sub(r"^# (?=\[\[|[a-z_]+ = )", "", text, flags=re.MULTILINE)
    assert whole.count("[[models]]") == 5
    (tmp_path / "all.toml").write_text(whole)
    settings = read_settings(tmp_path / "all.toml")
    assert {m.kind for m in settings.models} == {"llama", "vision", "whisper", "piper", "upstream"}
    named = set(re.findall(r"^([a-z_]+) =", whole, flags=re.MULTILINE))
    assert set(Settings.model_fields) - {"limits", "models", "node"} <= named


def test_the_dashboard_and_the_alerts_ask_for_numbers_that_there_are() -> None:
    async def story() -> set[str]:
        metrics = Metrics()
        metrics.watch(Answerer(Scripted()), lambda: [("m", 1, 0)])
        return set(re.findall(r"^# TYPE (\w+)", generate_latest(metrics.registry).decode(), re.MULTILINE))

    import asyncio

    there = asyncio.run(story())
    asked = set[str]()
    for name in ("grafana/os1.json", "alerts.yml"):
        asked |= set(re.findall(r"\b(?:os1|process)_\w+", (DEPLOY / name).read_text()))
    for name in sorted(asked - {"os1"}):
        assert name in there or re.sub(r"_(bucket|count|sum)$", "", name) in there, name
    panels = json.loads((DEPLOY / "grafana" / "os1.json").read_text())["panels"]
    assert len({p["id"] for p in panels}) == len(panels)


def test_the_compose_file_mounts_what_lies_beside_it() -> None:
    compose = yaml_of((DEPLOY / "compose.yaml").read_text())
    for service in compose["services"].values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("./") and source != "./etc":
                assert (DEPLOY / source).exists(), source
            elif not source.startswith("./"):
                assert source in compose["volumes"]
    build = compose["services"]["os1"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).is_file()


def test_the_compose_file_is_one_by_its_specification() -> None:
    """check-jsonschema brings the schema along."""
    checks = pytest.importorskip("check_jsonschema", reason="pip install check-jsonschema")
    arguments = ["--builtin-schema", "vendor.compose-spec", str(DEPLOY / "compose.yaml")]
    assert CliRunner().invoke(checks.main, arguments).exit_code == 0


def test_there_is_time_to_drain_before_anything_is_killed() -> None:
    settings = read_settings(DEPLOY / "server.toml")
    needed = settings.grace_s + settings.balancer_s
    unit = (DEPLOY / "os1-serve.service").read_text()
    stop = re.search(r"^TimeoutStopSec=(\d+)", unit, re.MULTILINE)
    assert stop is not None
    assert int(stop[1]) > needed
    compose = yaml_of((DEPLOY / "compose.yaml").read_text())
    assert int(compose["services"]["os1"]["stop_grace_period"].rstrip("s")) > needed


def told(*files: str) -> dict[str, list[str]]:
    """What units and drop-ins set, each key's values in order."""
    found: dict[str, list[str]] = {}
    for name in files:
        for line in (DEPLOY / name).read_text().splitlines():
            if "=" in line and not line.startswith("#"):
                key, _, value = line.partition("=")
                found.setdefault(key, []).append(value)
    return found


def test_a_front_door_may_reach_what_rays_node_beside_it_has_made() -> None:
    node, front = told("os1-ray.service"), told("os1-serve.service", "os1-serve.service.d/ray.conf")
    assert node["User"] == front["User"]  # else it sees no process of the node, and may use no socket
    assert front["DynamicUser"][-1] == "no"
    of_ray = [f"/var/cache/{name}" for name in node["CacheDirectory"]]
    assert front["ReadWritePaths"] == of_ray
    for unit in (node, front):
        assert re.findall(r"RAY_TMPDIR=(\S+)", " ".join(unit["Environment"])) == of_ray
        assert unit["EnvironmentFile"] == node["EnvironmentFile"]  # the token
        assert "AF_NETLINK" in " ".join(unit["RestrictAddressFamilies"])
        assert unit["Restart"][-1] == "always"
    assert front["PartOf"] == ["os1-ray.service"]  # it ends its answers before its node goes
    assert front["PartOf"][0] in front["After"]


def test_systemd_knows_all_that_the_units_say(tmp_path: Path) -> None:
    if not (analyze := shutil.which("systemd-analyze")):
        pytest.skip("needs systemd-analyze")
    shutil.copytree(DEPLOY / "os1-serve.service.d", tmp_path / "os1-serve.service.d")
    units = ("os1-ray.service", "os1-serve.service")
    for unit in units:  # the programs are not there
        (tmp_path / unit).write_text(re.sub(r"/opt/os1/bin/\w+", "/bin/sh", (DEPLOY / unit).read_text()))
    ran = subprocess.run(
        [analyze, "verify", "--man=no", *units], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert [line for line in ran.stderr.splitlines() if "os1" in line] == []
    assert ran.returncode == 0


@pytest.mark.parametrize("values", [{}, {"clientCertificates": True, "podMonitor": {"enabled": True}}])
def test_the_chart_passes_helms_own_lint_and_makes_valid_objects(values: dict[str, Any]) -> None:
    helm = pytest.importorskip("helm_python", reason="pip install helm-python-sdk to lint the chart")
    found = helm.lint(DEPLOY / "chart", values)
    assert not found["errors"]
    assert [m for m in found["messages"] if m["severity"] > 1] == []
    rendered = helm.Chart.load(DEPLOY / "chart").render(values, name="os1", namespace="glasses")
    objects = {(o := yaml_of(text))["kind"]: o for text in rendered.values() if text.strip()}
    settings = Settings.model_validate(tomllib.loads(objects["ConfigMap"]["data"]["server.toml"]))
    assert settings.models[0].name == "qwen2.5-1.5b"
    assert (settings.client_ca is not None) == bool(values)
    pod = objects["StatefulSet"]["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > settings.grace_s + settings.balancer_s
    validate = pytest.importorskip("kubernetes_validate", reason="pip install kubernetes-validate")
    for kind, each in objects.items():
        if kind != "PodMonitor":  # not Kubernetes' own
            validate.validate(each, "1.33", strict=True)
