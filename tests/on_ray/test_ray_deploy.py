"""What an operator copies for a cluster: the Serve config and the KubeRay manifest say what is true."""

import json
import math
import os
import re
import tomllib
import urllib.request
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("os1_cloud.ray.bench.front", reason="needs Ray: run scripts/test-ray")

import jsonschema
import yaml
from ray.serve.experimental.consistent_hash_router import ConsistentHashRouter
from ray.serve.schema import ApplicationStatusOverview, DeploymentStatusOverview, ServeDeploySchema

from os1_cloud.address import ServeError
from os1_cloud.ray.deploy import APP, application, missing, options, table
from os1_cloud.ray.pool import READY_S
from os1_cloud.settings import ModelSettings, Settings

if TYPE_CHECKING:
    from ray_world import World

DEPLOY = Path(__file__).resolve().parents[2] / "cloud" / "deploy"
MANIFEST = (DEPLOY / "kuberay.yaml").read_text()
HEALTH = {"path": "/api/healthz", "port": 52365}
"""Of Ray 2.53 and newer, on each node: its raylet, and on the head the GCS."""


def fields(_required: tuple[str, ...] = (), **of: Any) -> dict[str, Any]:
    return {"type": "object", "properties": of, "required": list(_required)}


def one_of(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


TEXT, YES, NUMBER = {"type": "string"}, {"type": "boolean"}, {"type": "integer", "minimum": 0}
PODS = {"type": "object"}
"""Pod templates and their parts: kubernetes-validate knows them."""
TEXTS = {"type": "object", "additionalProperties": TEXT}
GROUP = {"rayStartParams": TEXTS, "template": PODS}
KUBERAY = fields(
    ("rayClusterConfig",),
    upgradeStrategy=fields(type=one_of("NewCluster", "NewClusterWithIncrementalUpgrade", "None")),
    rayClusterDeletionDelaySeconds=NUMBER,
    excludeHeadPodFromServeSvc=YES,
    serveConfigV2=TEXT,
    rayClusterConfig=fields(
        ("headGroupSpec",),
        rayVersion=TEXT,
        authOptions=fields(mode=one_of("disabled", "token"), secretName=TEXT),
        enableInTreeAutoscaling=YES,
        autoscalerOptions=fields(
            upscalingMode=one_of("Default", "Aggressive", "Conservative"),
            idleTimeoutSeconds=NUMBER,
            securityContext=PODS,
        ),
        gcsFaultToleranceOptions=fields(redisAddress=TEXT),
        headGroupSpec=fields(("template",), **GROUP),
        workerGroupSpecs={
            "type": "array",
            "items": fields(
                ("groupName", "template", "minReplicas", "maxReplicas"),
                groupName=TEXT,
                replicas=NUMBER,
                minReplicas=NUMBER,
                maxReplicas=NUMBER,
                **GROUP,
            ),
        },
    ),
)
"""What we use of RayServiceSpec, as KubeRay 1.7 has it (ray-operator/apis/ray/v1/*_types.go): an own table,
for the CRD itself is 0.8 MB of theirs. `OS1_KUBERAY_CRD` names that file where there is one."""
AS_COMMENTED = re.compile(r"^( *)# (?=gcsFaultToleranceOptions:|- \{ name: RAY_|command:)", re.MULTILINE)
"""What both files offer as a comment."""


def strict(schema: Any) -> Any:
    """A structural schema of Kubernetes that refuses fields that it does not name."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    out = {
        key: {name: strict(part) for name, part in value.items()} if key == "properties" else strict(value)
        for key, value in schema.items()
    }
    if "properties" in out and not out.get("x-kubernetes-preserve-unknown-fields"):
        out.setdefault("additionalProperties", False)
    return out


def check(instance: Any, schema: dict[str, Any]) -> None:
    jsonschema.validate(instance, strict(schema))


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


def objects(text: str = MANIFEST) -> dict[str, Any]:
    return {o["kind"]: o for o in yaml.safe_load_all(text)}


SPEC = objects()["RayService"]["spec"]
CLUSTER = SPEC["rayClusterConfig"]
GROUPS = {group["groupName"]: group for group in CLUSTER["workerGroupSpecs"]}
FRONT = objects()["Deployment"]["spec"]["template"]["spec"]


def serve_config(name: str = "") -> Any:
    """Of the file, or that of the manifest."""
    return yaml.safe_load((DEPLOY / name).read_text() if name else SPEC["serveConfigV2"])


def ray_containers() -> list[dict[str, Any]]:
    """KubeRay takes the first of each pod for Ray's."""
    templates = [CLUSTER["headGroupSpec"], *GROUPS.values()]
    return [group["template"]["spec"]["containers"][0] for group in templates]


def test_the_serve_config_is_one_and_makes_a_pool_of_each_model() -> None:
    made = built(serve_config("ray-serve.yaml"))
    assert {name: d.name for name, d in made.items()} == {name: name.removeprefix(APP) for name in made}
    text, seeing = made["os1-qwen2.5-1.5b"], made["os1-qwen2.5-vl-7b"]
    assert (text.max_ongoing_requests, seeing.max_ongoing_requests) == (1, 16)
    assert seeing.ray_actor_options["num_gpus"] == 1
    config = text._deployment_config
    assert config.autoscaling_config.max_replicas == 16
    assert config.autoscaling_config.policy.get_policy().__name__ == "desired"
    assert issubclass(config.request_router_config.get_request_router_class(), ConsistentHashRouter)


def test_a_replica_may_start_its_own_vllm_as_the_file_offers() -> None:
    text = AS_COMMENTED.sub(r"\1", (DEPLOY / "ray-serve.yaml").read_text())
    config = yaml.safe_load(text.replace("url: http://127.0.0.1:8000/v1", ""))
    assert built(config)["os1-qwen2.5-vl-7b"].max_ongoing_requests == 16
    [command] = [c for a in config["applications"] if (c := a["args"]["model"].get("command"))]
    assert command[command.index("--max-num-seqs") + 1] == "16"


def test_file_and_manifest_deploy_the_same_models_only_their_machines_are_named_otherwise() -> None:
    def told(config: Any) -> Any:
        config = deepcopy(config)
        for app in config["applications"]:
            for place in ("gpus", "resources"):
                app["args"]["model"]["replicas"].pop(place, None)
        return config

    assert told(serve_config()) == told(serve_config("ray-serve.yaml"))


def test_the_manifest_runs_the_models_that_its_front_doors_offer() -> None:
    made = built(serve_config())
    settings = Settings.model_validate(tomllib.loads(objects()["ConfigMap"]["data"]["server.toml"]))
    assert settings.ray == "auto"
    deployed = [ModelSettings.model_validate(app["args"]["model"]) for app in serve_config()["applications"]]
    unlike = {"replicas": None, "threads": None}
    assert [m.model_copy(update=unlike) for m in settings.models] == [
        m.model_copy(update=unlike) for m in deployed
    ]
    assert {APP + model.name for model in settings.models} == set(made)
    assert FRONT["terminationGracePeriodSeconds"] > settings.grace_s + settings.balancer_s
    mounts = {m["mountPath"] for m in FRONT["containers"][0]["volumeMounts"]}
    for file in (settings.tokens, settings.tls_cert, settings.tls_key):
        assert file is not None
        assert str(file.parent) in mounts


def test_a_front_door_is_given_the_time_that_its_models_may_take_to_answer() -> None:
    settings = Settings.model_validate(tomllib.loads(objects()["ConfigMap"]["data"]["server.toml"]))
    upstream = {m.name: m.start_s for m in settings.models if m.kind == "upstream"}
    longest = sum(max(READY_S, upstream.get(m.name, 0.0)) for m in settings.models)  # one by one
    probe = FRONT["containers"][0]["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= longest


def test_the_manifest_says_nothing_that_kuberay_does_not_know() -> None:
    check(SPEC, KUBERAY)
    spec = objects(AS_COMMENTED.sub(r"\1", MANIFEST))["RayService"]["spec"]
    assert "gcsFaultToleranceOptions" in spec["rayClusterConfig"]
    check(spec, KUBERAY)


@pytest.mark.parametrize(
    ("place", "value"), [("rayVersions", "2.60.0"), ("rayVersion", 2.6), ("autoscalerOptions", {"mode": "x"})]
)
def test_what_kuberay_does_not_know_or_takes_for_another_kind_is_found(place: str, value: Any) -> None:
    wrong = deepcopy(SPEC)
    wrong["rayClusterConfig"][place] = value
    with pytest.raises(jsonschema.ValidationError):
        check(wrong, KUBERAY)


def check_by(crd: Path, manifest: Any) -> None:
    """By the CRD of a file, unknown fields refused."""
    told = yaml.safe_load(crd.read_text("utf-8"))["spec"]
    assert told["names"]["kind"] == manifest["kind"]
    [v1] = [version for version in told["versions"] if version["name"] == "v1"]
    check(manifest, v1["schema"]["openAPIV3Schema"])


def test_the_manifest_is_valid_by_kuberays_own_crd() -> None:
    if not (file := os.environ.get("OS1_KUBERAY_CRD")):
        pytest.skip("OS1_KUBERAY_CRD names no file (KubeRay's ray.io_rayservices.yaml)")
    check_by(Path(file), objects()["RayService"])


def test_a_crd_is_read_as_kubernetes_writes_it(tmp_path: Path) -> None:
    # Structural schemas name fields and forbid no others; metadata has none that they name.
    whole = fields(apiVersion=TEXT, kind=TEXT, metadata=PODS, spec=KUBERAY)
    spec = {
        "names": {"kind": "RayService"},
        "versions": [{"name": "v1", "schema": {"openAPIV3Schema": whole}}],
    }
    (tmp_path / "crd.yaml").write_text(yaml.safe_dump({"kind": "CustomResourceDefinition", "spec": spec}))
    check_by(tmp_path / "crd.yaml", objects()["RayService"])
    with pytest.raises(jsonschema.ValidationError, match="maxReplica"):
        check_by(
            tmp_path / "crd.yaml",
            yaml.safe_load(MANIFEST.replace("maxReplicas:", "maxReplica:").split("---")[0]),
        )


def test_there_is_a_place_for_each_replica_also_while_a_release_is_rolled_out() -> None:
    room = {}
    for name, group in GROUPS.items():
        params = group["rayStartParams"]
        room[name] = (float(params["num-cpus"]), json.loads(json.loads(params["resources"])))
    needed = dict.fromkeys(GROUPS, 0.0)
    for app in serve_config()["applications"]:
        model = ModelSettings.model_validate(app["args"]["model"])
        wanted, surge = model.replicas, options(model, 1)["max_surge_percent"] / 100
        [pool] = [name for name, (_, has) in room.items() if set(wanted.resources) <= set(has)]
        cpus, has = room[pool]
        assert wanted.cpus <= cpus
        share = max(wanted.cpus / cpus, *(count / has[what] for what, count in wanted.resources.items()))
        needed[pool] += share * math.ceil(wanted.max * (1 + surge))
    for name, machines in needed.items():
        assert GROUPS[name]["maxReplicas"] >= math.ceil(machines), name


def test_ray_pods_are_asked_for_their_health_where_there_is_someone_to_answer() -> None:
    # KubeRay's own readiness probe of RayService workers asks Serve's HTTP proxy by wget: we have neither.
    for container in ray_containers():
        for probe in ("livenessProbe", "readinessProbe"):
            assert container[probe]["httpGet"] == HEALTH


def test_what_kubernetes_asks_a_ray_node_is_answered_without_a_token(world: "World") -> None:
    told = [Path(f"/proc/{pid}/cmdline").read_text() for pid in world.cluster.nodes[0].processes()]
    [port] = {found[1] for one in told if (found := re.search(r"--listen-port=(\d+)", one))}
    url = f"http://{world.cluster.nodes[0].host}:{port}{HEALTH['path']}"
    with urllib.request.urlopen(url, timeout=30) as answer:
        assert answer.status == 200


def test_operator_autoscaler_nodes_and_front_doors_have_one_token() -> None:
    # By authOptions, not by `env`: only then the operator and the autoscaler have it too.
    assert CLUSTER["authOptions"]["mode"] == "token"
    for container in (*FRONT["initContainers"], *FRONT["containers"]):
        env = {one["name"]: one for one in container["env"]}
        assert env["RAY_AUTH_MODE"]["value"] == "token"
        secret = env["RAY_AUTH_TOKEN"]["valueFrom"]["secretKeyRef"]
        assert secret == {"name": CLUSTER["authOptions"]["secretName"], "key": "auth_token"}


def test_front_doors_join_by_the_name_that_stays_when_the_cluster_is_replaced() -> None:
    name = objects()["RayService"]["metadata"]["name"]
    for container in (*FRONT["initContainers"], *FRONT["containers"]):
        told = " ".join([*container["command"], *container.get("args", ())])
        assert re.search(r"--address[= ](\S+?):6379", told)[1] == f"{name}-head-svc"  # type: ignore[index]
    assert SPEC["rayClusterDeletionDelaySeconds"] >= 600  # to restart them in


def test_nobody_but_ray_its_operator_and_front_doors_reaches_rays_ports() -> None:
    there = list(yaml.safe_load_all(MANIFEST))
    [front] = [o["spec"]["template"]["metadata"]["labels"] for o in there if o["kind"] == "Deployment"]
    ray = {"ray.io/is-ray-node": "yes"}  # KubeRay's, of each of its pods
    operator = {"app.kubernetes.io/component": "kuberay-operator"}  # in its chart and in its kustomization
    [policy] = [
        o["spec"] for o in there if o["metadata"]["name"] == "os1-ray" and o["kind"] == "NetworkPolicy"
    ]
    assert policy["podSelector"]["matchLabels"] == ray
    rule, watching = policy["ingress"]
    assert [peer["podSelector"]["matchLabels"] for peer in rule["from"]] == [ray, front, operator]
    assert watching["ports"] == [{"port": 8080}]  # Prometheus reaches KubeRay's port of Ray's metrics alone
    assert [o["spec"]["selector"] for o in there if o["kind"] == "Service"] == [front]


def test_the_gpus_engine_is_where_its_replica_asks_and_takes_as_much() -> None:
    [model] = [
        ModelSettings.model_validate(app["args"]["model"])
        for app in serve_config()["applications"]
        if app["args"]["model"]["kind"] == "upstream"
    ]
    [vllm] = GROUPS["vision"]["template"]["spec"]["initContainers"]
    told = dict(zip(vllm["args"][::2], vllm["args"][1::2], strict=False))
    assert model.url == f"http://{told['--host']}:{told['--port']}/v1"
    assert (model.model, str(model.slots)) == (told["--model"], told["--max-num-seqs"])
    assert vllm["restartPolicy"] == "Always"  # KubeRay's pods have restartPolicy Never


def test_what_kubernetes_knows_of_the_manifest_is_valid() -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="pip install kubernetes-validate")
    for each in yaml.safe_load_all(MANIFEST):
        if each["kind"] != "RayService":
            validate.validate(each, "1.33", strict=True)
            continue
        for group in (CLUSTER["headGroupSpec"], *GROUPS.values()):
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


def overview(status: str, **states: int) -> ApplicationStatusOverview:
    """What Serve says of an application with so many replicas in each state."""
    deployment = DeploymentStatusOverview("UNHEALTHY", "UNSPECIFIED", states, "")  # type: ignore[arg-type]
    return ApplicationStatusOverview(status, "", 0.0, {"x": deployment})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("app", "again"),
    [
        (None, True),
        (overview("DEPLOY_FAILED"), True),
        (overview("DEPLOY_FAILED", STARTING=1), True),
        (overview("DEPLOY_FAILED", RUNNING=2), False),  # a release failed, the one before it answers
        (overview("UNHEALTHY"), False),
        (overview("DEPLOYING", STARTING=1), False),
        (overview("RUNNING", RUNNING=1), False),
        (overview("DELETING", RUNNING=1), True),
    ],
)
def test_a_model_that_serve_has_given_up_is_deployed_anew(
    app: ApplicationStatusOverview | None, again: bool
) -> None:
    model = ModelSettings(kind="llama", name="x")
    apps = {} if app is None else {"os1-x": app}
    assert missing([model], apps) == ([model] if again else [])


def told_to_the_replica(**set_by_operator: Any) -> dict[str, Any]:
    model = ModelSettings.model_validate({"kind": "llama", "name": "x", **set_by_operator})
    args = application({"model": table(model)})._bound_deployment.init_args
    return dict(args[0].args[0])


def test_a_replica_has_threads_for_the_cpus_it_takes_not_for_the_front_doors() -> None:
    cores = (os.cpu_count() or 1) + 3
    assert told_to_the_replica(replicas={"cpus": cores - 0.5})["threads"] == cores
    assert told_to_the_replica(replicas={"cpus": 0.25})["threads"] == 1
    assert told_to_the_replica(threads=5)["threads"] == 5
