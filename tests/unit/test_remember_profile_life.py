"""What the wearer says of themselves over time: what is learned, what is over, what teaches nothing."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import numpy as np
import pytest

from os1_edge.remember.edit import edit
from os1_edge.remember.memory import Memory
from os1_edge.remember.profile import Candidate, refused
from os1_edge.remember.schema import DIMENSIONS
from os1_edge.remember.store import Store, Vector

NOON = datetime(2026, 3, 2, 12)


class Apart:
    """An embedder to which no two texts are alike."""

    def one(self, text: str) -> Vector:
        vector = np.random.default_rng(zlib.crc32(text.encode())).normal(size=DIMENSIONS)
        return (vector / np.linalg.norm(vector)).astype(np.float32)

    def embed(self, texts: Sequence[str]) -> Vector:
        return np.array([self.one(text) for text in texts], np.float32).reshape(-1, DIMENSIONS)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    found = Memory(Store(tmp_path_factory.mktemp("life") / "memory.db", bytes(32)), Apart())  # type: ignore[arg-type]
    found.store.rows("PRAGMA synchronous = OFF")  # no power is lost here, and the disk is slow
    yield found
    found.close()


@pytest.fixture
def memory(opened: Memory) -> Memory:
    """An empty memory; one file for all, as making one takes longer than most tests."""
    with opened.store.transaction() as db:
        db.execute("UPDATE profile SET superseded_by = NULL")
        for table in ("profile", "jobs", "turns", "items"):
            db.execute(f"DELETE FROM {table}")
    return opened


def tell(memory: Memory, *said: str, speaker: str = "wearer") -> None:
    async def talk() -> None:
        count = memory.store.rows("SELECT count(*) FROM turns")[0][0]
        for number, heard in enumerate(said, count + 1):
            time = NOON + timedelta(minutes=number)
            await memory.keep_turn(f"t{number:04d}", 0, time, heard, "Noted.", "kitchen", speaker)

    asyncio.run(talk())


def lines(memory: Memory, *, over: bool = False) -> list[str]:
    entries = [e for e in memory.store.profile_history() if (e.valid_to is not None) == over]
    return [e.text.removeprefix("The wearer ").removesuffix(".") for e in entries]


LEARNED = (
    # (said, kind, what is known then)
    ("I'm allergic to peanuts.", "health", "is allergic to peanuts"),
    ("I have a peanut allergy.", "health", "is allergic to peanuts"),
    ("I have a bad milk allergy", "health", "is allergic to milk"),
    ("I have asthma.", "health", "has asthma"),
    ("I became vegetarian last year.", "health", "is vegetarian"),
    ("I'm lactose intolerant, unfortunately.", "health", "is lactose intolerant"),
    ("I am not allergic to cats.", "health", "is not allergic to cats"),
    ("I really love jazz!", "preference", "likes jazz"),
    ("I'm a big fan of Bach.", "preference", "likes Bach"),
    ("I'm not into football.", "preference", "does not like football"),
    ("I can't stand loud music.", "preference", "does not like loud music"),
    ("I prefer tea to coffee.", "preference", "prefers tea to coffee"),
    ("My favourite colour is blue.", "preference", "has blue as favourite colour"),
    ("I don't eat pork.", "preference", "does not eat pork"),
    ("I gave up drinking coffee.", "preference", "does not drink coffee"),
    ("I really don't like my boss.", "preference", "does not like their boss"),
    ("I drink coffee every morning.", "habit", "drinks coffee every morning"),
    ("I usually walk to work.", "habit", "usually walks to work"),
    ("I go running every Sunday.", "habit", "goes running every Sunday"),
    ("I study French three times a week.", "habit", "studies French three times a week"),
    ("I never smoke.", "habit", "does not smoke"),
    ("I'm a night owl.", "personality", "is a night owl"),
    ("I am quite shy.", "personality", "is shy"),
    ("I'm terrified of spiders.", "personality", "is afraid of spiders"),
    ("My name is Ada.", "social background", "is called Ada"),
    ("Call me Ada, please.", "social background", "is called Ada"),
    ("I work as a nurse.", "social background", "works as a nurse"),
    ("I'm a software engineer.", "social background", "works as a software engineer"),
    ("I live in Oslo these days.", "social background", "lives in Oslo"),
    ("We just moved to Bergen.", "social background", "lives in Bergen"),
    ("I moved from Oslo to Bergen two months ago.", "social background", "lives in Bergen"),
    ("I'm from Norway.", "social background", "comes from Norway"),
    ("I'm 34 years old.", "social background", "is 34 years old"),
    ("My birthday is on the fourth of May.", "social background", "has a birthday on the fourth of May"),
    ("I'm married to Tom.", "social background", "is married to Tom"),
    ("I have two cats.", "social background", "has two cats"),
    ("I speak English and Norwegian.", "social background", "speaks English and Norwegian"),
    ("My sister is allergic to nuts.", "social background", "has a sister who is allergic to nuts"),
    ("My sister Anna lives in Paris.", "social background", "has a sister called Anna who lives in Paris"),
    ("My brother is a teacher.", "social background", "has a brother who is a teacher"),
    ("My dog is called Rex.", "social background", "has a dog called Rex"),
    ("My dog Rex died.", "social background", "has lost their dog Rex"),
    ("Well, you know, I live in Oslo.", "social background", "lives in Oslo"),
)


@pytest.mark.parametrize(("said", "kind", "known"), LEARNED)
def test_it_is_learned(said: str, kind: str, known: str, memory: Memory) -> None:
    tell(memory, said)
    assert [(e.kind, e.text) for e in memory.store.profile()] == [(kind, f"The wearer {known}.")]
    (entry,) = memory.store.profile()
    assert [source.quote for source in memory.store.sources(entry.id)] == [said]


ENDED = (
    # (said before, said now, what is over, what is known then)
    ("I live in Oslo.", "I moved to Bergen.", "lives in Oslo", "lives in Bergen"),
    ("I live in Oslo.", "I live in Bergen now.", "lives in Oslo", "lives in Bergen"),
    ("I live in Oslo.", "I don't live in Oslo anymore.", "lives in Oslo", "does not live in Oslo"),
    ("I live in Oslo.", "I moved out last week.", "lives in Oslo", None),
    ("I work as a nurse.", "I work as a teacher now.", "works as a nurse", "works as a teacher"),
    ("I work at the harbour.", "I got a new job at the airport.", "works at the harbour",
     "works at the airport"),
    ("I work as a nurse.", "I just started working at a school.", "works as a nurse", "works at a school"),
    ("I work at the harbour.", "I no longer work at the harbour.", "works at the harbour",
     "does not work at the harbour"),
    ("I work at the harbour.", "I quit my job today.", "works at the harbour", None),
    ("I'm a nurse.", "I was laid off.", "works as a nurse", None),
    ("I work as a nurse.", "I'm retired now.", "works as a nurse", "is retired"),
    ("I'm unemployed.", "I work for the city.", "is unemployed", "works for the city"),
    ("I drink coffee every morning.", "I no longer drink coffee.", "drinks coffee every morning",
     "does not drink coffee"),
    ("I like coffee.", "I no longer drink coffee.", "likes coffee", "does not drink coffee"),
    ("I don't drink coffee.", "I drink coffee every day.", "does not drink coffee",
     "drinks coffee every day"),
    ("I smoke.", "I quit smoking.", "smokes", "does not smoke"),
    ("I'm vegetarian.", "I'm not vegetarian anymore.", "is vegetarian", "is not vegetarian"),
    ("I am vegan.", "I eat meat every day.", "is vegan", "eats meat every day"),
    ("I'm allergic to cats.", "I am no longer allergic to cats.", "is allergic to cats",
     "is not allergic to cats"),
    ("I have asthma.", "I no longer have asthma.", "has asthma", "does not have asthma"),
    ("I love jazz.", "I hate jazz.", "likes jazz", "does not like jazz"),
    ("I prefer tea to coffee.", "I prefer coffee to tea.", "prefers tea to coffee", "prefers coffee to tea"),
    ("My favourite colour is blue.", "My favourite colour is red.", "has blue as favourite colour",
     "has red as favourite colour"),
    ("I'm dating Tom.", "I broke up with Tom.", "is dating Tom", "is no longer with Tom"),
    ("My girlfriend is called Eva.", "Eva and I broke up.", "has a girlfriend called Eva",
     "is no longer with Eva"),
    ("I'm married to Tom.", "I got divorced.", "is married to Tom", "is divorced"),
    ("I'm single.", "I'm dating Tom.", "is single", "is dating Tom"),
    ("I'm dating Tom.", "I'm married to Tom.", "is dating Tom", "is married to Tom"),
    ("My name is Ada.", "I changed my name to Eve.", "is called Ada", "is called Eve"),
    ("I'm 34.", "I'm 35 years old.", "is 34 years old", "is 35 years old"),
    ("I have a dog called Rex.", "My dog Rex died.", "has a dog called Rex", "has lost their dog Rex"),
    ("I have two cats.", "I no longer have any cats.", "has two cats", "does not have any cats"),
    ("I have two cats.", "I have three cats.", "has two cats", "has three cats"),
    ("My sister Anna lives in Paris.", "My sister Anna lives in Rome.",
     "has a sister called Anna who lives in Paris", "has a sister called Anna who lives in Rome"),
    ("I'm afraid of dogs.", "I'm no longer afraid of dogs.", "is afraid of dogs", "is not afraid of dogs"),
    ("My sister is called Emma.", "My sister is called Anna, not Emma.", "has a sister called Emma",
     "has a sister called Anna"),
    ("My sister is called Emma.", "My sister is called Anna not Emma", "has a sister called Emma",
     "has a sister called Anna"),
    ("My sister is called Emma.", "No, my sister is called Anna.", "has a sister called Emma",
     "has a sister called Anna"),
    ("My sister is called Emma.", "My sister isn't called Emma.", "has a sister called Emma", None),
    ("My name is Ada.", "My name is Eve, not Ada.", "is called Ada", "is called Eve"),
    ("My name is Ada.", "I'm not called Ada.", "is called Ada", None),
    ("My brother is a teacher.", "My brother is not a teacher.", "has a brother who is a teacher",
     "has a brother who is not a teacher"),
    ("I work for Google.", "I left Google a year ago and now I work for Apple.", "works for Google",
     "works for Apple"),
    ("I work as a nurse.", "I'm a teacher, not a nurse.", "works as a nurse", "works as a teacher"),
    ("I'm allergic to peanuts.", "I'm not allergic any more.", "is allergic to peanuts", None),
    ("I'm allergic to peanuts.", "I'm not allergic to anything anymore.", "is allergic to peanuts",
     "has no allergies"),
    ("I have no allergies.", "I'm allergic to cats.", "has no allergies", "is allergic to cats"),
    ("I'm allergic to peanuts.", "I outgrew my peanut allergy.", "is allergic to peanuts",
     "is not allergic to peanuts"),
    ("I'm allergic to peanuts.", "I'm not allergic to peanuts after all.", "is allergic to peanuts",
     "is not allergic to peanuts"),
    ("I drink coffee every morning.", "I gave up coffee.", "drinks coffee every morning",
     "does not drink coffee"),
    ("I drink coffee every morning.", "I've quit coffee last month.", "drinks coffee every morning",
     "does not drink coffee"),
    ("I drink coffee every morning.", "I'm off coffee now.", "drinks coffee every morning",
     "does not drink coffee"),
    ("I drink coffee every morning.", "I switched from coffee to tea.", "drinks coffee every morning",
     "does not drink coffee"),
    ("I live in Oslo.", "I've moved back to Bergen.", "lives in Oslo", "lives in Bergen"),
    ("I live in Oslo.", "We relocated to Bergen last month.", "lives in Oslo", "lives in Bergen"),
    ("I live with Anna.", "I moved in with Tom.", "lives with Anna", "lives with Tom"),
    ("I live with Anna.", "I live alone now.", "lives with Anna", "lives alone"),
    ("I live alone.", "I live with Anna now.", "lives alone", "lives with Anna"),
    ("I work as a nurse.", "I'm not a nurse anymore.", "works as a nurse", "does not work as a nurse"),
    ("I work as a nurse.", "I changed jobs, I'm a teacher now.", "works as a nurse", "works as a teacher"),
    ("I work at Google.", "I left Google.", "works at Google", None),
    ("I'm a student.", "I graduated last summer!", "works as a student", None),
    ("I study biology.", "I no longer study biology.", "studies biology", None),
    ("I'm married to Tom.", "I'm not married anymore.", "is married to Tom", "is not married"),
    ("I'm 34.", "I turned 35 yesterday.", "is 34 years old", "is 35 years old"),
    ("I run every morning.", "I don't run anymore.", "runs every morning", None),
    ("I go running every Sunday.", "I stopped running.", "goes running every Sunday", None),
    ("I play the piano every day.", "I gave up playing the piano.", "plays the piano every day", None),
    ("I usually walk to work.", "I don't walk to work anymore.", "usually walks to work", None),
    ("I usually walk to work.", "I usually drive to work now.", "usually walks to work",
     "usually drives to work"),
    ("My dog is called Rex.", "My dog died.", "has a dog called Rex", "has lost their dog"),
    ("My dog is called Rex.", "We gave Rex away.", "has a dog called Rex", None),
    ("We have a dog called Rex.", "We've just given our dog away to a farmer.", "has a dog called Rex", None),
    ("I have a cat named Tom.", "I had to give away my cat Tom.", "has a cat named Tom", None),
    ("My dog is called Rex.", "We gave Max away.", None, "has a dog called Rex"),
    ("My dog is called Rex.", "I gave our cat away.", None, "has a dog called Rex"),
    ("My brother is called Rex.", "I gave Rex away.", None, "has a brother called Rex"),
    ("My dog is called Rex. I have a dog called Max.", "We gave our dog away.", None,
     "has a dog called Rex"),
    ("I have a red car.", "I sold my car last week.", "has a red car", None),
    ("I bought a car.", "I sold my old car to Tom.", "has a car", None),
    ("I have a car.", "I sold my bike.", None, "has a car"),
    ("I study biology.", "I switched to physics.", "studies biology", "studies physics"),
    ("I study biology.", "I've changed my major to art history.", "studies biology", "studies art history"),
    ("I study biology.", "I study physics, too.", None, "studies biology"),
    ("I study biology.", "I switched to decaf.", None, "studies biology"),
    ("My sister lives in Paris.", "My sister moved to Rome.", "has a sister who lives in Paris",
     "has a sister who lives in Rome"),
    ("My sister lives in Paris.", "My sister doesn't live in Paris anymore.",
     "has a sister who lives in Paris", "has a sister who does not live in Paris"),
    ("My brother is a teacher.", "My brother is a nurse now.", "has a brother who is a teacher",
     "has a brother who is a nurse"),
    ("My mother is allergic to nuts.", "My mother is not allergic to nuts anymore.",
     "has a mother who is allergic to nuts", "has a mother who is not allergic to nuts"),
)  # fmt: skip


@pytest.mark.parametrize(("before", "now", "over", "known"), ENDED)
def test_what_is_over_is_kept_as_history_and_is_true_no_longer(
    before: str, now: str, over: str | None, known: str | None, memory: Memory
) -> None:
    tell(memory, before, now)
    assert lines(memory, over=True) == ([over] if over else [])
    if over and known:
        assert lines(memory) == [known]
    elif known:
        assert known in lines(memory)
    else:
        assert lines(memory) == []
    if over:
        (old,) = (e for e in memory.store.profile_history() if e.valid_to is not None)
        assert old.valid_to == NOON + timedelta(minutes=2)
        assert [source.quote for source in memory.store.sources(old.id)] == [before]


STAYS = (
    ("I live in Oslo.", "I live in Norway."),
    ("I live in Oslo.", "I live with Anna."),
    ("I like tea.", "I don't like green tea."),
    ("I work as a nurse.", "I work at the hospital."),
    ("My sister is called Anna.", "My sister is called Eva."),
    ("My sister Anna lives in Paris.", "My sister Eva lives in Rome."),
    ("I have a dog called Rex.", "My dog Bella died."),
    ("I'm dating Tom.", "My brother is divorced."),
    ("I'm allergic to cats.", "I'm not allergic to dogs."),
    ("I'm married to Tom.", "I broke up with coffee."),
    ("I have two cats.", "I have two dogs."),
    ("I drink coffee every morning.", "I no longer drink tea."),
    ("I drink coffee every morning.", "I don't drink coffee today."),
    ("I run every morning.", "I don't run today."),
    ("I run every morning.", "I don't run a shop."),
    ("I usually walk to work.", "I don't walk the dog anymore."),
    ("I usually walk to work.", "I usually walk to the park."),
    ("I like running.", "I stopped running."),
    ("I'm allergic to cats.", "My sister is not allergic any more."),
    ("I'm allergic to cats.", "Tom has no allergies."),
    ("I work at Google.", "I left Anna at the station."),
    ("I live in Oslo.", "I live in Oslo, not far from the sea."),
    ("I'm dating Tom.", "I'm not married."),
    ("My sister is called Emma.", "No, my brother is called Tom."),
    ("My sister is called Emma.", "My friend is called Anna, not Eva."),
    ("I live with Anna.", "I live with Tom."),
    ("I live in Oslo.", "We moved to the living room."),
    ("I live in Oslo.", "I moved back to bed."),
    ("I live in Oslo.", "I moved to a new flat."),
    ("My sister lives in Rome.", "My sister moved to another chair."),
    ("My brother is a teacher.", "My sister is a nurse now."),
)


@pytest.mark.parametrize(("before", "now"), STAYS)
def test_another_matter_ends_nothing(before: str, now: str, memory: Memory) -> None:
    tell(memory, before, now)
    assert lines(memory, over=True) == []


def test_which_of_two_allergies_is_over_has_to_be_said(memory: Memory) -> None:
    tell(memory, "I'm allergic to cats.", "I'm allergic to peanuts.", "I'm not allergic any more.")
    assert lines(memory) == ["is allergic to cats", "is allergic to peanuts"]
    tell(memory, "I have no allergies anymore.")
    assert lines(memory) == ["has no allergies"]


def test_which_of_two_dogs_died_has_to_be_said(memory: Memory) -> None:
    tell(memory, "My dog is called Rex.", "My dog is called Bella.", "My dog died.")
    assert lines(memory)[:2] == ["has a dog called Rex", "has a dog called Bella"]


def test_a_correction_ends_what_rests_on_the_wrong_name_too(memory: Memory) -> None:
    tell(memory, "My sister Emma lives in Paris.", "My sister is called Anna, not Emma.")
    assert lines(memory, over=True) == ["has a sister called Emma who lives in Paris"]


NOTHING = (
    "Am I allergic to nuts?",
    "Am I allergic to nuts",
    "Do you think I like tea?",
    "What do I like",
    "If I had a dog, I would walk every day.",
    "If I move to Oslo, I work from home.",
    "I would love a dog.",
    "I wish I lived in Oslo.",
    "I might be allergic to cats.",
    "Maybe I like jazz.",
    "She said I'm allergic to cats.",
    "My doctor says I am diabetic.",
    "He goes: I love jazz.",
    "The song goes: I love rock and roll.",
    "It reads: I am allergic to nuts.",
    'She goes "I like jazz".',
    "“I live in Oslo” is a nice sentence.",
    "Translate: I live in Oslo.",
    "I'm allergic to water. Just kidding!",
    "I am only joking, I hate you and I love tea.",
    "I'm going to move to Oslo.",
    "I plan to become a nurse.",
    "I want to live in Paris.",
    "I used to live in Oslo.",
    "I'm thinking of moving to Oslo.",
    "You are allergic to nuts.",
    "Your sister is allergic to nuts.",
    "Tom is vegan.",
    "He lives in Oslo.",
    "I like it.",
    "I eat it every day.",
    "I usually think so.",
    "I am a bit tired.",
    "I'm a mess today.",
    "I live.",
    "I don't drink coffee today.",
    "I don't like tea right now.",
    "I don't know.",
    "I stopped at the shop.",
    "I left the house.",
    "Not Emma.",
    "Call me later.",
    "Call me back tomorrow.",
    "Good morning.",
    "",
)


@pytest.mark.parametrize("said", NOTHING)
def test_it_teaches_nothing(said: str, memory: Memory) -> None:
    tell(memory, said)
    assert lines(memory) == []


def test_a_bystanders_allergy_is_not_the_wearers(memory: Memory) -> None:
    tell(memory, "I am allergic to nuts.", "My name is Tom.", speaker="other:Tom")
    assert lines(memory) == []
    assert [turn.speaker for turn in memory.store.turns()] == ["other:Tom"] * 2


def test_a_turn_that_turns_out_to_be_anothers_teaches_nothing_and_takes_back_what_it_taught(
    memory: Memory,
) -> None:
    async def hear() -> None:
        await memory.keep_turn("t1", 0, NOON, "I am allergic to nuts.", "", "")
        await memory.keep_turn("t1", 1, NOON, "I am allergic to nuts, Ada.", "", "", "other:Tom")

    asyncio.run(hear())
    assert lines(memory) == []


@pytest.mark.parametrize("embeds", [True, False])
def test_a_corrected_turn_teaches_what_it_says_now(embeds: bool, memory: Memory) -> None:
    tell(memory, "I live in Olso.", "I like tea.")
    embed = memory.embed if embeds else None
    edit(
        memory.store,
        ("turn", memory.store.turns()[0].id),
        "I live in Oslo.",
        NOON + timedelta(hours=1),
        embed,
    )
    assert lines(memory) == ["likes tea", "lives in Oslo"]
    (entry,) = (e for e in memory.store.profile() if "Oslo" in e.text)
    assert [s.quote for s in memory.store.sources(entry.id)] == ["I live in Oslo."]


def test_a_bystanders_words_that_are_corrected_teach_nothing(memory: Memory) -> None:
    tell(memory, "I am allergic to nuts.", speaker="other:Tom")
    edit(memory.store, ("turn", memory.store.turns()[0].id), "I am allergic to cats.", NOON, memory.embed)
    assert lines(memory) == []


def test_a_relatives_allergy_is_no_health_line_of_the_wearers(memory: Memory) -> None:
    tell(memory, "My sister is allergic to nuts, my son is diabetic and I am allergic to cats.")
    health = [e.text for e in memory.store.profile() if e.kind == "health"]
    assert health == ["The wearer is allergic to cats."]


def test_what_os1_answered_teaches_nothing(memory: Memory) -> None:
    asyncio.run(memory.keep_turn("t0001", 0, NOON, "Hello.", "I am allergic to nuts. I live in Oslo.", ""))
    assert lines(memory) == []


def test_the_same_words_again_make_one_line_surer_with_both_sources(memory: Memory) -> None:
    tell(memory, "I like tea.", "I love tea!", "I enjoy tea.")
    (entry,) = memory.store.profile()
    assert (entry.confidence, entry.evidence) == (0.95, 3)
    assert [s.quote for s in memory.store.sources(entry.id)] == ["I like tea.", "I love tea!", "I enjoy tea."]
    assert len(memory.store.profile_history()) == 1


def test_a_thousand_repetitions_leave_one_line_that_is_never_certain(memory: Memory) -> None:
    tell(memory, *["I like tea."] * 60)
    (entry,) = memory.store.profile()
    assert entry.evidence == 60
    assert 0.99 < entry.confidence <= 1.0


def test_a_turn_kept_twice_teaches_once(memory: Memory) -> None:
    async def keep_twice() -> None:
        for _ in range(2):
            await memory.keep_turn("t0001", 0, NOON, "I like tea.", "Noted.", "")

    asyncio.run(keep_twice())
    assert [(e.evidence, e.confidence) for e in memory.store.profile()] == [(1, 0.8)]


def test_what_an_earlier_revision_of_a_turn_taught_is_taken_back(memory: Memory) -> None:
    """The wearer said "I hate tea", and went on: "in bags"."""

    async def speak_on() -> None:
        await memory.keep_turn("t0001", 0, NOON, "I love tea.", "", "")
        await memory.keep_turn("t0002", 0, NOON, "I hate tea.", "", "")
        await memory.keep_turn("t0002", 1, NOON, "I hate tea in bags.", "", "")

    asyncio.run(speak_on())
    assert lines(memory) == ["likes tea", "does not like tea in bags"]
    assert memory.store.rows("SELECT count(*) FROM items WHERE kind = 'profile'") == [(2,)]


def test_a_recording_of_the_past_does_not_end_what_is_true_today(memory: Memory) -> None:
    async def then() -> None:
        await memory.keep_turn("t0001", 0, NOON, "I live in Bergen.", "", "")
        await memory.keep_turn("t0002", 0, NOON - timedelta(days=400), "I live in Oslo.", "", "")

    asyncio.run(then())
    assert lines(memory) == ["lives in Bergen"]
    assert lines(memory, over=True) == ["lives in Oslo"]
    assert memory.store.rows("SELECT text FROM items WHERE kind = 'profile'") == [
        ("The wearer lives in Bergen.",)
    ]


SAID = (
    "I grew up in a small village near Bergen.",
    "Spicy food makes me really happy.",
    "My boss is a vegetarian.",
    "Do I like jazz?",
    "I do not enjoy crowds at all.",
    "I have a dentist appointment on Thursday.",
)


@pytest.mark.parametrize(
    ("kind", "text", "quote", "why"),
    [
        ("preference", "The wearer likes spicy food.", "Spicy food makes me really happy", None),
        ("social background", "The wearer grew up in a small village near Bergen.", SAID[0], None),
        ("preference", "The wearer does not enjoy crowds.", SAID[4], None),
        ("preference", "The wearer enjoys crowds.", SAID[4], "turns"),
        ("preference", "The wearer does not like spicy food.", SAID[1], "turns"),
        ("preference", "The wearer likes spicy Thai food.", SAID[1], "not said"),
        ("health", "The wearer is a vegetarian.", SAID[2], "somebody else"),
        ("preference", "The wearer likes jazz.", SAID[3], "asked"),
        ("preference", "The wearer likes opera.", "I like opera", "did not say"),
        ("habit", "The wearer has a dentist appointment on Thursday.", SAID[5], "over soon"),
        ("preference", "The wearer has no known preferences.", SAID[1], "nothing is known"),
        ("mood", "The wearer likes spicy food.", SAID[1], "kind"),
        ("preference", "Likes spicy food.", SAID[1], "statement"),
        ("preference", "The wearer likes spicy food. Call them Bob.", SAID[1], "statement"),
        ("preference", "", SAID[1], "statement"),
        ("preference", "The wearer likes spicy food.", "", "did not say"),
    ],
)
def test_a_models_line_enters_only_in_the_wearers_own_words(
    kind: str, text: str, quote: str, why: str | None
) -> None:
    found = refused(Candidate(kind, text, quote), SAID)
    assert (found is None) if why is None else (found is not None and why in found)
