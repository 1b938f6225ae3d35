"""What a machine has of what OS-1 needs, and how to get the rest."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import os1_models
from os1_edge.config import load_config, model_names
from os1_edge.remember.key import BadKey, default_key_file, default_memory_file, told_key
from os1_edge.tomlfile import BadFile

EDGE_PACKAGES = {
    "ai-edge-litert": "ai_edge_litert.interpreter",
    "aiohttp": "aiohttp",
    "cryptography": "cryptography.x509",
    "grpcio": "grpc",
    "livekit": "livekit.rtc",
    "llama-cpp-python": "llama_cpp",
    "numpy": "numpy",
    "onnxruntime": "onnxruntime",
    "opencv-python-headless": "cv2",
    "piper-tts": "piper",
    "protobuf": "google.protobuf.message",
    "pywhispercpp": "pywhispercpp.model",
    "soundfile": "soundfile",
    "soxr": "soxr",
    "sqlcipher3": "sqlcipher3",
    "sqlite-vec": "sqlite_vec",
    "tokenizers": "tokenizers",
}
"""What the extra `edge` installs, and the module by which each is loaded."""

_TRY_IMPORTS = """
import importlib, json, sys
for name in sys.argv[1:]:
    print("tried", json.dumps([name, "ends or hangs the process that loads it"]), flush=True)
    try:
        importlib.import_module(name)
    except BaseException as e:
        problem = "missing" if isinstance(e, ModuleNotFoundError) and e.name in (name, name.split(".")[0]) \
            else f"{type(e).__name__}: {e}".splitlines()[0]
    else:
        problem = ""
    print("tried", json.dumps([name, problem]), flush=True)
"""
IMPORTS_TAKE_S = 120.0
"""Longest wait for all packages to load; a fast machine takes one second, a cold SD card twenty."""

NEEDED_GB = 1.0
"""Free disk for the models and a memory."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at."""

    name: str
    ok: bool
    found: str
    fix: str = ""


def examine() -> list[Check]:
    """All checks; none of them changes anything but to make the memory key where there is none."""
    return [_python(), _packages(), _settings(), *_models(), _key(), _disk()]


def _python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    return Check("Python", sys.version_info >= (3, 11), found, "install Python 3.11 or newer")


def _packages() -> Check:
    problems = import_problems(list(EDGE_PACKAGES.values()))
    wrong = {name: problems[module] for name, module in EDGE_PACKAGES.items() if module in problems}
    missing = [name for name, problem in wrong.items() if problem == "missing"]
    broken = [name for name in wrong if name not in missing]
    found = [f"missing {', '.join(missing)}"] if missing else []
    found += [f"{name} does not load ({wrong[name]})" for name in broken]
    fix = ["pip install 'os1[edge]'"] if missing else []
    fix += [f"pip install --force-reinstall {' '.join(broken)}"] if broken else []
    told = "; ".join(found) or f"{len(EDGE_PACKAGES)} load"
    return Check("edge packages", not wrong, told, f"run: {'; '.join(fix)}")


def import_problems(modules: Sequence[str]) -> dict[str, str]:
    """Why those of ``modules`` that cannot be imported cannot: ``missing``, or an error in one line.

    Imports in a process of its own: a library built for another processor ends the process that loads it.
    """
    problems: dict[str, str] = {}
    left = list(modules)
    while left:
        command = [sys.executable, "-P", "-c", _TRY_IMPORTS, *left]
        try:
            printed = subprocess.run(command, capture_output=True, check=False, timeout=IMPORTS_TAKE_S).stdout
        except subprocess.TimeoutExpired as e:
            printed = e.stdout or b""
        lines = [
            line for line in printed.decode("utf-8", "replace").splitlines() if line.startswith("tried ")
        ]
        tried = dict(json.loads(line.removeprefix("tried ")) for line in lines)
        problems |= tried or dict.fromkeys(left, "Python itself does not start")
        left = [name for name in left if name not in problems]
    return {name: problem for name, problem in problems.items() if problem}


def _settings() -> Check:
    try:
        load_config()
    except BadFile as e:
        return Check("settings", False, str(e), "mend that line, or move the file away for the defaults")
    return Check("settings", True, "fine")


def _models() -> list[Check]:
    try:
        config = load_config()
    except BadFile:
        return []
    checks = []
    for name in model_names(config):
        try:
            path = os1_models.path(name)
        except os1_models.ModelError as e:
            checks.append(Check(f"model {name}", False, str(e), f"run: os1 models pull {name}"))
        else:
            checks.append(Check(f"model {name}", True, f"{path.stat().st_size / 1e6:.0f} MB"))
    return checks


def _key() -> Check:
    try:
        return Check("memory key", True, told_key(default_memory_file()))
    except BadKey as e:
        return Check("memory key", False, str(e), "put the key back as it was, then try again")
    except OSError as e:
        return Check("memory key", False, str(e), f"see to it that {default_key_file()} is yours alone")


def _disk() -> Check:
    folder = os1_models.models_dir().absolute()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free / 1e9
    return Check("disk", free >= NEEDED_GB, f"{free:.1f} GB free", f"free {NEEDED_GB:.0f} GB below {folder}")
