"""What is read aloud for what is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from os1_edge.speak.spoken import spoken

READ = """
Dr. Lee paid $3.14 on Jan. 5. | Doctor Lee paid 3 dollars and 14 cents on January 5th.
It costs $1. | It costs 1 dollar.
It costs $1,000. | It costs 1,000 dollars.
It costs $0.99. | It costs 99 cents.
It costs $0.01 more | It costs 1 cent more
That is $5.00. | That is 5 dollars.
$5 million and $2.5M | 5 million dollars and 2.5 million dollars
a $5k prize | a 5 thousand dollars prize
€20 or 20 € | 20 euros or 20 euros
£1.50 each | 1 pound and 50 pence each
¥500 | 500 yen
US$10 | 10 dollars
-$5 | minus 5 dollars
5% off | 5 percent off
a 1% rise | a 1 percent rise
3-5% | 3 to 5 percent
on 2026-01-05 | on January 5th, 20 26
at 2026-01-05T14:30 | at January 5th, 20 26 at 14 30
on 5/1/2026 | on May 1st, 20 26
on 25/12/2026 | on December 25th, 20 26
on 5.1.2026 | on January 5th, 20 26
on 2026-13-45 | on 2026-13-45
January 5, 2026 | January 5th, 20 26
Jan 5th | January 5th
5 January 2026 | January 5th, 20 26
in Sept. 2001 | in September 2001
in March 2026 | in March 20 26
Mon., Jan. 5 | Monday, January 5th
May I have 5 of them? | May I have 5 of them?
in 1999 | in 19 99
in 1905 | in 19 oh 5
in 1900 | in 19 hundred
in 2005 | in 2005
in 2000 | in 2000
in 2026. | in 20 26.
1914-18 | 19 14 to 19 18
1990-2005 | 19 90 to 2005
the 1990s | the 19 nineties
the '80s | the eighties
2000 steps | 2000 steps
1500 people | 1500 people
at 14:30 | at 14 30
at 10:05 | at 10 oh 5
at 9:00 | at 9 o'clock
at 9:00 a.m. | at 9 AM
at 3:15pm | at 3 15 PM
at 3 p.m. tomorrow | at 3 PM tomorrow
by 5pm. | by 5 PM.
at 00:00 | at midnight
a ratio of 3:1 | a ratio of 3:1
5 kg | 5 kilograms
1 kg | 1 kilogram
120 km/h | 120 kilometers per hour
65mph | 65 miles per hour
20 °C | 20 degrees Celsius
-5°C | minus 5 degrees Celsius
1° | 1 degree
a 90° turn | a 90 degrees turn
2 GB | 2 gigabytes
1 ft | 1 foot
100 m² | 100 square meters
3.5 l | 3.5 liters
10-15 min | 10 to 15 minutes
5 kWh | 5 kilowatt hours
60 Hz | 60 hertz
1/2 a cup | one half a cup
1 1/2 cups | 1 and a half cups
3/4 | 3 quarters
5/8 in. | 5 eighths in.
2½ | 2 and a half
⅔ cup | 2 thirds cup
24/7 | 24 7
Call 555-1234. | Call 5 5 5, 1 2 3 4.
(555) 123-4567 | 5 5 5, 1 2 3, 4 5 6 7
+1 555-123-4567 | plus 1, 5 5 5, 1 2 3, 4 5 6 7
pages 3-5 | pages 3 to 5
5–10 people | 5 to 10 people
score: 3 x 4 = 12 | score: 3 times 4 equals 12
2 + 2 = 4 | 2 plus 2 equals 4
~5 more | about 5 more
-5 | minus 5
No. 5 | number 5
#5 | number 5
10k steps | 10 thousand steps
1,250,000 | 1,250,000
3.14 | 3.14
the 3rd and 21st | the 3rd and 21st
e.g. the red one | for example, the red one
i.e. now | that is, now
tea, milk, etc. | tea, milk, et cetera.
tea, milk, etc. are here | tea, milk, et cetera are here
cats vs. dogs | cats versus dogs
the U.S. Army | the US Army
in the U.S. | in the US.
J. R. Smith | J R Smith
Mr. and Mrs. Smith | Mister and Missus Smith
St. Mary is on Market St. | Saint Mary is on Market Street
Henry VIII | Henry the 8th
World War II | World War 2
I am V | I am V
See https://www.example.com/a/b?c=1. | See example dot com.
https://example.com/tea-shop | example dot com slash tea shop
Mail ann.lee@example.com | Mail ann dot lee at example dot com
example.com | example dot com
#GreenTea | Green Tea
salt & pepper | salt and pepper
A -> B | A to B
**You** like _green_ tea. | You like green tea.
Sure! 😀👍🏽 Done ✅ | Sure! Done
Done ✅. | Done.
[the map](http://x.example/a) | the map
![a cat](cat.png) | a cat
`run` it | run it
- milk | milk
1. Buy milk | 1, Buy milk
### Plan | Plan
a<br>b | a b
| Tea | 5 | | Tea, 5
~~no~~ yes | no yes
Café, naïve, 北京 | Café, naïve, 北京
He said "no" (twice). | He said "no" (twice).
well-known, state-of-the-art | well-known, state-of-the-art
"""


@pytest.mark.parametrize("line", READ.strip().splitlines())
def test_it_is_read_as_people_read_it(line: str) -> None:
    written, _, read = line.rpartition(" | ")
    assert spoken(written) == read


@pytest.mark.parametrize("line", READ.strip().splitlines())
def test_what_has_been_made_readable_stays_as_it_is(line: str) -> None:
    read = line.rpartition(" | ")[2]
    assert spoken(read) == read


@pytest.mark.parametrize("nothing", ["", " \n", "😀", "...", "***", "---", "👍🏽 !", "#"])
def test_nothing_speakable_is_not_spoken(nothing: str) -> None:
    assert spoken(nothing) == ""


def test_several_lines_are_read_one_after_the_other() -> None:
    assert spoken("# Plan\n> `run` it\n\n* now") == "Plan run it now"


def test_another_language_keeps_its_figures() -> None:
    assert spoken("**Am** 5. Mai um 14:30, 5 kg", numbers=False) == "Am 5. Mai um 14:30, 5 kg"


PLAIN = st.lists(
    st.sampled_from(
        [
            "You",
            "like",
            "green",
            "tea",
            "and",
            "the",
            "cat",
            "sits",
            "on",
            "it",
            "I'm",
            "here",
            "well-known",
            "Yes",
            "No",
        ]
    ),
    max_size=20,
).flatmap(lambda words: st.sampled_from([".", "!", "?", ", then."]).map(lambda mark: " ".join(words) + mark))


@given(PLAIN)
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert spoken(text) in (text, "")


@given(
    st.text(max_size=200) | st.text(st.sampled_from("0123456789.,:/-$%# akmMDrSt°C|*_`~()[]@"), max_size=60)
)
def test_reading_aloud_never_fails(text: str) -> None:
    said = spoken(text)
    assert said == " ".join(said.split())
    assert not any(mark in said for mark in "*`|\U0001f600")
