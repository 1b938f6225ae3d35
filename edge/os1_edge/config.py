"""All settings in one typed model, read from one TOML file; every field has a default that works."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from os1_edge.tomlfile import BadFile, line_of, plain_problem, read_toml

Threads = Annotated[int, Field(ge=1, le=64)]
Share = Annotated[float, Field(ge=0, le=1)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Device(_Section):
    """Live devices, for ``os1 run``."""

    microphone: str = "auto"
    """"auto"; "pulse" or "alsa", with ":NAME" for one of its microphones; or a command that writes WAV, or
    raw 16 kHz mono of 16 bits, to its standard output."""
    speaker: str = "auto"
    """The same; a command takes raw mono of 16 bits at ``{rate}``."""
    scene_camera: str = "auto"
    """"auto", a path such as /dev/v4l/by-id/…, a number, "termux:0", a film or a stream's address;
    "none": it does not see."""
    eye_camera: str = "none"
    """The near-eye camera, the same."""
    calibration: Path | None = None
    """What `os1 calibrate` wrote; none: gaze is guessed, with an honest uncertainty."""


class Hear(_Section):
    """Voice activity, end of turn, speech recognition."""

    engine: Literal["whisper", "sherpa"] = "whisper"
    """Speech recognition by whisper.cpp; or by Moonshine on sherpa-onnx, with asr_model = "moonshine-base"
    and the extra ``sherpa``."""
    asr_model: str = "whisper-tiny.en"
    """"whisper-base" knows many languages."""
    language: str = "en"
    """A code such as "de", or "auto": whatever is spoken."""
    threads: Threads = 2
    start_above: Share = 0.5
    """Speech probability at which a turn may start."""
    stop_below: Share = 0.35
    """Speech probability under which a turn's audio counts as silence."""
    silence_s: Annotated[float, Field(ge=0.1, le=5)] = 0.5
    """Silence that ends a turn."""
    speculate: bool = True
    """Begin the answer at the first short pause, held back until the turn is over; the work is lost where the
    wearer goes on."""
    partials: bool = True
    """Recognise while the wearer speaks, and read the prompt ahead."""
    echo_cancellation: bool = True
    """Take the speaker's own voice out of the microphone; costs nothing while nothing plays."""
    noise_suppression: bool = False
    gain_control: bool = False
    wake_word: str | None = None
    """"okay nabu", "hey jarvis", "hey mycroft" or "alexa": hear only what follows it."""
    push_to_talk: bool = False
    """Hear only while the button is held."""


class GazeSettings(_Section):
    """The eye camera: pupil, gaze and fixations."""

    scene_width: Annotated[int, Field(ge=16, le=8192)] = 640
    """Size of the scene picture that gaze is told on, where no calibration says it."""
    scene_height: Annotated[int, Field(ge=16, le=8192)] = 480
    scene_fov_deg: Annotated[float, Field(gt=10, lt=160)] = 82.0
    """Horizontal field of view of the scene camera."""
    eye_turn_deg: Literal[0, 90, 180, 270] = 0
    """How far the eye picture is turned, clockwise; only for gaze without a calibration."""
    eye_mirrored: bool = False
    """The eye picture is mirrored; only for gaze without a calibration."""
    least_confidence: Share = 0.6
    """Pupils below it give no gaze."""
    smooth_hz: Annotated[float, Field(gt=0, le=100)] = 1.5
    """Cutoff of the One Euro filter at rest."""
    smooth_beta: Annotated[float, Field(ge=0, le=10)] = 0.5
    """How fast that cutoff rises with the speed of the gaze, per degree a second."""
    saccade_deg_s: Annotated[float, Field(gt=0, le=500)] = 30.0
    """Speed above which the eye is in a saccade (Olsen 2012)."""
    fixation_reach_deg: Annotated[float, Field(gt=0, le=10)] = 1.5
    """Distance from a fixation's middle that ends it."""


class See(_Section):
    """The scene camera."""

    threads: Threads = 2
    every_s: Annotated[float, Field(ge=1, le=3600)] = 10.0
    """Time between frames."""
    in_dialogue_s: Annotated[float, Field(ge=1, le=3600)] = 5.0
    """Time between them while somebody talks with the wearer or OS-1."""
    turned_deg: Literal[0, 90, 180, 270] = 0
    """How far the camera is mounted turned, clockwise."""
    jpeg_bytes: Annotated[int, Field(ge=6_000, le=1_000_000)] = 60_000
    """Most bytes of a frame that leaves the device; a slow link makes it smaller."""
    blur_faces: bool = True
    """Take faces out of whatever leaves the device or is written."""
    read_text: bool = True
    """Read the words that the wearer looks at."""
    led: Path | None = None
    """The capture light, such as /sys/class/leds/capture; none: a mark on the wearer's page alone."""
    vision_model: str | None = None
    """A vision model that describes frames on the device, such as "smolvlm-500m"; none: the objects found in
    them, and the words."""
    vision_tokens: Annotated[int, Field(ge=1024, le=32_768)] = 4096
    """Tokens that the vision model holds: four frames of SmolVLM or LLaVA take up to 3,000."""
    gaze: GazeSettings = GazeSettings()


