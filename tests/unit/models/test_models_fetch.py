"""The four schemes: real pip and huggingface-hub against local files, a stand-in npm, a loopback server."""

from __future__ import annotations

import importlib.util
import os
import socket
import stat
import sys
from pathlib import Path

import models_fakes as fakes
import pytest

from os1_models.errors import DiskFull, FetchFailed, Unreachable
from os1_models.fetch import hub, npm, pypi, tool, url

BODY = fakes.noise(300_000)
needs_pip = pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="this environment has no pip")


@pytest.fixture
def room(tmp_path: Path) -> Path:
    room = tmp_path / "room"
    room.mkdir()
    return room


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def ignore(_: int) -> None:
    pass


def test_a_url_is_fetched_whole(room: Path) -> None:
    heard: list[int] = []
    with fakes.serving({"/x": BODY}) as server:
        assert url.fetch_url(f"{server.address}/x", room, heard.append).read_bytes() == BODY
    assert heard[-1] == len(BODY)


def test_a_broken_off_download_goes_on_where_it_stopped(room: Path) -> None:
    with fakes.serving({"/x": BODY}, cut_after={"/x": 100_000}) as server:
        assert url.fetch_url(f"{server.address}/x", room, ignore).read_bytes() == BODY
        assert server.asked("/x") == [None, "bytes=100000-"]


def test_a_server_without_ranges_is_asked_for_everything_again(room: Path) -> None:
    with fakes.serving({"/x": BODY}, cut_after={"/x": 100_000}, ranges=False) as server:
        assert url.fetch_url(f"{server.address}/x", room, ignore).read_bytes() == BODY


def test_a_file_that_changed_meanwhile_is_not_glued_to_the_old_bytes(room: Path) -> None:
    with fakes.serving({"/x": BODY}) as server:
        url.fetch_url(f"{server.address}/x", room, ignore).write_bytes(BODY[:1000])
        server.files["/x"] = BODY[::-1]
        assert url.fetch_url(f"{server.address}/x", room, ignore).read_bytes() == BODY[::-1]


def test_a_leftover_longer_than_the_file_starts_over(room: Path) -> None:
    with fakes.serving({"/x": BODY}) as server:
        url.fetch_url(f"{server.address}/x", room, ignore).write_bytes(BODY + b"more")
        assert url.fetch_url(f"{server.address}/x", room, ignore).read_bytes() == BODY


def test_a_missing_page_says_so(room: Path) -> None:
    with fakes.serving({}) as server, pytest.raises(FetchFailed, match="HTTP 404"):
        url.fetch_url(f"{server.address}/x", room, ignore)


def test_a_dead_server_is_unreachable(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(url, "PAUSE_S", 0)
    with fakes.serving({}) as server:
        address = server.address
    with pytest.raises(Unreachable, match="no answer"):
        url.fetch_url(f"{address}/x", room, ignore)


@needs_pip
def test_pip_fetches_the_wheel_by_its_own_configuration(
    room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "os1_toy-1.0-py3-none-any.whl").write_bytes(fakes.wheel("os1-toy", "1.0", {"t/x.bin": BODY}))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(mirror))
    found = pypi.fetch_pypi("os1-toy==1.0", room, ignore)
    assert found.read_bytes() == (mirror / found.name).read_bytes()
    assert importlib.util.find_spec("t") is None


