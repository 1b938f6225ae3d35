"""The generated code is what the .proto files make, and every part of them is explained."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what scripts/gen-proto reads and writes, with the same tools."""
    pytest.importorskip("grpc_tools")
    if not (ROOT / ".venv").is_dir():
        pytest.skip("scripts/gen-proto uses .venv, and there is none")
    shutil.copytree(ROOT / "proto", tmp_path / "proto", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("scripts/gen-proto", "scripts/proto_docs.py", "docs/protocol.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    return tmp_path


def check(checkout: Path) -> subprocess.CompletedProcess[str]:
    command = [str(checkout / "scripts" / "gen-proto"), "--check"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_generated_code_is_up_to_date(checkout: Path) -> None:
    done = check(checkout)
    assert done.returncode == 0, done.stderr


def test_a_changed_proto_is_noticed(checkout: Path) -> None:
    source = checkout / "proto" / "os1" / "assist" / "v1" / "edge.proto"
    source.write_text(source.read_text() + "\nmessage Another {}\n")
    done = check(checkout)
    assert done.returncode == 1
    assert "run: scripts/gen-proto" in done.stderr


def test_a_changed_comment_must_reach_the_reference(checkout: Path) -> None:
    source = checkout / "proto" / "os1" / "assist" / "v1" / "edge.proto"
    source.write_text(source.read_text().replace("// Measures.", "// Measures the link."))
    assert check(checkout).returncode == 1
    assert (
        subprocess.run([str(checkout / "scripts" / "gen-proto")], capture_output=True, timeout=60).returncode
        == 0
    )
    assert "Measures the link." in (checkout / "docs" / "protocol.md").read_text()
    assert check(checkout).returncode == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("uint32 received_bytes = 1;", "uint32 received_bytes = 9;"),
        ("uint32 received_bytes = 1;", "string received_bytes = 1;"),
        ("  rpc Probe(ProbeRequest) returns (ProbeReply);", ""),
    ],
)
def test_what_would_break_clients_that_are_out_there_is_refused(checkout: Path, old: str, new: str) -> None:
    source = checkout / "proto" / "os1" / "assist" / "v1" / "edge.proto"
    text = source.read_text()
    assert old in text
    source.write_text(text.replace(old, new))
    done = check(checkout)
    assert done.returncode == 1
    assert "make a new package instead" in done.stderr


def test_a_left_over_file_is_noticed(checkout: Path) -> None:
    (checkout / "proto" / "os1_proto" / "assist" / "v1" / "old_pb2.py").touch()
    assert check(checkout).returncode == 1


def test_another_compiler_version_is_noticed(checkout: Path) -> None:
    project = checkout / "pyproject.toml"
    text = project.read_text()
    assert '"grpcio-tools==' in text
    project.write_text(text.replace('"grpcio-tools==', '"grpcio-tools==0.'))
    done = check(checkout)
    assert done.returncode == 1
    assert "grpcio-tools" in done.stderr


def test_every_service_message_and_field_is_explained() -> None:
    bare = []
    for path in sorted((ROOT / "proto" / "os1").rglob("*.proto")):
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            text = line.strip()
            names = text.startswith(("service ", "rpc ", "message ", "enum ", "oneof ")) or (
                text.endswith(";") and " = " in text and not text.startswith("syntax")
            )
            if names and not lines[number - 1].strip().startswith("//"):
                bare.append(f"{path.name}:{number + 1}: {text}")
    assert bare == []