class Speak(_Section):
    """The voice."""

    voice: str = "piper-joe"
    speed: Annotated[float, Field(ge=0.5, le=2)] = 1.0
    threads: Threads = 2
    lean: bool = False
    """60 MB less, and a sixth slower."""


class RecallWeights(_Section):
    """What counts how much in a memory's likeness to a question; only the proportions matter. Fitted on
    LoCoMo, see docs/decisions/0007-recall.md."""

    meaning: Annotated[float, Field(ge=0, le=100)] = 5.7
    """Cosine similarity."""
    before: Annotated[float, Field(ge=0, le=100)] = 2.4
    """The same of what was said just before..."""
    after: Annotated[float, Field(ge=0, le=100)] = 1.4
    """...and after it."""
    words: Annotated[float, Field(ge=0, le=100)] = 1.0
    """BM25."""
    near: Annotated[float, Field(ge=0, le=100)] = 2.3
    """The question's words in it or beside it."""
    group: Annotated[float, Field(ge=0, le=100)] = 2.7
    """The question's words in its conversation."""
    speaker: Annotated[float, Field(ge=0, le=100)] = 3.2
    """Said by whom the question names."""
    when: Annotated[float, Field(ge=0, le=100)] = 2.9
    """Says a time, where the question asks when."""
    times: Annotated[float, Field(ge=0, le=100)] = 3.6
    """Of the time that the question names."""
    place: Annotated[float, Field(ge=0, le=100)] = 3.2
    """At the place that the question names."""
    asks: Annotated[float, Field(ge=-100, le=0)] = -1.0
    """It is a question itself."""


class Remember(_Section):
    """Memory and recall."""

    limit: Annotated[int, Field(ge=0, le=20)] = 3
    """Memories given to a reply."""
    min_similarity: Share = 0.25
    """Cosine similarity below which a memory has nothing to do with what was said."""
    weights: RecallWeights = RecallWeights()
    importance_weight: Share = 0.01
    """Of importance beside likeness, both 0..1: it decides between memories that fit alike."""
    recency_weight: Share = 0.01
    """The same of recency. With 0.1 recall finds 4 points less of LoCoMo, with 1 a fifth of it."""
    associated: Annotated[int, Field(ge=0, le=5)] = 1
    """Memories more that are linked to those by index keys and fit what was said too, where time and room
    allow; never in place of one of those."""
    event_threshold: Share = 0.75
    """Cosine similarity above which contexts are one event (paper 3.2.3)."""
    written_by_model: bool = True
    """The language model writes summaries, keys and the profile while nobody speaks; else plain rules do."""
    keep_turns_days: Annotated[int, Field(ge=1)] | None = None
    """Days that turns are kept; none: for ever. Those that a profile line rests on stay."""
    keep_contexts_days: Annotated[int, Field(ge=2)] | None = None
    """Days that the contexts behind the daily events are kept."""
    keep_events_days: Annotated[int, Field(ge=2)] | None = None
    keep_summaries_days: Annotated[int, Field(ge=2)] | None = None
    max_mb: Annotated[float, Field(ge=1)] | None = None
    """Size of the memory file above which the oldest turns and contexts go, a week at a time."""


class Converse(_Section):
    """The reply."""

    model: str = "qwen2.5-0.5b"
    threads: Threads = 2
    context_tokens: Annotated[int, Field(ge=1024, le=32_768)] = 4096
    max_tokens: Annotated[int, Field(ge=8, le=512)] = 60
    """Tokens of a reply."""
    history: Annotated[int, Field(ge=0, le=40)] = 6
    """Exchanges of the running conversation that the prompt holds."""
    session_gap_s: Annotated[float, Field(ge=1)] = 1200.0
    """Idle time after which a new conversation starts."""
    ablation: Literal["none", "without profile", "without profile and history", "without context"] = "none"
    """What replies may not rest on; for evaluation."""
    agents: Literal["rules", "model"] = "rules"
    """Who plans the dialogue, proposes what to look up and tells where the wearer is: plain rules; or a
    language model too, between the turns and inline where it fits the budget."""
    voice_to_voice_s: Annotated[float, Field(ge=0.3, le=10)] = 1.0
    """From the wearer's last sound to the reply's first: what agents do inline must leave room for the
    rest."""
    persona: str = "companion"
    """"companion", "listener", "lively", "plain", or the path of a file of one's own (docs/converse.md)."""
    questions: Literal["none", "few", "some", "many"] | Share | None = None
    """How many of its replies may end with a question, or their share; without it, as the persona says."""
    helpline: Annotated[str, Field(max_length=300)] = ""
    """A sentence that names help where the wearer lives, for when they may be in danger. The one without it
    names no number, as a wrong one is worse than none."""
    proactive: bool = True
    """Speak first, rarely: a reminder that is due, a place, a person, a silence after distress."""
    quiet_hours: Annotated[str, Field(pattern=r"^([01]?\d|2[0-3]):[0-5]\d-([01]?\d|2[0-3]):[0-5]\d$")] = (
        "22:00-07:00"
    )
    """When it does not, but for what the wearer asked to be reminded of."""