@needs_pip
def test_pip_that_finds_nothing_says_why(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(FetchFailed, match="No matching distribution"):
        pypi.fetch_pypi("os1-toy==1.0", room, ignore)


def test_an_environment_without_pip_says_so(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(FetchFailed, match="has no pip"):
        pypi.fetch_pypi("os1-toy==1.0", room, ignore)


@needs_pip
def test_a_disk_that_fills_under_pip_is_a_full_disk(
    room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = "import sys; sys.exit('ERROR: Could not install: [Errno 28] No space left on device')"
    monkeypatch.setattr(sys, "executable", str(script(tmp_path / "python", failing)))
    with pytest.raises(DiskFull, match="the disk ran full"):
        pypi.fetch_pypi("os1-toy==1.0", room, ignore)


def test_a_tool_that_brings_no_byte_is_ended(room: Path, tmp_path: Path) -> None:
    marker = tmp_path / "pid"
    sleeper = f"import os, time; open({str(marker)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    job = tool.Tool([sys.executable, "-c", sleeper], room, {}, first_byte_s=1.0)
    with pytest.raises(Unreachable, match="no byte within 1 s"):
        tool.run_tool(job, ignore)
    with pytest.raises(ProcessLookupError):
        os.kill(int(marker.read_text()), 0)


def test_a_transfer_that_stalls_is_ended(room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "STALL_S", 1.0)
    job = tool.Tool(
        [sys.executable, "-c", "import time; open('x', 'w').write('some'); time.sleep(600)"], room, {}, 60.0
    )
    with pytest.raises(FetchFailed, match="no byte for 1 s"):
        tool.run_tool(job, ignore)


def test_npm_packs_the_tarball(room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = fakes.tarball({"package/x": BODY})
    (tmp_path / "data.tgz").write_bytes(data)
    folder = tmp_path / "bin"
    folder.mkdir()
    script(
        folder / "npm",
        "import pathlib, shutil, sys\n"
        "assert sys.argv[1] == 'pack' and sys.argv[-1] == '@scope/toy@1.0.0', sys.argv\n"
        "where = next(a.partition('=')[2] for a in sys.argv if a.startswith('--pack-destination='))\n"
        f"shutil.copy({str(tmp_path / 'data.tgz')!r}, pathlib.Path(where) / 'scope-toy-1.0.0.tgz')\n",
    )
    monkeypatch.setenv("PATH", str(folder))
    assert npm.fetch_npm("@scope/toy@1.0.0", room, ignore).read_bytes() == data


def test_a_machine_without_npm_says_so(room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FetchFailed, match="npm is not installed"):
        npm.fetch_npm("@scope/toy@1.0.0", room, ignore)


def test_a_hub_address_is_taken_apart() -> None:
    assert hub.parse_hub("Own/Re.po-1@v1.0/en/a.onnx") == ("Own/Re.po-1", "v1.0", "en/a.onnx")


def test_the_hub_library_fetches_one_file(
    room: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setattr(hub, "FIRST_BYTE_S", 60.0)
    with fakes.serving({"/own/toy/resolve/main/sub/x.bin": BODY}) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        found = hub.fetch_hub("own/toy@main/sub/x.bin", room, ignore)
    assert found.read_bytes() == BODY


def test_a_hub_that_does_not_answer_falls_through(
    room: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    with fakes.serving({}) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
    with pytest.raises(Unreachable, match="no answer"):
        hub.fetch_hub("own/toy@main/x.bin", room, ignore)


def test_a_hub_that_never_answers_is_given_up_within_seconds(
    room: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setattr(hub, "FIRST_BYTE_S", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{mute.getsockname()[1]}")
        with pytest.raises(Unreachable, match="no byte within 2 s"):
            hub.fetch_hub("own/toy@main/x.bin", room, ignore)


def test_a_hub_that_lacks_the_file_is_not_unreachable(
    room: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setattr(hub, "FIRST_BYTE_S", 60.0)
    with fakes.serving({}) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        with pytest.raises(FetchFailed, match="404") as caught:
            hub.fetch_hub("own/toy@main/x.bin", room, ignore)
    assert not isinstance(caught.value, Unreachable)


def test_a_tool_that_cannot_start_says_so(room: Path, tmp_path: Path) -> None:
    with pytest.raises(FetchFailed, match="cannot start"):
        tool.run_tool(tool.Tool([str(tmp_path / "nothing")], room, {}, 1.0), ignore)
