"""One honest sentence about what the wearer sees, from the objects, the people, the words and the light.

It says only what the boxes carry: "on a table" when a thing's foot stands inside the table's box, a plural
when there are two boxes, and that nothing can be named when that is so. What is looked at is said apart from
what is merely in view. A covered or featureless picture is not described at all: small vision models invent
rooms there.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from os1_edge.events import Gaze, Image
from os1_edge.see.crop import Crop, choose_crop, holds_middle
from os1_edge.see.faces import Face, Finder
from os1_edge.see.motion import Motion
from os1_edge.see.objects import DetectedObject
from os1_edge.see.quality import Quality, judge_picture
from os1_edge.see.text import TextLine

MAX_NAMED = 4
"""More kinds of thing than this make a list, not a sentence."""
MAX_QUOTED = 60
"""Characters of read text in the sentence; all of it stands in `SceneDescription.text`."""

INDOORS = frozenset({"desk", "computer monitor", "computer mouse", "stationary bicycle"})
OUTDOORS = frozenset({"car", "vehicle", "cattle"})
"""Things that are hardly ever found on the other side of a door."""

SURFACES = ("table", "desk")
STANDS_ON_SURFACES = frozenset(
    {"laptop", "computer mouse", "computer monitor", "box", "mug", "coffee cup", "bottle", "book", "camera"}
)
COUNTS = {1: "a", 2: "two", 3: "three"}
PLURALS = {"person": "people", "computer mouse": "computer mice", "box": "boxes", "cattle": "cattle"}
ALREADY_PLURAL = frozenset({"high heels", "footwear", "cattle"})


@dataclass(frozen=True, slots=True)
class SceneDescription:
    """What can be said of one picture."""

    sentence: str
    """One sentence, empty when the picture is not usable."""
    objects: tuple[DetectedObject, ...]
    people: int
    light: str
    """One of "bright", "dim" and "dark"."""
    usable: bool
    reason: str
    """Why it is not usable, or what the sentence rests on."""
    text: tuple[str, ...] = ()
    """Lines read, from top to bottom; only where the reader was asked."""
    looked_at: str = ""
    """Label of the thing that the gaze rests on, where that is clear."""
    setting: str = ""
    """"indoors" or "outdoors", where the things in view tell."""
    sharpness: float = 0.0
    """See `Quality.sharpness`."""
    whole: str = ""
    """All that is in view, as a sentence that does not tell what is looked at."""
    in_view: str = ""
    """What is in view apart from what is looked at, as a sentence; empty where nothing else is."""
    attended: str = ""
    """What is looked at, with the words on it, as a phrase: "a book that reads “Emma”"."""
    motion: Motion = ""
    """"still" or "moving" where the frame before this one tells (see `motion`)."""
    size: tuple[int, int] = (0, 0)
    """Width and height of the picture."""
    read_in: tuple[int, int, int, int] | None = None
    """The box in which `text` was read."""
    crop: tuple[int, int, int, int] | None = None
    """What the gaze rests on, with a rim; None where gaze does not help."""
    at_s: float | None = None
    """Session second of the picture that this describes; one that shows the same keeps the first one's."""
    caption: str = ""
    """What a vision model says of it, where one had the time."""


class Detector(Protocol):
    """What `SceneDescriber` needs: `ObjectDetector` has it, so has any fake."""

    def detect(self, image: Image) -> tuple[DetectedObject, ...]: ...


class Reader(Protocol):
    """What `SceneDescriber` needs to read: `TextReader` has it."""

    def read(self, image: Image) -> tuple[TextLine, ...]: ...


