"""What an operator copies for a cluster: the Serve config and the KubeRay manifest say what is true."""

import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("os1_cloud.ray.bench.front", reason="needs Ray: run scripts/test-ray")

import yaml
from ray.serve.schema import ServeDeploySchema

from os1_cloud.address import ServeError
from os1_cloud.ray.deploy import APP, application, options
from os1_cloud.settings import ModelSettings, Settings

DEPLOY = Path(__file__).resolve().parents[2] / "cloud" / "deploy"
CLUSTER = {"headGroupSpec", "workerGroupSpecs", "rayVersion", "enableInTreeAutoscaling", "autoscalerOptions"}
WORKERS = {"groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams", "template"}
"""Of RayClusterSpec and WorkerGroupSpec (kuberay, ray-operator/apis/ray/v1/raycluster_types.go)."""


def built(config: Any) -> dict[str, Any]:
    """The deployments of a Serve config, made by the app builder that it names, as Serve would."""
    schema = ServeDeploySchema.model_validate(config)
    assert schema.proxy_location == "Disabled"
    found = {}
    for app in schema.applications:
        module, _, name = app.import_path.partition(":")
        assert app.name.startswith(APP)
        assert app.route_prefix is None
        found[app.name] = getattr(import_module(module), name)(app.args)._bound_deployment
    return found


def objects() -> dict[str, Any]:
    return {o["kind"]: o for o in yaml.safe_load_all((DEPLOY / "kuberay.yaml").read_text())}


def test_the_serve_config_is_one_and_makes_a_pool_of_each_model() -> None:
    made = built(yaml.safe_load((DEPLOY / "ray-serve.yaml").read_text()))
    assert {name: d.name for name, d in made.items()} == {name: name.removeprefix(APP) for name in made}
    text, seeing = made["os1-qwen2.5-1.5b"], made["os1-qwen2.5-vl-7b"]
    assert (text.max_ongoing_requests, seeing.max_ongoing_requests) == (1, 16)
    assert seeing.ray_actor_options["num_gpus"] == 1
    config = text._deployment_config
    assert config.autoscaling_config.max_replicas == 16
    assert config.autoscaling_config.policy.get_policy().__name__ == "desired"
    assert config.request_router_config.get_request_router_class().__name__ == "ConsistentHashRouter"


def test_the_manifest_runs_the_models_that_its_front_doors_offer() -> None:
    found = objects()
    made = built(yaml.safe_load(found["RayService"]["spec"]["serveConfigV2"]))
    toml = tomllib.loads(found["ConfigMap"]["data"]["server.toml"])
    settings = Settings.model_validate(toml)
    assert {APP + model.name for model in settings.models} == set(made)
    assert settings.ray == "auto"
    pod = found["Deployment"]["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > settings.grace_s + settings.balancer_s
    mounts = {m["mountPath"] for m in pod["containers"][0]["volumeMounts"]}
    for file in (settings.tokens, settings.tls_cert, settings.tls_key):
        assert str(file.parent) in mounts if file is not None else False


def test_the_manifest_says_nothing_that_kuberay_does_not_know_and_has_a_place_for_each_replica() -> None:
    spec = objects()["RayService"]["spec"]
    cluster = spec["rayClusterConfig"]
    assert set(spec) == {"serveConfigV2", "rayClusterConfig"}
    assert set(cluster) <= CLUSTER
    assert all(set(group) <= WORKERS for group in cluster["workerGroupSpecs"])
    import json

    groups = [json.loads(json.loads(g["rayStartParams"]["resources"])) for g in cluster["workerGroupSpecs"]]
    for app in yaml.safe_load(spec["serveConfigV2"])["applications"]:
        wanted = ModelSettings.model_validate(app["args"]["model"]).replicas.resources
        assert any(wanted.items() <= group.items() for group in groups)


def test_what_kubernetes_knows_of_the_manifest_is_valid() -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="pip install kubernetes-validate")
    for each in yaml.safe_load_all((DEPLOY / "kuberay.yaml").read_text()):
        if each["kind"] != "RayService":
            validate.validate(each, "1.33", strict=True)
            continue
        cluster = each["spec"]["rayClusterConfig"]
        for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, **group["template"]}
            validate.validate(pod, "1.33", strict=True)


def test_a_serve_config_with_a_wrong_model_says_so() -> None:
    with pytest.raises(ServeError, match=r"\[\[models\]\]"):
        application({"model": {"kind": "no such", "name": "x"}})
    with pytest.raises(ServeError, match=r"\[\[models\]\]"):
        application({})


def test_a_pool_of_one_size_is_not_scaled() -> None:
    fixed = ModelSettings.model_validate({"kind": "llama", "name": "x", "replicas": {"min": 3, "max": 3}})
    assert options(fixed, 1)["num_replicas"] == 3
    assert "autoscaling_config" not in options(fixed, 1)
