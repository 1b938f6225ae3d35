"""What a reply may not do: invent a memory, interrogate, describe the picture, endanger anybody."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from os1_edge.converse import balance, persona, plainly, safety
from os1_edge.converse.claims import unfounded
from os1_edge.converse.editing import Editor, Limits, cleaned
from os1_edge.converse.guard import paints
from os1_edge.converse.language import instruction, language_of
from os1_edge.converse.texts import TEXTS, text
from os1_edge.remember.rows import ProfileEntry
from os1_edge.tomlfile import BadFile

NOW = datetime(2026, 3, 2, 10)


def line(words: str, kind: str = "health", confidence: float = 0.8) -> ProfileEntry:
    return ProfileEntry(1, kind, words, confidence, NOW, "t1")


def edited(editor: Editor, *clauses: str) -> list[str]:
    """What is spoken of ``clauses``."""
    out = []
    for clause in clauses:
        edit = editor.take(clause)
        if edit.kind == "say":
            out.append(edit.text)
        elif edit.kind in ("end", "wrong"):
            break
    return [*out, *([last] if (last := editor.last()) else [])]


# Danger.


@pytest.mark.parametrize(
    "heard",
    [
        "I want to kill myself.", "Sometimes I just want to die.", "I wish I was dead.",
        "They would be better off without me.", "I don't want to live any more.", "I feel suicidal.",
        "I have been thinking about suicide.", "I want to hurt myself again.", "I have nothing to live for.",
        "Ich will nicht mehr leben.", "Quiero morir.", "Je veux mourir.",
    ],
)  # fmt: skip
def test_who_may_be_in_danger_is_cared_for_without_a_model(heard: str) -> None:
    minded = safety.care(heard, "en")
    assert "glad you told me" in minded.fixed
    assert not any(letter.isdigit() for letter in minded.fixed), "no number that may be wrong where they are"
    own = safety.care(heard, "en", "Call 0800 111 0 111, day and night.")
    assert own.fixed.endswith("Call 0800 111 0 111, day and night.")


@pytest.mark.parametrize(
    "heard",
    [
        "This heat is killing me.", "I am dying to see that film.", "My phone died.", "I cut myself shaving.",
        "The song says I want to die.", "We killed some time at the airport.", "I could die laughing.",
        "I want to dye my hair.", "My grandfather died last year.", "Take my life story, it is long.",
    ],
)  # fmt: skip
def test_an_idiom_is_no_crisis(heard: str) -> None:
    assert safety.danger(heard) != "crisis"


def test_an_emergency_is_sent_to_the_emergency_number() -> None:
    for heard in ("I think my dad is having a heart attack.", "She can't breathe.", "I took too many pills."):
        assert "emergency number" in safety.care(heard).fixed, heard
    assert safety.danger("My grandmother had a stroke two years ago.") is None


def test_medical_and_legal_questions_are_answered_with_care() -> None:
    asked = safety.care("How many ibuprofen can I take?")
    assert "no dose" in asked.instruction
    assert edited(Editor("", "", closing=asked.closing), "Follow the leaflet.")[-1] == asked.closing
    sent_on = edited(Editor("", "", closing=asked.closing), "Your pharmacist can tell you.")
    assert sent_on == ["Your pharmacist can tell you."], "who was sent to somebody is not sent twice"
    assert "lawyer" in safety.care("Can my landlord evict me?").closing
    for other in ("I took a pill this morning.", "What is the capital of France?", "We met in court."):
        assert safety.care(other) == safety.Care(), other


def test_a_dose_that_nobody_told_is_not_spoken() -> None:
    editor = Editor("How much ibuprofen may I take?", "The wearer asks: How much ibuprofen may I take?")
    assert editor.take("Take 800 mg every hour.").kind == "wrong"
    told = Editor("What did the doctor say?", "Fact: The doctor said you take 400 mg of ibuprofen")
    assert told.take("Take 400 mg of ibuprofen.").kind == "say"


# What must be minded.


def test_an_allergy_is_minded_when_food_is_only_in_view() -> None:
    profile = [line("The wearer is allergic to peanuts."), line("The wearer likes jazz.", "preference")]
    assert safety.must_mind("What a day.", "A plate and a bottle on a table.", profile) == (
        "The wearer is allergic to peanuts.",
    )
    assert safety.must_mind("What a day.", "A chair and a lamp.", profile) == ()


def test_what_the_wearer_never_does_is_minded_where_it_is_spoken_of() -> None:
    profile = [line("The wearer never drives on the motorway.", "habit"),
               line("The wearer does not eat pork.", "preference"),
               line("The wearer is allergic to cats.")]  # fmt: skip
    assert safety.must_mind("Shall we take the motorway?", "", profile) == (profile[0].text,)
    assert profile[1].text in safety.must_mind("What should I order for dinner?", "", profile)
    assert safety.must_mind("Who is that?", "A cat on a chair.", profile) == (profile[2].text,)


@pytest.mark.parametrize(
    ("mind", "clause"),
    [
        ("The wearer is allergic to peanuts.", "Have a peanut cookie."),
        ("The wearer never eats pork.", "Try the roast pork."),
        ("The wearer is vegan.", "A cheese omelette would be lovely."),
        ("The wearer is lactose intolerant.", "How about a glass of milk."),
        ("The wearer does not drink alcohol.", "Some alcohol may help."),
    ],
)
def test_what_the_wearer_must_not_have_is_never_offered(mind: str, clause: str) -> None:
    assert Editor("I am hungry.", mind, mind=(mind,)).take(clause).kind == "wrong"
    warned = f"Avoid it: {clause}"
    assert Editor("I am hungry.", mind, mind=(mind,)).take(warned).kind == "say"
    assert Editor("I am hungry.", mind, mind=()).take(clause).kind == "say"


# Memory.


@pytest.mark.parametrize(
    ("sentence", "evidence"),
    [
        ("You told me that you love Paris.", "Fact from Monday: Your dog is called Rex"),
        ("Last week you went to the dentist.", "The wearer asks: What do I like?"),
        ("I remember your trip to the mountains.", ""),
        ("As you said, the meeting is at 5.", "Fact: Your meeting is at 4"),
        ("We talked about your divorce.", "I like tea"),
        ("You bought a new car three weeks ago.", "I like tea"),
        ("I remember when you fell in love with Anna.", "you fell in love"),
    ],
)
def test_a_memory_that_never_was_is_not_spoken(sentence: str, evidence: str) -> None:
    assert unfounded(sentence, evidence)
    assert Editor("What do you know?", evidence).take(sentence).kind == "wrong"


@pytest.mark.parametrize(
    ("sentence", "evidence"),
    [
        ("You told me your dog is called Rex.", "Fact from Monday: Your dog is called Rex"),
        ("Last week you went to the dentist.", "Fact from Friday: You went to the dentist"),
        ("As you said, the meeting is at 4.", "Fact: Your meeting is at 4"),
        ("Tea helps many people to sleep.", ""),
        ("I will remember that.", ""),
    ],
)
def test_a_memory_that_the_prompt_holds_is_spoken(sentence: str, evidence: str) -> None:
    assert unfounded(sentence, evidence) is None


@pytest.mark.parametrize(
    ("sentence", "evidence"),
    [
        ("You love mango.", "I am hungry."),
        ("Your sister Anna will be there.", "My sister is coming."),
        ("How about calling your sister Anna?", "I feel alone."),
        ("I know that you love skiing.", "Hello."),
        ("You used to play the violin.", "I am bored."),
        ("Your dog will cheer you up.", "I am sad."),
        ("You live in Paris.", "I am going home."),
        ("You have a brother, don't you?", "I feel alone."),
        ("You visited Rome and loved it.", "I booked a holiday."),
        ("You are allergic to nuts.", "Fact: You are allergic to mango\nCan I eat this?"),
    ],
)
def test_the_wearers_life_is_not_made_up_without_a_word_of_remembering(sentence: str, evidence: str) -> None:
    heard = evidence.splitlines()[-1]
    assert unfounded(sentence, evidence, heard)
    assert Editor(heard, evidence).take(sentence).kind == "wrong"


@pytest.mark.parametrize(
    ("sentence", "heard"),
    [
        ("I know that you love tea.", "I love tea."),
        ("Would you like some tea?", "I am tired."),
        ("If you like jazz, put it on.", "I am bored."),
        ("I hope you enjoy the film.", "I am going out."),
        ("You could call your sister.", "I feel alone."),
        ("As you like.", "I will go now."),
        ("Your mother will be fine.", "I worry about my mum."),
        ("You would love Lisbon.", "I want to travel."),
        ("You have a big heart.", "I gave him my coat."),
        ("You did so well!", "I passed the exam."),
        ("Your friends are lucky to have you.", "I cooked for all of them."),
    ],
)
def test_kind_words_and_advice_are_no_false_memories(sentence: str, heard: str) -> None:
    assert unfounded(sentence, heard, heard) is None


def test_where_a_thing_of_the_wearers_is_is_not_made_up() -> None:
    heard = "Where is the spare key?"
    assert Editor(heard, heard).take("The spare key is in your backpack.").kind == "wrong"
    told = f"Fact from Monday: The spare key is in your backpack\n{heard}"
    assert Editor(heard, told).take("The spare key is in your backpack.").kind == "say"
    asked = "What can I do in the evening?"
    assert Editor(asked, asked).take("You could read your favourite book.").kind == "say"


@pytest.mark.parametrize(
    ("heard", "clause"),
    [
        ("Ich habe morgen eine Prüfung.", "Ich habe morgen eine Prüfung."),
        ("I have an exam tomorrow.", "I am so excited to have an exam."),
        ("I love peanuts.", "I love peanuts too."),
    ],
)
def test_the_wearers_matter_is_not_made_its_own(heard: str, clause: str) -> None:
    assert Editor(heard, heard).take(clause).kind == "wrong"


@pytest.mark.parametrize(
    ("heard", "clause"),
    [
        ("I have an exam tomorrow.", "I hope the exam goes well."),
        ("I lost my job.", "I am so sorry about the job."),
        ("Is the bus late?", "Yes, the bus is late."),
        ("I love peanuts.", "I know that you love peanuts."),
    ],
)
def test_sympathy_may_use_the_wearers_words(heard: str, clause: str) -> None:
    assert Editor(heard, heard).take(clause).kind == "say"


def test_what_was_only_asked_is_not_remembered() -> None:
    for heard, clause in (("What did I tell you about Paris?", "You told me about Paris."),
                          ("Tell me a story.", "I told you a story.")):  # fmt: skip
        assert Editor(heard, f"The wearer asks: {heard}").take(clause).kind == "wrong"
    heard = "Where does my sister Anna live?"
    told = f"Fact from Monday: Your sister lives in Rome\nThe wearer asks: {heard}"
    assert Editor(heard, told).take("You told me that your sister Anna lives in Rome.").kind == "say"


def test_it_does_not_say_that_it_is_human_or_has_the_wearers_allergy() -> None:
    assert Editor("Are you alive?", "").take("I am a human.").kind == "wrong"
    mind = ("The wearer is allergic to mango.",)
    assert Editor("Can I eat it?", "", mind=mind).take("I am allergic to mango.").kind == "wrong"


@pytest.mark.parametrize(
    ("heard", "said"),
    [
        ("What time is it?", "It is 10 in the morning."),
        ("Wie spät ist es?", "Es ist 10:00."),
        ("What day is it today?", "It is Monday, 2 March."),
        ("Are you a human?", plainly.text("who am i", name="OS-1")),
        ("My name is Peter.", "Nice to meet you, Peter."),
        ("Who is Anna?", "I do not know that yet."),
    ],
)
def test_what_needs_no_model_is_not_left_to_one(heard: str, said: str) -> None:
    assert plainly.answer(heard, NOW, "OS-1", "", language_of(heard)) == said


def test_what_only_sounds_plain_is_left_to_the_model() -> None:
    for heard in ("What time is the exam?", "What day was my birthday?", "Who is Marie Curie?", "Who is he?",
                  "What are you doing?", "Are you a good cook?"):  # fmt: skip
        assert plainly.answer(heard, NOW, "OS-1", "") is None, heard
    assert plainly.answer("Who is Anna?", NOW, "OS-1", "Fact: Your sister is called Anna") is None


def test_a_claim_cut_over_two_clauses_is_still_one() -> None:
    editor = Editor("Hello.", "The wearer says: Hello.")
    assert editor.take("You told me,").kind == "say"
    assert editor.take("that you love skiing in Norway.").kind == "wrong"


# Length, questions, picture, emoji.


def test_two_sentences_are_a_reply() -> None:
    editor = Editor("I saw a fox.", "")
    said = edited(editor, "Once there was a fox.", "It was old,", "and wise.", "It had a den.")
    assert said == ["Once there was a fox.", "It was old,", "and wise."]
    longer = Editor("I saw a fox.", "", limits=Limits(sentences=3))
    assert len(edited(longer, "One.", "Two.", "Three.", "Four.")) == 3
    asked_for = Editor("Tell me a story.", "")
    assert len(edited(asked_for, *(f"Number {n}." for n in range(9)))) == 9


def test_a_wearer_who_wants_few_questions_is_not_interrogated() -> None:
    few = Limits(questions=balance.SHARES["few"])
    asked: list[bool] = []
    for _ in range(10):
        editor = Editor("I had a walk.", "", limits=few, asked=asked)
        said = edited(editor, "That sounds good.", "Where did you go?")
        asked.append(balance.asks(said[-1]))
        assert said[0] == "That sounds good."
    assert asked == [True, False, False, False, False, True, False, False, False, False]


def test_who_wants_no_questions_hears_none_unless_they_ask_for_them() -> None:
    none = Limits(questions=0.0)
    assert edited(Editor("I had a walk.", "", limits=none), "Good.", "Where?") == ["Good."]
    assert edited(Editor("Quiz me.", "", limits=none), "What is two plus two?") == ["What is two plus two?"]


def test_a_reply_that_is_only_a_question_answers_something_but_not_twice() -> None:
    few = Limits(questions=0.2)
    assert edited(Editor("You know what?", "", limits=few, asked=[True, False]), "What?") == ["What?"]
    assert edited(Editor("You know what?", "", limits=few, asked=[True]), "What?") == []


def test_no_emoji_and_no_stage_direction_is_spoken() -> None:
    assert cleaned("That is great! 😊🎉 *smiles*") == "That is great!"
    assert cleaned("I ❤️ it :)") == "I it"
    assert Editor("", "").take("😊").kind == "leave off"
    assert cleaned("It is 3:30, (more or less) fine.") == "It is 3:30, (more or less) fine."


def test_the_picture_is_not_described_for_its_own_sake() -> None:
    scene = "A laptop and a book on a desk."
    assert (
        Editor("I am tired.", "", scene=scene).take("I see a laptop and a book on the desk.").kind
        == "leave off"
    )
    asked = Editor("What do you see?", "", scene=scene)
    assert asked.take("I see a laptop and a book on the desk.").kind == "say"
    of_use = Editor("I am bored.", "", scene=scene).take("Why not open the book and read a page of it.")
    assert of_use.kind == "say"
    assert paints("The picture shows a garden.", "")
    assert not paints("I see what you mean.", scene)


# Personas and languages.


@pytest.mark.parametrize("name", persona.names())
def test_every_persona_that_comes_along_can_be_chosen(name: str) -> None:
    who = persona.load(name)
    assert who.name in who.text
    assert "{" not in who.text


def test_a_wearers_own_persona_is_read(tmp_path: Path) -> None:
    own = tmp_path / "me.md"
    own.write_text("---\nname: Ada\nquestions: 0.5\nlength: 1\n---\nYou are {name}, a friend of few words.\n")
    assert persona.load(str(own)) == persona.Persona("Ada", "", 1, 0.5, "You are Ada, a friend of few words.")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("You are nobody.", "header"),
        ("---\nname: A\nlength: 99\n---\nYou are a friend of mine.", "length"),
        ("---\nname: A\nquestions: often\n---\nYou are a friend of mine.", "questions"),
        ("---\nname: A\nmood: x\n---\nYou are a friend of mine.", ":3: expected name"),
        ("---\ntone: A\n---\nYou are a friend of mine.", "lacks a name"),
        ("---\nname: A\n---\nhi", "characters"),
        ("---\nname: A\n---\n" + "x" * 2000, "characters"),
    ],
)
def test_a_persona_that_is_not_right_says_what_to_change(words: str, told: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.md"
    bad.write_text(words)
    with pytest.raises(BadFile, match=told):
        persona.load(str(bad))


def test_a_persona_that_does_not_exist_names_those_that_do() -> None:
    with pytest.raises(BadFile, match="companion, listener, lively, plain"):
        persona.load("nobody")


def test_the_language_follows_the_wearer() -> None:
    spoken = "en"
    said = {"Ich habe morgen eine Prüfung.": "de", "Ja.": "de", "What is the time?": "en",
            "Tengo un examen mañana.": "es", "J'ai un examen demain.": "fr", "OK": "fr"}  # fmt: skip
    for heard, code in said.items():
        spoken = language_of(heard, spoken)
        assert spoken == code, heard
    assert instruction("de") == "Answer in German."
    assert instruction("en") == ""


def test_every_fixed_line_speaks_all_four_languages_with_the_same_slots() -> None:
    for name, lines in TEXTS.items():
        assert set(lines) == {"en", "de", "es", "fr"}, name
        slots = {
            tuple(sorted(part.split("}")[0] for part in words.split("{")[1:])) for words in lines.values()
        }
        assert len(slots) == 1, name
    assert text("noted", "xx") == text("noted", "en")
