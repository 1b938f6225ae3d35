"""Which language the wearer speaks, by its smallest words. Pure.

A reply is asked for in the wearer's language, and what is said without a model is said in it. Only languages
with fixed lines (``texts``) are told apart; whatever else is spoken, the fixed lines are English.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

LANGUAGES = ("en", "de", "es", "fr")

NAMES: Mapping[str, str] = {
    "de": "German", "es": "Spanish", "fr": "French", "it": "Italian", "nl": "Dutch", "pl": "Polish",
    "pt": "Portuguese", "sv": "Swedish", "tr": "Turkish", "ru": "Russian", "ja": "Japanese",
    "ko": "Korean", "zh": "Chinese",
}  # fmt: skip
"""As the prompt names them; English is what it is written in."""

_WORDS: Mapping[str, frozenset[str]] = {
    "en": frozenset(
        """the a an and is are was were i you he she it we they my your of to in on at that this what
        where when who how do does did have has not with for be am me about know i'm don't can""".split()  # noqa: SIM905
    ),
    "de": frozenset(
        """der die das ein eine einen und ist sind war ich du er sie es wir ihr mein meine meinen dein nicht
        mit für auf von zu was wo wann wer wie hast habe hat bin bist kannst heute morgen mir mich dich
        über weißt vergiss das""".split()  # noqa: SIM905
    ),
    "es": frozenset(
        """el la los las un una y es son era yo tú él ella nosotros mi mis tu no con para de que qué
        dónde cuándo quién cómo tengo tiene estoy estás puedes hoy mañana me te en por está muy sabes
        sobre olvida""".split()  # noqa: SIM905
    ),
    "fr": frozenset(
        """le la les un une et est sont était je tu il elle nous vous mon ma mes ton ta pas avec pour de
        que qu'est-ce où quand qui comment j'ai ai as a suis es peux aujourd'hui demain me te en dans
        c'est sais sur oublie des du""".split()  # noqa: SIM905
    ),
}

LEAST = 2
"""Small words of a language that tell it: one may be a name or a title."""


def language_of(text: str, before: str = "en") -> str:
    """The code of the language ``text`` is in; ``before``, the one spoken so far, where it does not tell."""
    words = re.findall(r"[^\W\d_]+(?:['’-][^\W\d_]+)*", text.lower().replace("’", "'"))
    counts = {code: sum(word in small for word in words) for code, small in _WORDS.items()}
    best = max(counts.values())
    first = [code for code in LANGUAGES if counts[code] == best]
    if best < LEAST or (len(first) > 1 and before in first):
        return before
    return first[0] if len(first) == 1 else before


def instruction(language: str) -> str:
    """What the prompt asks for where the wearer does not speak English; empty where they do."""
    return f"Answer in {NAMES[language]}." if language in NAMES else ""
