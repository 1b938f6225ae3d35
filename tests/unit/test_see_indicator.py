"""The capture light: on exactly while pictures may be taken, whatever is asked and whatever fails."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from os1_edge.see.indicator import TABLE, Ask, Indicator, NoCapture, State


class Lamp:
    """A light that can stick, or break."""

    def __init__(self) -> None:
        self.on, self.stuck, self.broken = True, False, False

    def set(self, on: bool) -> None:
        if self.broken:
            raise OSError("no such line")
        self.on = self.on if self.stuck else on

    def is_on(self) -> bool:
        if self.broken:
            raise OSError("no such line")
        return self.on


def permits(indicator: Indicator) -> bool:
    try:
        indicator.permit()
    except NoCapture:
        return False
    return True


STEPS = st.lists(
    st.one_of(st.sampled_from(Ask), st.sampled_from(["stick", "loosen", "break", "mend", "out"]))
)


@given(STEPS)
def test_no_picture_without_light_whatever_happens(steps: list[Ask | str]) -> None:
    lamp = Lamp()
    indicator = Indicator(lamp)
    for step in steps:
        if isinstance(step, Ask):
            indicator.ask(step)
        elif step in ("stick", "loosen"):
            lamp.stuck = step == "stick"
        elif step in ("break", "mend"):
            lamp.broken = step == "break"
        else:
            lamp.on = False
        if permits(indicator):
            assert lamp.on
            assert indicator.state is State.LIT


@given(st.lists(st.sampled_from(Ask)))
def test_with_a_sound_light_it_is_on_exactly_while_capture_is(steps: list[Ask]) -> None:
    lamp = Lamp()
    indicator = Indicator(lamp)
    for step in steps:
        indicator.ask(step)
        assert lamp.on == permits(indicator)


def test_a_light_that_was_left_on_is_put_out_at_the_start() -> None:
    lamp = Lamp()
    assert Indicator(lamp).state is State.OFF
    assert not lamp.on


def test_looking_away_lasts_until_the_wearer_says_so() -> None:
    indicator = Indicator(Lamp())
    indicator.ask(Ask.START)
    assert indicator.ask(Ask.LOOK_AWAY).done
    refused = indicator.ask(Ask.START)
    assert not refused.done
    assert refused.reason == "cannot start while look away"
    with pytest.raises(NoCapture, match="look away"):
        indicator.permit()
    indicator.ask(Ask.LOOK_BACK)
    assert indicator.ask(Ask.START).done


def test_looking_away_holds_though_capture_was_off() -> None:
    indicator = Indicator(Lamp())
    assert indicator.ask(Ask.LOOK_AWAY).done
    assert not indicator.ask(Ask.START).done
    assert indicator.state is State.AWAY


def test_a_light_that_does_not_come_on_keeps_the_camera_off() -> None:
    lamp = Lamp()
    indicator = Indicator(lamp)
    lamp.stuck = True
    answer = indicator.ask(Ask.START)
    assert not answer.done
    assert "does not switch" in answer.reason
    assert indicator.state is State.FAILED
    lamp.stuck = False
    assert not indicator.ask(Ask.START).done
    assert indicator.ask(Ask.REPAIRED).done
    assert indicator.ask(Ask.START).done


def test_a_light_that_goes_out_ends_capture() -> None:
    lamp = Lamp()
    indicator = Indicator(lamp)
    indicator.ask(Ask.START)
    lamp.on = False
    with pytest.raises(NoCapture, match="went out"):
        indicator.permit()
    lamp.on = True
    with pytest.raises(NoCapture):
        indicator.permit()


def test_the_table_lists_no_way_from_failed_or_away_to_lit() -> None:
    assert {before for (before, _), after in TABLE.items() if after is State.LIT} == {State.OFF, State.LIT}