class Offload(_Section):
    """The offload server."""

    server: str | None = None
    """``host:port``, or several with commas between them: where one fails, the next is asked. Nothing leaves
    the device without it. Asked in plain text only on this machine."""
    token_file: Path | None = None
    """Holds the wearer's token for the server."""
    ca_file: Path | None = None
    """Certificates (PEM) that the server's must be signed by, instead of the system's."""
    client_certificate: Path | None = None
    client_key: Path | None = None
    """The device's own (PEM), for a server that wants them."""
    first_token_s: Annotated[float, Field(ge=0.05, le=10)] = 0.6
    """Seconds to a reply's first word; the device begins in time to keep it, whatever the server does."""
    policy: Literal["prefer-quality", "prefer-private", "prefer-battery"] = "prefer-quality"
    """The server's bigger model wherever it is in time; nothing ever leaves; never both sides at work."""
    metered: Literal["allow", "text", "deny"] = "text"
    """What leaves over a network that costs: everything, no pictures, nothing."""
    metered_interfaces: tuple[str, ...] = ("wwan*", "wwp*", "ppp*", "rmnet*")
    """Interfaces that cost by the byte, as shell patterns."""
    pictures: bool = False
    """Pictures may leave the device, without faces."""
    local_only: tuple[Literal["reply", "caption", "context", "plan", "consolidate"], ...] = ("consolidate",)
    """What is never asked for elsewhere."""


Profile = Literal["laptop", "phone", "wear4100"]


class Config(_Section):
    """Everything that can be set."""

    profile: Profile | None = None
    """A kind of device, whose settings hold where this file says nothing."""
    device: Device = Device()
    hear: Hear = Hear()
    see: See = See()
    speak: Speak = Speak()
    remember: Remember = Remember()
    converse: Converse = Converse()
    offload: Offload = Offload()


def model_names(config: Config) -> tuple[str, ...]:
    """The models that ``config`` needs."""
    return (
        "silero-vad",
        "smart-turn-v3.2",
        config.hear.asr_model,
        "objects-ssd",
        *(["centerface"] if config.see.blur_faces else []),
        *(["ppocr"] if config.see.read_text else []),
        *([config.see.vision_model] if config.see.vision_model else []),
        "minilm-l6",
        config.converse.model,
        config.speak.voice,
    )


def default_config_file() -> Path:
    """Where the wearer's settings lie."""
    return platformdirs.user_config_path("os1") / "config.toml"


def load_config(path: Path | None = None) -> Config:
    """Reads ``path``; without one, the wearer's file where there is one, else the defaults.

    Raises:
        BadFile: the file named does not exist, or a setting in it is not right.
    """
    if path is None and not default_config_file().exists():
        return Config()
    config, _ = read_toml(path or default_config_file(), Config)
    return with_profile(config)


def with_profile(config: Config) -> Config:
    """``config`` with its profile's settings where it says nothing itself."""
    if config.profile is None:
        return config
    text = files("os1_edge").joinpath(f"profiles/{config.profile}.toml").read_text("utf-8")
    return Config.model_validate(_merged(tomllib.loads(text), config.model_dump(exclude_unset=True)))


def overridden(config: Config, changes: Mapping[str, Any], source: Path) -> Config:
    """``config`` with the settings in ``changes`` (nested like the file).

    Raises:
        BadFile: a change is not right; names ``source`` and the line of its ``[config.…]`` table.
    """
    try:
        return Config.model_validate(_merged(config.model_dump(), changes))
    except ValidationError as e:
        first = e.errors()[0]
        table, *key = map(str, first["loc"])
        problem = f"{'.'.join(['config', table, *key])}: {plain_problem(first['type'], first['msg'])}"
        text = source.read_text("utf-8-sig") if source.is_file() else ""
        raise BadFile(source, problem, line_of(text, (f"config.{table}", *key))) from None


def _merged(base: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(base)
    for key, value in changes.items():
        old = out.get(key)
        out[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, Mapping) else value
    return out
