"""Whether a turn is about something to eat, drink or take, in talk or in view: then the profile's health
lines must be in it. Pure."""

from __future__ import annotations

import re

_WORDS = re.compile(
    r"\b(?:eat|eats|eating|ate|food|hungry|breakfast|lunch|dinner|supper|snacks?|meals?|cook|cooking"
    r"|recipe|menu"
    r"|restaurant|order|drinks?|drinking|cakes?|cookies?|biscuits?|chocolate|bread|pizza|salad|soup|curry"
    r"|sauce"
    r"|nuts?|peanuts?|allerg\w+|ingredients?|tastes?|dessert|ice cream|sandwich(?:es)?|vegan|vegetarian"
    r"|coffee|tea|milk|beer|wine|juice|cocktails?|thirsty|fruits?|mango(?:es|s)?|fish|meat|cheese|eggs?"
    r"|burger"
    r"|sushi|pasta|rice|noodles?|candy|sweets|cafe|café|bakery|groceries|supermarket|medicine|pills?|tablets?"
    r"|essen|trinken|hunger|kuchen|comer|beber|comida|hambre|manger|boire|faim|repas)\b",
    re.I,
)

_SEEN = re.compile(
    r"\b(?:mugs?|coffee cups?|cups?|bottles?|plates?|bowls?|forks?|knives|spoons?|glass(?:es)? of"
    r"|wine glass(?:es)?"
    r"|food|meals?|fruits?|apples?|bananas?|oranges?|mango(?:es|s)?|cakes?|sandwich(?:es)?|pizzas?|bread"
    r"|donuts?"
    r"|salads?|snacks?|menu|coffee|tea|beer|wine|vegetables?|carrots?|hot dogs?|refrigerator|fridge|oven)\b",
    re.I,
)


def concerns_food(heard: str) -> bool:
    """Whether ``heard`` speaks of food, drink or medicine."""
    return _WORDS.search(heard) is not None


def food_in(scene: str) -> bool:
    """Whether the sentence that describes a scene names food, or what it is served in."""
    return _SEEN.search(scene) is not None
