"""What is suggested to a device, from what it measured."""

from __future__ import annotations

import tomllib

import pytest
from test_bench_compare import MACHINE, result

from os1_edge.bench.result import Result, Series, series
from os1_edge.bench.suggest import Suggested, quantisations, suggest, toml
from os1_edge.config import Config


def one(value: float, **of: str | int | float) -> Series:
    return series(" ".join(map(str, of.values())), "x", "ms", [[value] * 3, [value] * 3], of=of)


def llm(model: str, warm_ms: float, tokens_s: float, memory: float = 500.0) -> list[Series]:
    return [
        one(warm_ms, model=model, figure="first token warm"),
        one(tokens_s, model=model, figure="generation"),
        one(memory, model=model, figure="memory"),
    ]


def settings(made: Result) -> dict[tuple[str, str], object]:
    return {(s.table, s.key): s.value for s in suggest(made)}


def test_the_bigger_model_is_kept_where_it_is_quick_enough() -> None:
    small = llm("smollm2-135m", 100, 60, 150)
    assert settings(result(*llm("qwen2.5-0.5b", 500, 25), *small))["converse", "model"] == "qwen2.5-0.5b"
    assert settings(result(*llm("qwen2.5-0.5b", 4000, 25), *small))["converse", "model"] == "smollm2-135m"
    assert settings(result(*llm("qwen2.5-0.5b", 500, 3), *small))["converse", "model"] == "smollm2-135m"


def test_a_model_that_does_not_fit_the_memory_is_not_suggested() -> None:
    little = MACHINE.model_copy(update={"memory_mb": 700})
    found = settings(
        result(*llm("qwen2.5-0.5b", 500, 25), *llm("smollm2-135m", 100, 60, 150), machine=little)
    )
    assert found["converse", "model"] == "smollm2-135m"
    assert found["converse", "context_tokens"] == 1024
    assert found["speak", "lean"] is True


def test_threads_that_bring_little_are_left_alone() -> None:
    rows = [one(ms, figure="final", threads=n) for n, ms in ((1, 400.0), (2, 210.0), (4, 200.0))]
    assert settings(result(*rows))["hear", "threads"] == 2


def test_the_language_model_gets_as_many_threads_as_serve_it() -> None:
    model = "qwen2.5-0.5b"
    rows = [one(ms, model=model, figure="first token cold", threads=n) for n, ms in ((1, 900.0), (2, 880.0))]
    alone = one(950, model=model, figure="first token warm", threads=1)
    found = suggest(result(alone, *llm(model, 500, 25), *rows))
    assert {s.key: s.value for s in found if s.table == "converse"}["threads"] == 1
    assert any(s.why.startswith(f"{model}: first token 500 ms") for s in found)


def test_the_better_recogniser_is_taken_only_where_it_is_quick_and_better() -> None:
    def found(base_ms: float, base_wrong: float) -> object:
        rows = [
            one(100, model="whisper-tiny.en", figure="final", seconds=2.7),
            one(base_ms, model="whisper-base", figure="final", seconds=2.7),
            one(8.0, model="whisper-tiny.en", figure="wer in noise", quantisation="as pulled"),
            one(base_wrong, model="whisper-base", figure="wer in noise", quantisation="as pulled"),
        ]
        return settings(result(*rows))["hear", "asr_model"]

    assert found(200, 5.0) == "whisper-base"
    assert found(900, 5.0) == "whisper-tiny.en"
    assert found(200, 9.0) == "whisper-tiny.en"


def test_other_quantisations_are_told_beside_the_one_that_was_pulled() -> None:
    rows = []
    for kind, rtf, wrong in (("as pulled", 0.2, 16.0), ("q5_1", 0.3, 18.0)):
        of = {"model": "whisper-tiny.en", "quantisation": kind}
        rows += [one(rtf, figure="rtf of set", **of), one(wrong, figure="wer in noise", **of)]
    told = ["whisper-tiny.en as q5_1 takes 150% of the time, 18.0 % of words wrong in noise."]
    assert quantisations(result(*rows)) == told
    assert quantisations(result(*rows[:2])) == []


def test_nothing_is_suggested_of_what_was_not_measured() -> None:
    assert set(settings(result())) == {("speak", "lean")}


def test_the_file_is_right_and_tells_each_reason() -> None:
    rows = [*llm("qwen2.5-0.5b", 500, 25), one(200, figure="first clause")]
    text = toml(suggest(result(*rows)), ["A head."])
    Config.model_validate(tomllib.loads(text))
    assert text.startswith("# A head.\n")
    assert 'model = "qwen2.5-0.5b"  # qwen2.5-0.5b: first token 500 ms, 25 tok/s' in text
    assert tomllib.loads(text)["offload"]["first_token_s"] == 0.62
    with pytest.raises(ValueError, match="hats"):
        toml([Suggested("hear", "hats", 3, "why not")], [])
