"""A dialogue with pictures as each kind of model wants it."""

from __future__ import annotations

import pytest

pytest.importorskip("llama_cpp", reason="needs llama-cpp-python (extra edge or cloud)")
from os1_models.vision.chat import chat_format
from os1_models.vision.terms import Turn, VisionError

DIALOGUE = (
    Turn("system", "Be short."),
    Turn("user", "What is it?", (b"picture",)),
    Turn("assistant", "A cup."),
    Turn("user", "Whose?"),
)
PLAIN = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]"
PARTS = (
    "{% for m in messages %}[{{ m.role }}]{% for part in m.content %}"
    "{% if part.type == 'text' %}{{ part.text }}{% endif %}{% endfor %}{% endfor %}[assistant]"
)
NO_SYSTEM = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    "[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]"
)


@pytest.mark.parametrize("template", [PLAIN, PARTS])
def test_plain_and_typed_templates_get_all_words_and_the_picture_before_its_text(template: str) -> None:
    assert chat_format(template, "<s>", "</s>").text(DIALOGUE, "<P>") == (
        "[system]Be short.[user]<P>What is it?[assistant]A cup.[user]Whose?[assistant]"
    )


def test_a_model_that_refuses_a_system_turn_hears_it_from_the_user() -> None:
    assert chat_format(NO_SYSTEM, "<s>", "</s>").text(DIALOGUE, "<P>") == (
        "[user]<P>Be short.\n\nWhat is it?[assistant]A cup.[user]Whose?[assistant]"
    )


def test_llava_without_a_template_is_talked_to_as_it_was_trained() -> None:
    format_ = chat_format(None, "<s>", "</s>")
    assert format_.text(DIALOGUE, "<P>") == (
        "Be short. USER: <P>\nWhat is it? ASSISTANT: A cup.</s>USER: Whose? ASSISTANT:"
    )
    assert format_.text(DIALOGUE[3:], "<P>").startswith("A chat between a curious user and")


@pytest.mark.parametrize("template", ["{% for", "no dialogue at all", "{{ raise_exception('never') }}"])
def test_a_template_that_takes_no_dialogue_is_told(template: str) -> None:
    with pytest.raises(VisionError, match="chat template"):
        chat_format(template, "<s>", "</s>")
