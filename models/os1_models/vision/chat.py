"""A dialogue as the text that a model was trained on, with a marker where a picture stands.

Models bring their template with them, written for plain strings or for lists of typed parts, and some refuse
a system turn: which of it holds is found out by a trial. A model without a template is a LLaVA 1.5 or 1.6,
whose GGUF files have none. It gets `LLAVA`, as it was trained (``conv_vicuna_v1`` of LLaVA's
``conversation.py``); llama-cpp-python's handler for it drops the spaces between the turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from os1_models.vision.terms import Turn, VisionError

Render = Callable[[list[dict[str, Any]]], str]
"""Fills in a template."""
Shape = Literal["parts", "user parts", "text"]
"""Which turns are given as lists of typed parts: all, those of the user, none."""

LLAVA = (
    "{% for message in messages %}"
    "{% if message.role == 'system' %}{{ message.content }} {% endif %}"
    "{% if message.role == 'user' %}USER: {{ message.content }} {% endif %}"
    "{% if message.role == 'assistant' %}ASSISTANT: {{ message.content }}{{ eos_token }}{% endif %}"
    "{% endfor %}ASSISTANT:"
)
LLAVA_SYSTEM = (
    "A chat between a curious user and an artificial intelligence assistant. "
    "The assistant gives helpful, detailed, and polite answers to the user's questions."
)
_TRIAL = (Turn("user", "NEEDLE1"), Turn("assistant", "NEEDLE2"), Turn("user", "NEEDLE3"))


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """How a model wants a dialogue."""

    render: Render
    shape: Shape
    takes_system: bool
    """Else what the system says stands before the first turn of the user."""
    system: str = ""
    """What the system says where a dialogue has no system turn."""
    after_picture: str = ""
    """Stands between a picture and what follows it, in turns of plain text."""

    def text(self, turns: Sequence[Turn], marker: str) -> str:
        """The prompt, up to where the assistant's answer begins, with ``marker`` for every picture.

        Raises:
            VisionError: the template refuses this dialogue.
        """
        if self.system and not any(turn.role == "system" for turn in turns):
            turns = [Turn("system", self.system), *turns]
        if not self.takes_system:
            turns = _folded(turns)
        try:
            return self.render([self._message(turn, marker) for turn in turns])
        except Exception as e:  # a template may raise whatever it likes; its words may quote the dialogue
            raise VisionError(
                f"the model's chat template refuses the dialogue ({type(e).__name__})"
            ) from None

    def _message(self, turn: Turn, marker: str) -> dict[str, Any]:
        if self.shape == "text" or (self.shape == "user parts" and turn.role != "user"):
            return {
                "role": turn.role,
                "content": (marker + self.after_picture) * len(turn.images) + turn.text,
            }
        parts = [{"type": "text", "text": text} for text in [marker] * len(turn.images) + [turn.text]]
        return {"role": turn.role, "content": parts}


def chat_format(template: str | None, bos: str, eos: str) -> ChatFormat:
    """The format of a model with the Jinja ``template``; ``bos`` and ``eos`` are its special words.

    Raises:
        VisionError: no way of giving a dialogue to the template brings all its words into the prompt.
    """
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter

    def renderer(source: str) -> Render:
        formatter = Jinja2ChatFormatter(template=source, eos_token=eos, bos_token=bos)
        fill: Any = formatter  # its types know OpenAI's messages only
        return lambda messages: str(fill(messages=messages).prompt)

    if template is None:
        return ChatFormat(renderer(LLAVA), "text", True, LLAVA_SYSTEM, after_picture="\n")
    try:
        render = renderer(template)
    except Exception as e:
        raise VisionError(f"the model's chat template cannot be read ({type(e).__name__})") from None
    shapes: tuple[Shape, ...] = ("parts", "user parts", "text")
    for takes_system in (True, False):
        for shape in shapes:
            found = ChatFormat(render, shape, takes_system)
            if _carries_all(found):
                return found
    raise VisionError("the model's chat template takes no dialogue")


def _carries_all(tried: ChatFormat) -> bool:
    try:
        text = tried.text((Turn("system", "NEEDLE0"), *_TRIAL), "")
    except VisionError:
        return False
    # A template for plain strings prints a list as Python would.
    whole = all(text.count(f"NEEDLE{i}") == 1 for i in range(4))
    return whole and "'text'" not in text and '"text"' not in text


def _folded(turns: Sequence[Turn]) -> list[Turn]:
    said = [turn.text for turn in turns if turn.role == "system"]
    rest = [turn for turn in turns if turn.role != "system"]
    for i, turn in enumerate(rest):
        if said and turn.role == "user":
            rest[i] = Turn("user", "\n\n".join([*said, turn.text]), turn.images)
            break
    return rest
