"""Any OpenAI-compatible server as an engine: vLLM, llama-server, SGLang. This is how a GPU machine is used.

`POST {url}/chat/completions` with `stream`; pictures as `image_url` parts with data URLs; a JSON schema as
`response_format`. An answer is aborted by closing its connection, which all of them take for a cancel. The
server runs somewhere, or is started here (command).
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any, Literal

from os1_cloud.engines import (
    BadImage,
    BadSchema,
    EngineBusy,
    EngineError,
    EngineLost,
    Finished,
    Piece,
    Prompt,
    TooLong,
    Turn,
)
from os1_cloud.engines.command import URL, Command
from os1_cloud.engines.http import Endpoint, HttpError, HttpStatus, endpoint, events
from os1_cloud.engines.pulse import FRESH_S, ill, look

CONNECT_S = 3.0
"""Within one machine room."""
SILENCE_S = 30.0
"""Between two events: a server that says nothing for so long is taken for dead."""
RETRY_S = 1.0
"""When to come back to a server that is busy and does not say how long, or that is gone."""
GATEWAY = (502, 504)
"""Of whoever stands between: there is nobody behind it."""
START_S = 600.0
"""For a server of our own to be ready: vLLM reads tens of gigabytes and compiles."""


class Upstream:
    """One model of another server."""

    def __init__(
        self,
        name: str,
        url: str,
        model: str,
        *,
        key: str = "",
        context: int = 8192,
        slots: int = 16,
        vision: bool = False,
        silence_s: float = SILENCE_S,
        command: Sequence[str] = (),
        start_s: float = START_S,
    ) -> None:
        """Args:
            name: what clients know it by.
            url: where it is, e.g. "http://127.0.0.1:8000/v1"; with `command`: see there, "": `command.URL`.
            model: its name there.
            key: sent as bearer token; "": none.
            context: tokens of prompt and answer together, as it was started with.
            slots: prompts that it works on at a time.
            vision: whether the model looks at pictures.
            silence_s: seconds between two events at most.
            command: starts it, see `Command`; empty: it runs already.
            start_s: seconds that it may take to be ready then.

        Raises:
            ValueError: `url` is none.
        """
        self.name, self.context_tokens, self.slots, self.vision = name, context, slots, vision
        self._model, self._silence_s = model, silence_s
        self._headers = [("Authorization", f"Bearer {key}")] if key else []
        self._there = None if command else endpoint(url)
        self.server = Command(name, command, url or URL, self._headers, start_s) if command else None
        self._at_work = self._mute = 0
        self._heard = -math.inf

    async def start(self) -> None:
        """Starts the server, where it is ours.

        Raises:
            EngineError: it does not become ready.
        """
        if self.server is not None:
            await self.server.start()

    async def check(self) -> None:
        """Asks the server whether it is well, unless it has just said something to a question.

        Raises:
            EngineError: it is not.
        """
        to = self._to()
        if asyncio.get_running_loop().time() - self._heard < FRESH_S:
            return
        if why := ill(await look(to, self._headers), self._at_work, self._mute):
            raise EngineError(f"{self.name}: the server behind it: {why}")

    def close(self) -> None:
        """Ends the server, where it is ours."""
        if self.server is not None:
            self.server.close()

    def _to(self) -> Endpoint:
        """Where to ask now.

        Raises:
            EngineLost: our server is being started.
        """
        to = self._there if self.server is None else self.server.to
        if to is None:
            wait = RETRY_S if self.server is None else self.server.ready_s
            raise EngineLost(f"{self.name}: the server behind it is being started", wait)
        return to

    def _hears(self) -> None:
        self._heard, self._mute = asyncio.get_running_loop().time(), 0

    @contextmanager
    def _asked(self, wait: float) -> Iterator[None]:
        """Around one question: what goes wrong, as an engine says it."""
        self._at_work += 1
        try:
            yield
        except TimeoutError as e:
            self._mute += wait == self._silence_s
            silent = f"{self.name}: the server behind it said nothing for {wait:.0f} s"
            raise EngineLost(silent, RETRY_S) from e
        except HttpStatus as e:
            if isinstance(failure := _error(self.name, e), EngineBusy):
                self._hears()
            raise failure from e
        except HttpError as e:
            self._heard = -math.inf
            # Only the kind: a client need not know where it is.
            kind = type(e.__cause__ or e).__name__
            raise EngineLost(f"{self.name}: the server behind it is gone ({kind})", RETRY_S) from e
        except (ValueError, TypeError, AttributeError) as e:
            # Only the kind: what a server writes may quote the prompt.
            raise EngineError(f"{self.name}: the server behind it failed ({type(e).__name__})") from e
        finally:
            self._at_work -= 1

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Piece | Finished, None]:
        """See `Engine.generate`."""
        body = json.dumps(_request(self._model, prompt)).encode()
        wait = min(self._silence_s, prompt.total_s or self._silence_s)
        why: Literal["stop", "length"] = "stop"
        usage: dict[str, Any] = {}
        pieces, ended, to = 0, False, self._to()
        with self._asked(wait):
            stream = events(to, "/chat/completions", body, self._headers, CONNECT_S)
            async with aclosing(stream):
                while (data := await asyncio.wait_for(anext(stream, "[DONE]"), wait)) != "[DONE]":
                    self._hears()
                    part = json.loads(data)
                    if "error" in part:
                        raise EngineError(f"{self.name}: the server behind it failed")
                    usage = part.get("usage") or usage
                    for choice in part.get("choices", []):
                        if text := choice.get("delta", {}).get("content"):
                            pieces += 1
                            yield Piece(text)
                        if choice.get("finish_reason"):
                            why, ended = "length" if choice["finish_reason"] == "length" else "stop", True
        if not ended:
            raise EngineError(f"{self.name}: the server behind it broke off")
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        yield Finished(why, usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or pieces, cached)


def _request(model: str, prompt: Prompt) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [_message(turn) for turn in prompt.turns]
    found: dict[str, Any] = {
        "model": model,
        "messages": messages,
        "max_tokens": prompt.max_tokens,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if prompt.json_schema:
        schema = {"name": "answer", "schema": json.loads(prompt.json_schema), "strict": True}
        found["response_format"] = {"type": "json_schema", "json_schema": schema}
    if prompt.prefix:
        messages.append({"role": "assistant", "content": prompt.prefix})
        found |= {"add_generation_prompt": False, "continue_final_message": True}  # vLLM, SGLang
    return found


def _message(turn: Turn) -> dict[str, Any]:
    if not turn.images:
        return {"role": turn.role, "content": turn.text}
    parts = [
        {"type": "image_url", "image_url": {"url": f"data:{_kind(i)};base64,{base64.b64encode(i).decode()}"}}
        for i in turn.images
    ]
    return {"role": turn.role, "content": [*parts, {"type": "text", "text": turn.text}]}


def _kind(image: bytes) -> str:
    return "image/png" if image.startswith(b"\x89PNG") else "image/jpeg"


def _error(name: str, failed: HttpStatus) -> Exception:
    """What a status means. The body's words are looked at, never passed on: they may quote the prompt."""
    words = failed.body.decode("utf-8", "replace").lower()
    if failed.status in (400, 413, 422):
        if "context" in words or "too long" in words or "maximum" in words:
            return TooLong(f"{name}: prompt and answer do not fit the model's context")
        if "image" in words:
            return BadImage(f"{name}: a picture cannot be read")
        if "schema" in words or "grammar" in words or "response_format" in words:
            return BadSchema(f"{name}: json_schema cannot be obeyed")
    if failed.status in (429, 503):
        wait = RETRY_S if failed.retry_after_s is None else failed.retry_after_s
        return EngineBusy(f"{name}: the server behind it takes no more now", wait)
    if failed.status in GATEWAY:
        return EngineLost(f"{name}: the server behind it is gone (status {failed.status})", RETRY_S)
    return EngineError(f"{name}: the server behind it answered with status {failed.status}")
