"""Short things that people say under somebody else's speech, as Whisper writes them. Data and its lookup.

A phrase is a line of words without punctuation; Chinese ones are compared character by character.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping

Phrase = tuple[str, ...]
Table = Mapping[str, frozenset[Phrase]]

HUM = re.compile(
    r"m+|h+m+|m+h+m+|a+h+|o+h+|u+h+|u+m+|e+r+m*|a+h+a+|u+h+u+h+|h+u+h+|嗯+|哦+|啊+|噢+|mhm+|mmhmm*"
)
"""A word that is only a hum, in any language: mm, hmm, uh, ah, oh."""

_BACKCHANNELS = {
    "en": """
        yeah | yes | yep | yup | yea | ya | right | okay | ok | k | sure | alright | all right | i see
        got it | true | cool | great | good | nice | fine | wow | really | exactly | of course | indeed
        oh really | oh wow | i know | i understand | understood | that's right | that's true
        makes sense | fair enough | go on | uh huh | mm hm | mm hmm | mhm | a ha | huh uh | you
        thank you | thanks | so
    """,
    "de": """
        ja | jaja | jo | genau | okay | ok | klar | gut | stimmt | richtig | ach so | aha | verstehe
        ich verstehe | na klar | alles klar | super | schön | natürlich | mh | mhm | danke
    """,
    "fr": """
        oui | ouais | d'accord | ok | okay | bien | bien sûr | je vois | c'est vrai | exact | exactement
        voilà | ah bon | ah oui | très bien | super | merci | hein
    """,
    "es": """
        sí | si | claro | vale | ya | ya veo | bueno | bien | de acuerdo | exacto | es verdad | ajá | ok
        okay | entiendo | perfecto | gracias
    """,
    "zh": """
        嗯嗯 | 对 | 對 | 对对 | 是 | 是的 | 是啊 | 好 | 好的 | 好吧 | 明白 | 知道了 | 没错 | 沒錯
        原来如此 | 谢谢 | ok
    """,
}

_STOPS = {
    "en": """
        stop | stopp | stop it | stop that | stop talking | stop now | wait | wait a minute
        wait a second | wait a sec | hold on | hang on | hold up | hold it | quiet | be quiet | silence
        shush | sh | shh | shut up | hush | enough | that's enough | that is enough | pause | never mind
        nevermind | cancel | one moment | one second | one sec | not now | no more | forget it
    """,
    "de": """
        stopp | stop | halt | warte | warte mal | warten | moment | moment mal | einen moment | ruhe
        sei still | sei ruhig | still | leise | genug | es reicht | das reicht | pause | schluss
        aufhören | hör auf | halt an | schweig | egal | vergiss es | nicht jetzt
    """,
    "fr": """
        stop | arrête | arrêtez | attends | attendez | attends une minute | une minute | un moment
        un instant | silence | chut | tais toi | taisez vous | assez | ça suffit | c'est bon | pause
        laisse tomber | pas maintenant
    """,
    "es": """
        para | pare | basta | alto | detente | espera | espere | espera un momento | un momento
        un segundo | silencio | cállate | calla | chitón | ya basta | es suficiente | pausa | olvídalo
        ahora no | stop
    """,
    "zh": """
        停 | 停下 | 停止 | 别说了 | 別說了 | 等等 | 等一下 | 等一等 | 安静 | 安靜 | 闭嘴 | 閉嘴 | 够了
        夠了 | 暂停 | 暫停 | 算了
    """,
}

FILLERS = frozenset(
    "please now hey hi oh ok okay just no bitte doch mal por favor oye s'il te plaît non nein".split()  # noqa: SIM905
)
"""Words around a stop word that do not make it a request: "okay, stop please"."""

_CJK = re.compile(r"[\u3400-\u9fff]")
_WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+(?:['’][^\W\u3400-\u9fff]+)*")


def tokens(text: str) -> list[str]:
    """The words of ``text``: lower case, no punctuation; "mm-hm" is two, a Chinese character is one."""
    plain = unicodedata.normalize("NFKC", text).lower().replace("’", "'")
    return _WORD.findall(plain)


def _read(table: Mapping[str, str]) -> Table:
    read = {
        language: frozenset(tuple(tokens(p)) for p in re.split(r"[|\n]", lines) if p.strip())
        for language, lines in table.items()
    }
    return read | {"auto": frozenset().union(*read.values())}


BACKCHANNELS = _read(_BACKCHANNELS)
"""By language code; "auto" holds all."""

STOPS = _read(_STOPS)
"""By language code; "auto" holds all."""

LONGEST = max(len(p) for p in BACKCHANNELS["auto"] | STOPS["auto"])


def matches(
    words: list[str], at: int, table: Mapping[str, frozenset[Phrase]], language: str
) -> Iterator[Phrase]:
    """The table's phrases that ``words`` has from index ``at`` on, longest first."""
    phrases = table.get(language, table["auto"])
    for n in range(min(LONGEST, len(words) - at), 0, -1):
        if (phrase := tuple(words[at : at + n])) in phrases:
            yield phrase


def only(
    words: list[str],
    table: Mapping[str, frozenset[Phrase]],
    language: str,
    also: re.Pattern[str] | None = None,
) -> bool:
    """Whether ``words`` is nothing but phrases of the table, or words that ``also`` matches."""
    reach = {0}
    for at in range(len(words)):
        if at not in reach:
            continue
        reach |= {at + len(p) for p in matches(words, at, table, language)}
        if also is not None and also.fullmatch(words[at]):
            reach.add(at + 1)
    return bool(words) and len(words) in reach
