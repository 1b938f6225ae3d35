"""What is decided beside Ray: how an answer moves, how many replicas to have, what a client is told."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from os1_cloud import wire
from os1_cloud.address import ServeError
from os1_cloud.engines import EngineBusy, EngineError, EngineLost, Finished, Piece, Prompt, TooLong, Turn
from os1_cloud.failing import refused_by
from os1_cloud.places import Places
from os1_cloud.ray.parcels import again, lost, read_end, read_prompt, write_failure, write_part, write_prompt
from os1_cloud.ray.pressure import FRESH_S, FRONTS, Pressures
from os1_cloud.ray.scaling import wanted
from os1_cloud.settings import read_settings

PROMPT = Prompt((Turn("system", "Be kind."), Turn("user", "Hi", (b"jpeg",))), 20, "", "ann/s", "Well, ", 9.5)


def test_a_question_is_the_same_at_the_replica() -> None:
    assert read_prompt(write_prompt(PROMPT)) == PROMPT


def test_a_front_door_of_the_next_release_may_say_more_and_one_of_the_last_less() -> None:
    parcel = write_prompt(PROMPT) | {"of_the_next_release": 1}
    del parcel["total_s"], parcel["prefix"]
    assert read_prompt(parcel) == Prompt(PROMPT.turns, 20, "", "ann/s")


def test_the_end_of_an_answer_and_its_failures_come_back_as_what_they_were() -> None:
    assert write_part(Piece("a word")) == "a word"
    end = write_part(Finished("length", 7, 3, 2))
    assert isinstance(end, tuple)
    assert read_end(end) == Finished("length", 7, 3, 2)
    with pytest.raises(TooLong, match="does not fit"):
        read_end(write_failure(TooLong("does not fit")))


@pytest.mark.parametrize("failure", [EngineLost("gone", 0.5), EngineBusy("full", 7.0)])
def test_a_lost_or_full_engine_elsewhere_says_when_to_come_back_as_one_here_does(failure: EngineLost) -> None:
    parcel = write_failure(failure)
    with pytest.raises(EngineLost) as found:
        read_end(parcel)
    assert type(found.value) is type(failure)
    assert (str(found.value), found.value.retry_after_s) == (str(failure), failure.retry_after_s)
    with pytest.raises(EngineLost):  # as the release before wrote it
        read_end(parcel[:3])
    assert lost(parcel)
    assert not lost(write_failure(EngineError("broken")))


def test_what_an_engine_did_not_mean_to_say_stays_at_the_replica() -> None:
    with pytest.raises(EngineError) as failed:
        read_end(write_failure(ValueError("my diary: dear")))
    assert "diary" not in str(failed.value)
    assert "ValueError" in str(failed.value)


def test_an_answer_goes_on_behind_what_was_said_and_is_no_longer_than_asked() -> None:
    rest = again(PROMPT, ["I ", "am "], vision=False)
    assert rest is not None
    assert (rest.prefix, rest.max_tokens, rest.session) == ("Well, I am ", 18, "ann/s")
    assert again(PROMPT, [], vision=True) is PROMPT
    assert again(PROMPT, ["x"] * 20, vision=False) is None


def test_what_knows_no_prefix_is_not_asked_to_go_on() -> None:
    schema = Prompt(PROMPT.turns, 20, '{"type": "object"}')
    assert again(schema, ["{"], vision=False) is None
    assert again(PROMPT, ["A red "], vision=True) is None


def test_a_lost_or_full_engine_is_asked_again_and_a_broken_one_is_not() -> None:
    codes = {}
    for failure in (EngineLost("gone", 0.5), EngineBusy("full", 0.5), EngineError("broken")):
        code, why = wire.write_refusal(refused_by(failure))
        codes[type(failure).__name__] = (code.name, why.retry_after_ms)
    assert codes == {
        "EngineLost": ("UNAVAILABLE", 500),
        "EngineBusy": ("RESOURCE_EXHAUSTED", 500),
        "EngineError": ("INTERNAL", 0),
    }


def test_a_replica_says_what_front_doors_that_ask_now_cannot_serve() -> None:
    told = Pressures()
    told.tell(("a", 3, 10), 0.0)
    assert told.read(1.0) == {"os1_waiting": 3.0, "os1_missed": 0.0}
    told.tell(("a", 5, 14), 2.0)
    told.tell(("b", 1, 7), 2.5)
    assert told.read(3.0) == {"os1_waiting": 6.0, "os1_missed": 2.0}  # four more in two seconds
    assert told.read(3.0 + FRESH_S) == {"os1_waiting": 0.0, "os1_missed": 0.0}


def test_front_doors_that_come_and_go_do_not_fill_a_replica() -> None:
    told = Pressures()
    for number in range(10 * FRONTS):
        told.tell((f"front-{number}", 1, 0), 0.0)
    assert told.read(0.1)["os1_waiting"] == FRONTS


def test_questions_that_wait_in_front_doors_count_as_load() -> None:
    assert wanted(current=2, ongoing=8, waiting=0, missed=0, target=4) == 2
    assert wanted(current=2, ongoing=8, waiting=8, missed=0, target=4) == 4


def test_missed_budgets_ask_for_one_more_replica_whatever_the_load_says() -> None:
    assert wanted(current=2, ongoing=4, waiting=0, missed=0.5, target=4) == 3
    assert wanted(current=2, ongoing=4, waiting=0, missed=0.05, target=4) == 1


@given(st.integers(1, 50), st.floats(0, 500), st.floats(0, 500), st.floats(0, 5), st.floats(0.5, 16))
def test_more_load_never_asks_for_fewer_replicas(
    current: int, ongoing: float, waiting: float, missed: float, target: float
) -> None:
    found = wanted(current, ongoing, waiting, missed, target)
    assert wanted(current, ongoing, waiting + 1, missed, target) >= found
    assert wanted(current, ongoing, waiting, missed + 1, target) >= found


def test_a_new_replica_lets_those_in_who_wait_and_a_lost_one_ends_nobody() -> None:
    async def story() -> None:
        places = Places(2, 8)
        seats = [places.enter("reply", float(n)) for n in range(5)]
        assert (places.busy, sum(places.waiting.values())) == (2, 3)
        places.resize(4)
        assert (places.busy, places.queue) == (4, 16)
        places.resize(2)
        assert (places.busy, places.free) == (4, False)
        for seat in seats[:2]:
            places.leave(seat)
        assert (places.busy, sum(places.waiting.values())) == (2, 1)  # its turn comes when one more ends
        places.leave(seats[2])
        assert sum(places.waiting.values()) == 0

    asyncio.run(story())


@pytest.mark.parametrize("ray", ["local", "ray://head:10001", "head", "head:port"])
def test_what_ray_would_take_for_a_cluster_of_its_own_is_refused(ray: str) -> None:
    with pytest.raises(ServeError, match="auto"):
        read_settings(None, ray=ray)


@pytest.mark.parametrize("ray", ["", "auto", "head.lan:6379", "[::1]:6379"])
def test_a_cluster_is_auto_or_an_address(ray: str) -> None:
    assert read_settings(None, ray=ray).ray == ray
