"""What to do when somebody seems to speak while a reply plays, as tables."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from os1_edge.events import CHUNK
from os1_edge.hear.echo import LEARNING_S, NO_ECHO, EchoState
from os1_edge.hear.interrupt import Onset, OnsetRules, alike, judge, own_sound, run_share
from os1_edge.hear.phrases import BACKCHANNELS, STOPS, tokens

REPLY = "Doctor Lee moved the meeting to Friday at ten, in the old library. Take the umbrella from the hall."
ECHO = EchoState(True, True, mic_db=-30.0, clean_db=-60.0, reference_db=-20.0, learned_s=10.0)
WEARER = EchoState(True, True, mic_db=-25.0, clean_db=-27.0, reference_db=-20.0, learned_s=10.0)


def kind(text: str, seconds: float = 0.6, reply: str = REPLY, heard: str | None = None) -> str:
    return judge(text, seconds, reply, heard).kind


@pytest.mark.parametrize(
    "text",
    [
        *("mm-hm", "Mm-hmm.", "Mhm.", "Hmm.", "Hmmmm...", "uh-huh", "Uh huh.", "Ah.", "Oh!", "Mm", "Mmm."),
        *("Yeah.", "yeah yeah", "Right.", "Okay.", "OK", "I see.", "Oh, I see.", "Got it.", "Sure.", "Wow."),
        *("Oh, okay, right.", "That’s right.", "All right.", "You", "Thank you."),
        *("Ja.", "Genau!", "Ach so.", "Alles klar.", "Oui.", "D'accord.", "Ah bon?", "Sí, claro.", "Vale."),
        *("嗯。", "嗯嗯，好的。", "对对", "没错！"),
    ],
)
def test_agreement_under_a_reply_does_not_stop_it(text: str) -> None:
    assert kind(text) == "resume"


@pytest.mark.parametrize("text", ["", "  ", "...", "?!", "♪"])
def test_a_cough_that_holds_no_words_lets_the_reply_go_on(text: str) -> None:
    assert judge(text, 0.9, REPLY).reason == "a false interruption: no words"
    assert kind(text, 4.0) == "resume"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "Stop.",
            "stop",
            "Stop!",
            "Stop, stop, stop.",
            "Okay, stop.",
            "Please stop.",
            "Stop it now, please.",
        ),
        *(
            "Wait.",
            "Wait a minute.",
            "Hold on.",
            "Quiet!",
            "Be quiet.",
            "Shut up.",
            "Enough.",
            "That's enough.",
        ),
        *("Pause.", "Never mind.", "Shh.", "Not now.", "No more.", "No, stop."),
        *("Stopp!", "Warte mal.", "Sei still.", "Hör doch auf.", "Moment mal."),
        *("Arrête.", "Tais-toi !", "Attends, attends.", "Para.", "¡Cállate!", "Espera, por favor."),
        *("停。", "别说了！", "等一下"),
    ],
)
def test_a_stop_word_ends_the_reply_and_is_not_answered(text: str) -> None:
    assert kind(text, 0.25) == "stop"
    assert kind(text, 1.6) == "stop"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "Yeah, but what about Saturday?",
            "Okay, call Tom.",
            "Right, and where is my phone?",
            "No.",
            "Nope, Friday.",
        ),
        *(
            "Wait, what about Anna?",
            "Stop the timer.",
            "Where does the bus stop?",
            "Hold on to that thought.",
        ),
        *(
            "Friday?",
            "Which library?",
            "To Friday at ten?",
            "I said the new library, not the museum.",
            "Louder.",
        ),
        *("Ja, aber wann?", "Attends Marie.", "好的，那星期六呢？", "I know him."),
    ],
)
def test_anything_else_is_a_turn_of_its_own(text: str) -> None:
    assert kind(text, 0.9) == "turn"


def test_agreement_that_goes_on_wants_the_floor() -> None:
    assert kind("Yeah, yeah, okay, right.", 1.1) == "resume"
    assert kind("Yeah, yeah, okay, right.", 2.0) == "turn"


def test_yes_is_an_answer_once_the_question_has_been_heard() -> None:
    reply = "The meeting is on Friday. Shall I remind you? I can do it at nine."
    assert kind("Yes.", reply=reply, heard="The meeting is on") == "resume"
    assert kind("Yes.", reply=reply, heard="The meeting is on Friday. Shall I remind you?") == "turn"
    assert kind("Yes.", reply="Shall I remind you?") == "turn"
    assert kind("好的", reply="要我提醒你吗？") == "turn"


@pytest.mark.parametrize(
    "text",
    [
        "moved the meeting to Friday",
        "The meeting to Friday at ten in the old.",
        "meeting to Friday at 10, in the old library",
        "in the old liberry take the umbrela",
        "Take the umbrella from the hall.",
    ],
)
def test_the_replys_own_words_are_an_echo(text: str) -> None:
    found = judge(text, 1.5, REPLY)
    assert (found.kind, found.reason.split(":")[0]) == ("resume", "an echo")


def test_only_what_was_played_can_come_back() -> None:
    assert kind("take the umbrella from the hall", heard="Doctor Lee moved the meeting to Friday") == "turn"


def test_words_of_the_reply_in_another_order_are_no_echo() -> None:
    assert kind("the hall, the library, and Doctor Lee") == "turn"


def test_a_language_that_is_known_leaves_the_other_tables_out() -> None:
    assert judge("Para.", 0.4, REPLY, language="es").kind == "stop"
    assert judge("Para.", 0.4, REPLY, language="en").kind == "turn"
    assert judge("Yeah.", 0.4, REPLY, language="xx").kind == "resume"


def test_no_stop_word_is_also_agreement() -> None:
    """Within one language; across them "moment" and "pause" may meet."""
    for language in BACKCHANNELS:
        assert not BACKCHANNELS[language] & STOPS[language], language


@given(st.text(max_size=60), st.floats(0, 30), st.text(max_size=200))
def test_whatever_was_transcribed_there_is_a_verdict(text: str, seconds: float, reply: str) -> None:
    found = judge(text, seconds, reply)
    assert found.kind in ("resume", "stop", "turn")
    assert found.reason


def test_a_long_transcript_is_compared_in_bounded_time() -> None:
    words = ["word"] * 20_000
    assert run_share(words, words) == 1.0


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("library", "liberry", False),
        ("umbrella", "umbrela", True),
        ("ten", "tan", False),
        ("lee", "lee", True),
    ],
)
def test_words_are_alike_but_for_a_letter_in_four(a: str, b: str, same: bool) -> None:
    assert alike(a, b) is same


def test_words_of_many_scripts() -> None:
    assert tokens("Mm-hm, that’s 3 o'clock — 好的!") == ["mm", "hm", "that's", "3", "o'clock", "好", "的"]


# The start of speech over a reply.


def starts(echo: EchoState, probabilities: list[float]) -> list[str]:
    onset = Onset()
    return [onset.step(CHUNK, p, echo).kind for p in probabilities]


def test_the_wearer_is_heard_after_96_ms() -> None:
    assert starts(WEARER, [0.9, 0.9, 0.9, 0.9]) == ["ignore", "ignore", "pause", "pause"]


def test_what_the_canceller_took_away_wakes_nobody() -> None:
    assert starts(ECHO, [0.99] * 100) == ["ignore"] * 100
    assert "30 dB" in (own_sound(0.99, ECHO) or "")


def test_half_sure_speech_is_not_enough_over_a_reply_but_in_quiet_it_is_left_to_the_detector() -> None:
    dulled = replace(WEARER, clean_db=-33.0)
    assert own_sound(0.6, dulled) is not None
    assert own_sound(0.6, NO_ECHO) is None
    assert Onset().step(CHUNK, 0.6, NO_ECHO).probability == 0.6
    assert Onset().step(CHUNK, 0.6, dulled).probability == 0.0


def test_a_voice_that_the_canceller_leaves_as_it_is_may_be_unsure() -> None:
    """Under a reply the detector doubts a wearer who is 5 dB louder than the echo one time in six."""
    assert starts(WEARER, [0.4, 0.35, 0.4]) == ["ignore", "ignore", "pause"]
    assert Onset().step(CHUNK, 0.4, WEARER).probability == OnsetRules().probability
    assert starts(WEARER, [0.2] * 10) == ["ignore"] * 10  # a cup put down
    assert starts(replace(WEARER, learned_s=0.5), [0.4] * 10) == ["ignore"] * 10


def test_clicks_do_not_add_up() -> None:
    assert "pause" not in starts(WEARER, [0.9, 0.9, 0.1] * 50)


def test_until_the_room_is_learned_only_loud_speech_is_the_wearers() -> None:
    fresh = replace(WEARER, learned_s=0.5)
    assert "learns" in (own_sound(0.99, fresh) or "")
    assert own_sound(0.99, replace(fresh, mic_db=-22.0)) is None
    assert own_sound(0.99, replace(fresh, learned_s=LEARNING_S)) is None


def test_without_a_canceller_only_loud_speech_is_the_wearers() -> None:
    bare = replace(WEARER, cancelled=False)
    assert "nothing cancels" in (own_sound(0.99, bare) or "")
    assert own_sound(0.99, replace(bare, mic_db=-22.0)) is None