class SceneDescriber:
    """Picture in, `SceneDescription` out; an unusable picture never reaches a network."""

    def __init__(
        self,
        detector: Detector,
        faces: Finder | None = None,
        reader: Reader | None = None,
        fov_deg: float = 82.0,
    ) -> None:
        """``fov_deg`` is the scene camera's field across."""
        self._detector = detector
        self._faces = faces
        self._reader = reader
        self._fov_deg = fov_deg

    def look(
        self, image: Image, gaze: Gaze | None = None, read: bool = False, quality: Quality | None = None
    ) -> SceneDescription:
        """Describe `image` (uint8 BGR, height x width x 3), looked at where `gaze` says (pixels of `image`).

        With `read` the words in the gaze crop are read, a third of a second; without a gaze, in all of it.
        `quality` is that of `image`, where it is known.
        """
        quality = quality or judge_picture(image)
        height, width = image.shape[:2]
        if not quality.usable:
            return unusable(quality)
        objects = self._detector.detect(image)
        if self._faces is not None:
            objects = with_faces(objects, self._faces.find(image))
        people = sum(thing.label == "person" for thing in objects)
        seen = describe(objects, quality.light, people)
        seen = replace(seen, sharpness=quality.sharpness, size=(width, height))
        return self.again(seen, gaze, image if read else None)

    def again(
        self, seen: SceneDescription, gaze: Gaze | None, image: Image | None = None
    ) -> SceneDescription:
        """`seen`, looked at where `gaze` says now; with its picture, the words there are read."""
        if not seen.usable or seen.size == (0, 0):
            return seen
        crop = choose_crop(gaze, seen.objects, *seen.size, self._fov_deg)
        text, read_in = seen.text, seen.read_in
        if image is not None and self._reader is not None:
            x, y, wide, high = read_in = crop.box
            text = tuple(line.text for line in self._reader.read(image[y : y + high, x : x + wide]))
        elif read_in is not None and not holds_middle(read_in, crop.box):
            text, read_in = (), None
        told = describe(seen.objects, seen.light, seen.people, crop, text)
        return replace(
            told,
            sharpness=seen.sharpness,
            size=seen.size,
            motion=seen.motion,
            read_in=read_in,
            crop=None if crop.whole else crop.box,
            at_s=seen.at_s,
        )


def unusable(quality: Quality) -> SceneDescription:
    """What can be said of a picture that cannot be used."""
    return SceneDescription("", (), 0, quality.light, False, quality.reason)


def with_faces(objects: Sequence[DetectedObject], faces: Sequence[Face]) -> tuple[DetectedObject, ...]:
    """`objects` and a person, with the face's box, for every face that is in no person's box; best first."""
    found = list(objects)
    for face in faces:
        x, y = face.box[0] + face.box[2] / 2, face.box[1] + face.box[3] / 2
        if not any(thing.label == "person" and _holds(thing.box, x, y) for thing in objects):
            found.append(DetectedObject("person", face.score, face.box))
    return tuple(sorted(found, key=lambda thing: -thing.score))


def setting_of(objects: Sequence[DetectedObject]) -> str:
    """ "indoors", "outdoors", or "" where the things in view do not tell, or disagree."""
    kinds = {thing.label for thing in objects}
    inside, outside = bool(kinds & INDOORS), bool(kinds & OUTDOORS)
    return "" if inside == outside else "indoors" if inside else "outdoors"


def describe(
    objects: Sequence[DetectedObject],
    light: str,
    people: int,
    crop: Crop | None = None,
    text: Sequence[str] = (),
) -> SceneDescription:
    """The sentence for these objects (best first), this light, these people, this gaze and these words."""
    target = crop.looked_at if crop is not None else None
    view, everything = _view(objects, people, target), _view(objects, people, None)
    whole = _lit(_capital(everything) or "Nothing I can name", light, named=bool(everything))
    sentence, attended = whole, ""
    words = f"that reads “{_quoted(text)}”" if text else ""
    if target is not None:
        told = f"Looking at {_article(target.label)}" + (f"; in view: {view}" if view else "")
        sentence, attended = _lit(told, light, named=True), f"{_article(target.label)} {words}".rstrip()
    elif words and crop is not None and not crop.whole:
        attended = f"something {words}"
    if text:
        sentence += f" It reads “{_quoted(text)}”."
    reason = (
        f"named from {len(objects)} detected objects"
        if objects
        else "no object was detected with enough confidence"
    )
    if crop is not None and not crop.whole:
        reason += f"; {crop.reason}"
    return SceneDescription(
        sentence,
        tuple(objects),
        people,
        light,
        True,
        reason,
        tuple(text),
        target.label if target is not None else "",
        setting_of(objects),
        whole=whole,
        in_view=f"{_capital(view)}." if view else "",
        attended=attended,
    )


