"""What a machine has of what OS-1 needs, and how to get the rest."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import os1_models
from os1_edge.config import load_config
from os1_edge.remember.key import BadKey, default_key_file, load_or_make
from os1_edge.tomlfile import BadFile

EDGE_PACKAGES = (
    "onnxruntime",
    "pywhispercpp",
    "llama-cpp-python",
    "sqlcipher3",
    "sqlite-vec",
    "tokenizers",
    "opencv-python-headless",
    "ai-edge-litert",
    "piper-tts",
    "soundfile",
    "soxr",
    "numpy",
)

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
    missing = []
    for name in EDGE_PACKAGES:
        try:
            version(name)
        except PackageNotFoundError:
            missing.append(name)
    found = f"missing {', '.join(missing)}" if missing else f"{len(EDGE_PACKAGES)} found"
    return Check("edge packages", not missing, found, "run: pip install 'os1[edge]'")


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
    names = (
        "silero-vad",
        config.hear.asr_model,
        "objects-ssd",
        "minilm-l6",
        config.converse.model,
        config.speak.voice,
    )
    checks = []
    for name in names:
        try:
            path = os1_models.path(name)
        except os1_models.ModelError as e:
            checks.append(Check(f"model {name}", False, str(e), f"run: os1 models pull {name}"))
        else:
            checks.append(Check(f"model {name}", True, f"{path.stat().st_size / 1e6:.0f} MB"))
    return checks


def _key() -> Check:
    path = default_key_file()
    try:
        load_or_make(path)
    except (BadKey, OSError) as e:
        return Check("memory key", False, str(e), f"see to it that {path} is yours alone")
    return Check("memory key", True, str(path))


def _disk() -> Check:
    folder = Path(os.environ.get("OS1_MODELS_DIR", Path.home()))
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free / 1e9
    return Check("disk", free >= NEEDED_GB, f"{free:.1f} GB free", f"free {NEEDED_GB:.0f} GB below {folder}")
