"""How a pull tells the outside what it is doing."""

from __future__ import annotations

from typing import Literal, Protocol

Stage = Literal["wait", "fetch", "verify", "convert", "install"]


class ProgressSink(Protocol):
    """Receives a pull's progress, from the thread that pulls. Must return quickly and not raise."""

    def stage(self, model: str, stage: Stage, total: int | None) -> None:
        """A stage begins; `total` is its bytes, if known."""

    def advance(self, model: str, done: int) -> None:
        """`done` bytes of the stage are behind us. May go back when a download starts over."""

    def note(self, model: str, text: str) -> None:
        """Something worth a line: a source failed, another pull is being waited for."""

    def finish(self, model: str, ok: bool) -> None:
        """The model is done, well or not."""


class Silent:
    """A sink that drops everything."""

    def stage(self, model: str, stage: Stage, total: int | None) -> None:
        pass

    def advance(self, model: str, done: int) -> None:
        pass

    def note(self, model: str, text: str) -> None:
        pass

    def finish(self, model: str, ok: bool) -> None:
        pass
