"""What is a command, and what only begins like one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from os1_edge.converse.commands import confirmed, recognise

COMMANDS = {
    "repeat": [
        "Repeat that.", "Can you repeat that, please?", "Say that again.", "What did you say?",
        "Sorry, what did you just say?", "I didn't catch that.", "Come again?", "One more time, please.",
        "Hey OS-1, repeat that.", "Wiederhol das bitte.", "¿Qué has dicho?", "Répète ça, s'il te plaît.",
    ],
    "stop": [
        "Stop.", "Stop it!", "Okay, stop talking now.", "Please be quiet.", "Never mind.", "Forget it.",
        "That's enough, thank you.", "Forget about it.", "Hör auf.", "Basta.", "Tais-toi.",
    ],
    "forget that": [
        "Forget that.", "Please forget what I just said.", "Forget what I told you.", "Delete that.",
        "Can you forget that, please?", "Don't remember that.", "Forget the last thing I said.",
        "Vergiss das.", "Olvida eso.", "Oublie ça.",
    ],
    "forget all": ["Forget everything.", "Forget everything you know about me.", "Forget me.", "Forget all."],
    "known": [
        "What do you know about me?", "Tell me all you know about me.", "So what do you know about me?",
        "What have you learned about me so far?", "Was weißt du über mich?", "¿Qué sabes de mí?",
        "Qu'est-ce que tu sais de moi ?",
    ],
    "mute": [
        "Mute.", "Mute the microphone.", "Stop listening.", "Please stop listening to us now.",
        "Turn off your microphone.", "Turn the mic off, please.", "Mikrofon aus.", "Deja de escuchar.",
    ],
    "online": [
        "Are you online?", "Are you offline right now?", "Do you have an internet connection?",
        "Are you connected to the internet?", "Bist du online?", "¿Estás en línea?", "Tu es en ligne ?",
    ],
    "undo": ["Undo.", "Undo that, please.", "Bring it back.", "Annule ça."],
    "remember": [
        "Remember that the spare key is under the blue pot.", "Please remember that I park on level three.",
        "Remember I am allergic to nuts.", "Keep in mind that my sister visits on Friday.",
        "Make a note that the meeting moved to Tuesday.", "Merk dir, dass ich keine Nüsse esse.",
    ],
}  # fmt: skip

TALK = [
    "Stop at the shop on the way home.", "I want to stop smoking.", "The bus stop is over there.",
    "Don't forget that I have an exam tomorrow.", "I forgot that it was her birthday.",
    "I can't forget what he said.", "Did you forget that I like tea?", "I keep forgetting my keys.",
    "Never forget that.", "Let's forget about her.", "Forget about him, he is not worth it to anybody.",
    "Forget what he said about the last hour of the film.", "I spent the last hour in the kitchen.",
    "Repeat after me, one two three.", "What did you say about the exam?", "History repeats itself.",
    "What do you know about Mexico?", "What do you know about my sister?", "Who knows about me?",
    "Remember when we went to Paris?", "Remember that time we got lost?", "Do you remember that film?",
    "I remember that I left it there.", "Remember me to your mother.", "Remember that?",
    "Remember the day we met.", "Is my sister online?", "Are you online shopping again?",
    "I was online all day.", "Mute the television.", "I saw a mute swan.", "They stopped listening to me.",
    "How do I undo the last change?", "Wait for me at the station.", "Enough about work.",
    "He told me to shut up.", "Quiet places are hard to find.", "Say hello to Tom again.",
    "Forget everything the teacher said about it, it was wrong.", "Hold on to the rail.", "", "Please.",
    "Forget about the last 500 weeks.", "Can you stop by the bakery?", "Don't stop.", "I said stop it.",
    "Forget everything about it.", "Para mi hermana compré un libro.",
]  # fmt: skip


@pytest.mark.parametrize(("kind", "heard"), [(k, h) for k, hs in COMMANDS.items() for h in hs])
def test_a_command_is_understood_however_it_is_put(kind: str, heard: str) -> None:
    command = recognise(heard)
    assert command is not None, heard
    assert command.kind == kind


@pytest.mark.parametrize("heard", TALK)
def test_what_only_begins_like_a_command_is_talk(heard: str) -> None:
    assert recognise(heard) is None


@pytest.mark.parametrize(
    ("heard", "span"),
    [
        ("Forget the last hour.", timedelta(hours=1)),
        ("Please forget the last ten minutes.", timedelta(minutes=10)),
        ("Forget everything from the last two hours.", timedelta(hours=2)),
        ("Forget everything I said in the past half hour", timedelta(minutes=30)),
        ("Forget the last 90 minutes", timedelta(minutes=90)),
        ("Forget what we talked about in the last two hours", timedelta(hours=2)),
        ("Delete the last week.", timedelta(days=7)),
        ("Forget what happened today.", None),
        ("Vergiss die letzte Stunde.", timedelta(hours=1)),
        ("Olvida la última hora.", timedelta(hours=1)),
        ("Oublie la dernière heure.", timedelta(hours=1)),
    ],
)
def test_a_span_to_forget_is_read(heard: str, span: timedelta | None) -> None:
    command = recognise(heard)
    assert command is not None
    assert (command.kind, command.span) == ("forget since", span)


@pytest.mark.parametrize(
    ("heard", "what"),
    [
        ("Forget everything about my ex-wife.", "my ex-wife"),
        ("Please forget everything you know about Tom.", "Tom"),
        ("Forget about the surprise party.", "the surprise party"),
        ("Delete everything I told you about the money.", "the money"),
        ("Vergiss alles über Peter.", "Peter"),
    ],
)
def test_what_is_to_be_forgotten_is_named(heard: str, what: str) -> None:
    command = recognise(heard)
    assert command is not None
    assert (command.kind, command.what) == ("forget about", what)


def test_only_a_plain_yes_confirms() -> None:
    for yes in ("Yes.", "Yes, please.", "Yes, do it.", "Sure", "Ja.", "Sí.", "Oui", "Yeah, go ahead!"):
        assert confirmed(yes), yes
    for other in ("No.", "Yes, I like tea.", "Yesterday.", "Maybe", "", "No, yes", "What?", "Please."):
        assert not confirmed(other), other
