"""The command line: worth reading, one line a failure, exit codes 0, 1 and 2."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from importlib.metadata import requires
from importlib.util import find_spec
from pathlib import Path

import click
import numpy as np
import pytest
import soundfile
from click.testing import CliRunner, Result

from os1_edge import __version__, cli, doctor
from os1_edge.config import Config, load_config, model_names
from os1_edge.remember.key import load_or_make
from os1_edge.tomlfile import BadFile, line_of

OWN = ("replay", "demo", "vad", "transcribe", "say", "doctor", "models")


@pytest.fixture(autouse=True)
def _bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No model is pulled, and nothing of the user's is touched."""
    monkeypatch.setenv("OS1_MODELS_DIR", str(tmp_path / "models"))
    monkeypatch.setenv("OS1_KEY_FILE", str(tmp_path / "memory.key"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def os1(*words: str | Path) -> Result:
    return CliRunner().invoke(cli.main, [str(w) for w in words])


def failed(result: Result) -> str:
    """The one line of a failure."""
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit), result.exception
    (line,) = result.stderr.splitlines()
    assert line.startswith("os1: ")
    return line.removeprefix("os1: ")


def every_command() -> list[tuple[str, ...]]:
    """The names of all commands and their commands."""
    out: list[tuple[str, ...]] = []
    context = click.Context(cli.main)
    for name in OWN:
        command = cli.main.get_command(context, name)
        assert command is not None, name
        out.append((name,))
        if isinstance(command, click.Group):
            out += [(name, sub) for sub in command.list_commands(context)]
    return out


@pytest.mark.parametrize("words", every_command(), ids=" ".join)
def test_every_command_says_what_it_does(words: tuple[str, ...]) -> None:
    for flag in ("--help", "-h"):
        result = os1(*words, flag)
        if result.exit_code == 2 and flag == "-h":
            continue  # a role's own group may know --help alone
        assert result.exit_code == 0, result.output
        assert f"Usage: main {' '.join(words)}" in result.output
        told = result.output.split("\n\n", 1)[1]
        assert len(told.split("Options:")[0].split()) >= 5, "a command needs a sentence"


def test_every_option_says_what_it_is_for() -> None:
    context = click.Context(cli.main)
    for name in OWN:
        command = cli.main.get_command(context, name)
        assert command is not None
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.help or option.show_default, f"{name} --{option.name}"


def test_the_first_page_says_where_to_start() -> None:
    result = os1("--help")
    assert result.exit_code == 0
    for word in ("os1 doctor", "os1 models pull", "os1 demo", *OWN):
        assert word in result.output
    assert os1("--version").output.strip() == f"os1, version {__version__}"


@pytest.mark.parametrize(
    "words",
    [
        ("nonsense",),
        ("replay",),
        ("replay", "x"),
        ("vad",),
        ("transcribe", "x.wav", "--threads", "0"),
        ("transcribe", "x.wav", "--threads", "many"),
        ("say", "hi", "--out", "x.wav", "--speed", "0"),
        ("say", "hi"),
        ("demo", "--loud"),
    ],
)
def test_a_command_used_wrongly_is_exit_code_2(words: tuple[str, ...]) -> None:
    result = os1(*words)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "words", [("demo", "--out", "OUT"), ("vad", "S"), ("transcribe", "S"), ("say", "hi", "--out", "OUT")]
)
def test_without_models_each_command_says_what_to_run(words: tuple[str, ...], tmp_path: Path) -> None:
    soundfile.write(str(tmp_path / "S.wav"), np.zeros(1600, np.float32), 16_000)
    names = {"OUT": tmp_path / "out", "S": tmp_path / "S.wav"}
    line = failed(os1(*(names.get(w, w) for w in words)))
    assert "os1 models pull" in line


def test_doctor_without_models_says_how_to_get_them_and_is_exit_code_1() -> None:
    result = os1("doctor")
    assert result.exit_code == 1
    for name in ("silero-vad", "whisper-tiny.en", "qwen2.5-0.5b", "piper-joe", "minilm-l6", "objects-ssd"):
        assert f"MISSING  model {name}" in result.output
        assert f"run: os1 models pull {name}" in result.output
    assert "ok       memory key" in result.output


