"""Frames and dialogue in one order, and never more than four frames in the prompt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from os1_edge.converse.window import MOST_ITEMS, Frame, FrameWindow, Line, Summary, as_text, fallback


def frame(at_s: float, description: str = "") -> Frame:
    return Frame(at_s, f"frame-{at_s:g}", description)


def line(at_s: float, text: str = "Hm.") -> Line:
    return Line(at_s, "Wearer", text)


def window(*items: Frame | Line) -> FrameWindow:
    made = FrameWindow()
    for item in items:
        made = made.add(item)
    return made


def test_the_first_three_consecutive_frames_are_summarised_at_the_fourth() -> None:
    three = window(frame(0), frame(5), frame(10))
    assert three.wanted() is None
    wanted = three.add(frame(15)).wanted()
    assert wanted is not None
    assert [one.at_s for one in wanted.frames] == [0, 5, 10]
    assert wanted.before == ()


def test_the_summary_takes_the_frames_place_and_the_dialogue_stays() -> None:
    full = window(line(0, "Hi."), frame(1), frame(2), frame(3), line(4, "And that?"), frame(5))
    wanted = full.wanted()
    assert wanted is not None
    assert wanted.before == (line(0, "Hi."),)
    after = full.summarised(wanted, "A mug,\nthen a cat.")
    assert after.items == (
        line(0, "Hi."),
        Summary(1, 3, "A mug, then a cat.", 3),
        line(4, "And that?"),
        frame(5),
    )


def test_an_earlier_summary_is_shown_to_the_one_who_writes_the_next() -> None:
    first = window(*map(frame, range(4)))
    wanted = first.wanted()
    assert wanted is not None
    later = first.summarised(wanted, "A room.")
    for at_s in (4, 5, 6):
        later = later.add(frame(at_s))
    again = later.wanted()
    assert again is not None
    assert again.before == (Summary(0, 2, "A room.", 3),)
    assert [one.at_s for one in again.frames] == [3, 4, 5]


def test_talk_between_all_frames_still_bounds_them() -> None:
    parted = window(frame(0), line(1), frame(2), line(3), frame(4), line(5), frame(6))
    wanted = parted.wanted()
    assert wanted is not None
    assert [one.at_s for one in wanted.frames] == [0]


def test_the_newest_frame_is_at_full_size_and_older_ones_are_smaller() -> None:
    shown = window(frame(0), line(1), frame(2)).shown()
    assert [one.scale for one in shown] == [0.5, 1.0, 1.0]


def test_a_frame_that_comes_while_the_summary_is_written_does_not_exceed_the_limit() -> None:
    full = window(*map(frame, range(4)))
    wanted = full.wanted()
    assert wanted is not None
    meanwhile = full.add(line(4, "Look!")).add(frame(5))
    assert [one.item.at_s for one in meanwhile.shown()] == [1, 2, 3, 4, 5]
    after = meanwhile.summarised(wanted, "A street.")
    assert [item.at_s for item in after.items] == [0, 3, 4, 5]
    assert after.summarised(wanted, "Again.") == after, "a summary that comes twice changes nothing"


def test_a_description_that_comes_late_stands_where_its_frame_was_taken() -> None:
    assert [item.at_s for item in window(frame(0), line(6), frame(5)).items] == [0, 5, 6]


def test_a_model_that_says_nothing_is_stood_in_for_by_the_descriptions() -> None:
    full = window(frame(0, "A mug."), frame(1, "A mug."), frame(2, "A cat."), frame(3))
    wanted = full.wanted()
    assert wanted is not None
    summary = full.summarised(wanted, " ").items[0]
    assert isinstance(summary, Summary)
    assert summary.text == "A mug. Then: A cat."
    assert fallback([frame(0)]) == "Nothing that could be described."


def test_a_model_without_eyes_reads_what_was_seen() -> None:
    full = window(frame(0, "A mug."), line(1, "Nice."), frame(2), frame(3, "A cat."))
    assert as_text(full.shown()) == "[Seen: A mug.]\nWearer: Nice.\n[Seen: A cat.]"


@pytest.mark.parametrize(("most", "at_once"), [(4, 4), (4, 0), (1, 1)])
def test_a_window_that_would_keep_no_frame_is_refused(most: int, at_once: int) -> None:
    with pytest.raises(ValueError, match="at_once"):
        FrameWindow((), most, at_once)


@given(st.lists(st.booleans(), max_size=120), st.integers(2, 6))
def test_whatever_comes_the_prompt_holds_few_frames_in_order_and_no_line_is_lost(
    pictures: list[bool], most: int
) -> None:
    made = FrameWindow((), most, most - 1)
    for at_s, picture in enumerate(pictures):
        made = made.add(frame(at_s) if picture else line(at_s))
        if wanted := made.wanted():
            made = made.summarised(wanted, "Seen.")
        assert made.wanted() is None
        shown = [one.item for one in made.shown()]
        assert sum(isinstance(item, Frame) for item in shown) < most
        assert [item.at_s for item in shown] == sorted(item.at_s for item in shown)
    assert sum(isinstance(item, Line) for item in made.items) == pictures.count(False)
    if any(pictures):
        assert made.frames, "the newest frame always stays"
        assert made.frames[-1].at_s == max(i for i, picture in enumerate(pictures) if picture)


def test_a_long_talk_does_not_grow_for_ever() -> None:
    assert len(window(*(line(at_s) for at_s in range(MOST_ITEMS + 50))).items) == MOST_ITEMS