def _view(objects: Sequence[DetectedObject], people: int, target: DetectedObject | None) -> str:
    """What is in view but for ``target``: "a person, a cup on a table and two chairs"; "" for nothing."""
    others = people - (target is not None and target.label == "person")
    things = [thing for thing in objects if thing.label != "person" and thing is not target]
    phrases = [_people_phrase(others)] if others > 0 else []
    groups, rest = _on_surfaces(things)
    phrases += [f"{_list(_counted(on))} on {_article(surface)}" for surface, on in groups.items()]
    phrases += _counted(rest)
    return _list(phrases[: MAX_NAMED + 1]) if phrases else ""


def _lit(told: str, light: str, *, named: bool) -> str:
    """``told`` as a sentence, with the light where it is not bright."""
    dark = "it is dark" if light == "dark" and named else f"the light is {light}"
    return f"{told}." if light == "bright" else f"{told}; {dark}."


def _quoted(text: Sequence[str]) -> str:
    words = " / ".join(" ".join(line.split()) for line in text)
    return words if len(words) <= MAX_QUOTED else words[:MAX_QUOTED].rsplit(" ", 1)[0] + " …"


def _holds(box: tuple[int, int, int, int], x: float, y: float) -> bool:
    left, top, wide, high = box
    return left <= x <= left + wide and top <= y <= top + high


def stands_on(thing: DetectedObject, surface: DetectedObject) -> bool:
    """Do the boxes support "`thing` on `surface`"?

    The middle of the thing's foot must lie inside the surface's box, and the thing be clearly smaller, as a
    cup before a table across the room would otherwise stand on it.
    """
    x, y, width, height = thing.box
    left, top, wide, high = surface.box
    foot_x, foot_y = x + width / 2, y + height
    inside = left <= foot_x <= left + wide and top < foot_y <= top + high
    return inside and width <= wide and width * height < 0.8 * wide * high


def _on_surfaces(
    things: Sequence[DetectedObject],
) -> tuple[dict[str, list[DetectedObject]], list[DetectedObject]]:
    """What stands on which surface word, and everything else in its order."""
    surfaces = [thing for thing in things if thing.label in SURFACES]
    groups: dict[str, list[DetectedObject]] = {}
    rest = []
    for thing in things:
        below = next((surface for surface in surfaces if stands_on(thing, surface)), None)
        if thing.label in STANDS_ON_SURFACES and below is not None:
            groups.setdefault(below.label, []).append(thing)
        else:
            rest.append(thing)
    # A table that was said to carry something is not said again, nor one found twice in one place.
    return groups, [thing for thing in _once(rest) if thing.label not in groups]


def _once(things: Sequence[DetectedObject]) -> list[DetectedObject]:
    """Drop tables and desks that share pixels with one before: its top alone is often a second box."""
    kept: list[DetectedObject] = []
    for thing in things:
        others = [other for other in kept if other.label in SURFACES]
        if thing.label not in SURFACES or not any(share_pixels(thing, other) for other in others):
            kept.append(thing)
    return kept


def share_pixels(one: DetectedObject, other: DetectedObject) -> bool:
    """Do the two boxes overlap at all?"""
    (x, y, width, height), (left, top, wide, high) = one.box, other.box
    return x < left + wide and left < x + width and y < top + high and top < y + height


def _counted(things: Sequence[DetectedObject]) -> list[str]:
    """One phrase a label in order of first mention: "a cat", "two chairs", "several books"."""
    counts = Counter(thing.label for thing in things)
    return [
        _article(label) if count == 1 else f"{COUNTS.get(count, 'several')} {_plural(label)}"
        for label, count in list(counts.items())[:MAX_NAMED]
    ]


def _people_phrase(people: int) -> str:
    return "a person" if people == 1 else f"{COUNTS.get(people, 'several')} people"


def _article(label: str) -> str:
    if label in ALREADY_PLURAL:
        return label
    return f"{'an' if label[0] in 'aeiou' else 'a'} {label}"


def _plural(label: str) -> str:
    return label if label in ALREADY_PLURAL else PLURALS.get(label, f"{label}s")


def _list(phrases: Sequence[str]) -> str:
    if len(phrases) == 1:
        return phrases[0]
    # A comma more where a phrase is itself a list: "a laptop and a book on a desk, and a chair".
    joint = ", and " if any(" and " in phrase for phrase in phrases) else " and "
    return f"{', '.join(phrases[:-1])}{joint}{phrases[-1]}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