def broken_package(folder: Path, code: str) -> None:
    (folder / "soxr.py").write_text(code)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("raise ImportError('libsoxr.so.0: cannot open shared object file\\nand more')",
         "soxr does not load (ImportError: libsoxr.so.0: cannot open shared object file)"),
        ("import os; os.abort()", "soxr does not load (ends or hangs the process that loads it)"),
        ("import sys; sys.exit(3)", "soxr does not load (SystemExit: 3)"),
        ("raise ModuleNotFoundError('No module named soxr', name='soxr')", "missing soxr"),
        ("import nowhere_to_be_found", "soxr does not load (ModuleNotFoundError: No module named"),
    ],
)  # fmt: skip
def test_doctor_loads_each_package_and_says_what_is_wrong_with_it(
    code: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That a package is listed as installed says nothing: its library may be for another processor."""
    broken_package(tmp_path, code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(doctor, "EDGE_PACKAGES", {"soxr": "soxr", "numpy": "numpy"})
    check = doctor._packages()
    assert not check.ok
    assert check.found.startswith(told)
    assert "\n" not in check.found
    assert "soxr" in check.fix or "os1[edge]" in check.fix


def test_doctor_loads_all_that_the_extra_edge_installs() -> None:
    needed = [r for r in requires("os1") or [] if 'extra == "edge"' in r.replace("'", '"')]
    names = {re.split(r"[\[<>=;~! ]", r, maxsplit=1)[0] for r in needed}
    assert names
    assert names <= set(doctor.EDGE_PACKAGES)
    assert {c.name: c.found for c in doctor.examine()}["edge packages"] == f"{len(doctor.EDGE_PACKAGES)} load"


@pytest.mark.parametrize("named", [True, False])
def test_doctor_looks_for_room_where_the_models_go(
    named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache" / "os1").mkdir(parents=True)
    (tmp_path / "named").mkdir()
    if named:
        monkeypatch.setenv("OS1_MODELS_DIR", str(tmp_path / "named" / "not yet" / "made"))
    else:
        monkeypatch.delenv("OS1_MODELS_DIR")
    where = tmp_path / "named" if named else tmp_path / "cache" / "os1"
    assert doctor._disk().fix.endswith(f" below {where}")


def test_every_setting_is_read_by_somebody() -> None:
    package = Path(cli.__file__).parent
    code = "\n".join(p.read_text() for p in package.rglob("*.py") if p.name != "config.py")
    code += inspect.getsource(model_names)
    sections = {name: field.annotation for name, field in Config.model_fields.items() if name != "profile"}
    for section, model in sections.items():
        for setting in model.model_fields:  # type: ignore[union-attr]
            assert re.search(rf"\b(?:{section}|_?settings)\.{setting}\b", code), (
                f"nobody reads {section}.{setting}"
            )


@pytest.mark.parametrize("package", ["os1_edge", "os1_models", "os1_cloud", "os1_proto"])
def test_type_checkers_see_the_types_of_each_package(package: str) -> None:
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    assert (Path(spec.origin).parent / "py.typed").is_file()


def test_doctor_speaks_json(tmp_path: Path) -> None:
    checks = json.loads(os1("doctor", "--json").output)
    assert {"name", "ok", "found", "fix"} == set(checks[0])
    assert {c["name"]: c["ok"] for c in checks}["Python"] is True
    assert all(c["fix"] for c in checks if not c["ok"])


def test_doctor_looks_at_the_settings_and_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_or_make(tmp_path / "memory.key")
    (tmp_path / "memory.key").chmod(0o644)
    settings = tmp_path / "config.toml"
    settings.write_text("[hear]\nthreads = 2\nnose = 1\n")
    monkeypatch.setattr("os1_edge.config.default_config_file", lambda: settings)
    result = os1("doctor")
    assert result.exit_code == 1
    assert "MISSING  settings" in result.output
    assert f"{settings}:3: hear.nose: no such setting" in result.output
    assert "chmod 600" in result.output


def test_doctor_asks_for_the_models_that_a_run_loads() -> None:
    faculties = pytest.importorskip("os1_edge.faculties")
    asked = {c.name.removeprefix("model ") for c in doctor.examine() if c.name.startswith("model ")}
    assert asked == set(faculties.model_names(Config()))


@pytest.mark.parametrize("out", ["a file", "below a file", "other files"])
def test_a_replay_never_writes_where_something_else_lies(out: str, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    if out == "other files":
        taken.mkdir()
        (taken / "thesis.txt").write_text("years of work")
    else:
        taken.write_text("years of work")
    before = sorted(p.name for p in tmp_path.rglob("*"))
    line = failed(os1("demo", "--out", taken / "x" if out == "below a file" else taken))
    assert str(taken) in line
    assert {p.name for p in tmp_path.rglob("*")} - set(before) <= {"memory.key"}


def test_a_replay_that_cannot_run_leaves_the_one_before(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    earlier = '{"schema": 1, "os1_version": "0"}'
    (tmp_path / "out" / "report.json").write_text(earlier)
    assert "os1 models pull" in failed(os1("demo", "--out", tmp_path / "out"))
    assert (tmp_path / "out" / "report.json").read_text() == earlier


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[hear]\nsilence_s = 99\n", ":2: hear.silence_s"),
        ("[hear]\nsilence_s = 'long'\n", ":2: hear.silence_s"),
        ("[nose]\n", "nose: no such setting"),
        ("[hear\n", ":1: not TOML"),
        (None, "no such file"),
    ],
)
def test_a_wrong_settings_file_is_one_line(text: str | None, words: str, tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    if text is not None:
        file.write_text(text)
    line = failed(os1("demo", "--out", tmp_path / "out", "--config", file))
    assert str(file) in line
    assert words in line


def test_a_key_others_can_read_stops_a_replay(tmp_path: Path) -> None:
    load_or_make(tmp_path / "memory.key")
    (tmp_path / "memory.key").chmod(0o666)
    assert "chmod 600" in failed(os1("demo", "--out", tmp_path / "out"))


def test_a_folder_as_key_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "memory.key").mkdir(mode=0o700)
    assert "memory.key" in failed(os1("demo", "--out", tmp_path / "out"))


def test_settings_default_to_what_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os1_edge.config.default_config_file", lambda: tmp_path / "none.toml")
    assert load_config() == Config()
    (tmp_path / "some.toml").write_text("[speak]\nspeed = 1.5\n")
    assert load_config(tmp_path / "some.toml").speak.speed == 1.5
    with pytest.raises(BadFile, match="no such file"):
        load_config(tmp_path / "none.toml")


def test_the_line_of_a_setting_is_found() -> None:
    text = "# note\na = 1\n[[m]]\nx = 1\n\n[[m]]\n  x = 2\ny = 3\n[n]\nx = 4\n"
    assert line_of(text, ("a",)) == 2
    assert line_of(text, ("m", 0, "x")) == 4
    assert line_of(text, ("m", 1, "x")) == 7
    assert line_of(text, ("m", 1, "absent")) == 6
    assert line_of(text, ("m", 0, "absent")) == 3
    assert line_of(text, ("n", "x")) == 10
    assert line_of(text, ("nowhere", 0, "x")) is None
    assert line_of("", ()) is None


def test_starting_up_loads_no_model_library() -> None:
    """`os1 --help` is quick: the heavy libraries load with the command that needs them."""
    heavy = ("onnxruntime", "llama_cpp", "pywhispercpp", "piper", "cv2", "soundfile")
    code = f"import sys, os1_edge.cli; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert found.stdout.strip() == "[]"


def test_what_is_said_cannot_steer_the_terminal() -> None:
    from os1_edge.cli import _plain

    assert _plain("\x1b]0;owned\x07 hello\n\x9b31m") == "\ufffd]0;owned\ufffd hello\n\ufffd31m"


def test_a_bad_recording_does_not_keep_the_others_from_being_heard(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from os1_edge.cli import _each
    from os1_edge.device.sound import BadSound

    done: list[str] = []

    def work(path: Path) -> None:
        if path.name == "bad":
            raise BadSound(f"{path.name}: no such file")
        done.append(path.name)

    with pytest.raises(SystemExit) as ended:
        _each((Path("a"), Path("bad"), Path("b")), work)
    assert ended.value.code == 1
    assert done == ["a", "b"]
    assert capsys.readouterr().err == "os1: bad: no such file\n"


def test_nothing_is_reported_to_the_maker_of_a_library(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "tmp").mkdir(parents=True)
    env = {"HOME": str(home), "TMPDIR": str(home / "tmp"), "PATH": os.environ["PATH"]}
    code = "import os1_edge.hear.vad, os1_edge.remember.embed, os1_edge.speak.tts"
    subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=60)
    assert [p for p in home.rglob("*") if p.is_file()] == []
