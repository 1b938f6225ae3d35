"""What the router believes of links, servers and itself, and how it says so."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from os1_edge.clock import Clock
from os1_edge.config import Offload
from os1_edge.offload.cli import route
from os1_edge.offload.engine import Message
from os1_edge.offload.estimate import LocalModel, Networks, PathEstimates, Quantiles, Rtt
from os1_edge.offload.explain import sentences
from os1_edge.offload.far import Accepted, Finished, Probed, Step, Stranger, TaskLoad, Text
from os1_edge.offload.journal import KEPT, BadJournal, Journal, read
from os1_edge.offload.link import Link, Schedule
from os1_edge.offload.network import Network, Quiet, costs, network
from os1_edge.offload.taken import Taken
from os1_edge.offload.watch import Watch


def test_round_trips_are_smoothed_as_rfc_6298_says() -> None:
    rtt = Rtt()
    assert rtt.rto_s == 1.0  # (2.1)
    rtt.sample(0.1)
    assert (rtt.srtt_s, rtt.rttvar_s, rtt.rto_s) == (0.1, 0.05, pytest.approx(0.3))  # (2.2)
    rtt.sample(0.2)
    assert rtt.rttvar_s == pytest.approx(0.75 * 0.05 + 0.25 * 0.1)  # (2.3): before SRTT
    assert rtt.srtt_s == pytest.approx(0.875 * 0.1 + 0.125 * 0.2)


def test_what_was_given_up_makes_the_next_wait_longer_and_is_no_sample() -> None:
    rtt = Rtt()
    rtt.sample(0.1)
    rtt.lost()
    assert rtt.rto_s == pytest.approx(0.6)  # (5.5)
    rtt.at_least(0.5)
    assert rtt.srtt_s == 0.1
    assert rtt.rttvar_s > 0.05
    rtt.sample(0.1)
    assert rtt.rto_s < 0.8


def test_a_small_upload_does_not_tell_the_links_rate() -> None:
    path = PathEstimates()
    path.uploaded(500, 0.0001)
    assert path.uplink.count == 0
    path.uploaded(40_000, 0.4)
    assert path.uplink.p50 == pytest.approx(100_000)
    assert path.uplink.p10 < 100_000  # one sample is luck


def test_quantiles_are_those_of_the_newest() -> None:
    known = Quantiles(0, 0, 0)
    for n in range(100):
        known.add(float(n))
    assert (known.p10, known.p50, known.p95) == (pytest.approx(71, abs=1), 83.5, pytest.approx(97, abs=1))


def test_the_devices_pace_is_learnt_within_a_few_answers() -> None:
    model, chance = LocalModel(), random.Random(3)
    for _ in range(12):
        tokens = chance.randint(10, 600)
        model.sample(tokens, 0, 0.05 + 0.0012 * tokens + chance.gauss(0, 0.01))
    a, b, _ = model.coefficients
    assert a + b * 300 == pytest.approx(0.41, abs=0.03)
    assert model.high_s < 0.1


def test_a_place_that_was_bad_begins_badly_and_is_forgotten_slowly() -> None:
    networks = Networks()
    cafe = networks.at("cafe")
    cafe.rtt.sample(1.5)
    cafe.at_s = 0.0
    networks.at("home").rtt.sample(0.03)
    assert networks.at("cafe").rtt.srtt_s == 1.5
    assert [round(cafe.unsure(now), 2) for now in (0.0, 60.0, 120.0)] == [0.0, 0.5, 0.75]
    for n in range(50):
        networks.at(f"street {n}")
    assert len(networks) == Networks.KEPT


ROUTES = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"
WLAN = "wlan0 00000000 0101A8C0 0003 0 0 600 00000000 0 0 0\n"
CELL = "wwan0 00000000 0101000A 0003 0 0 700 00000000 0 0 0\n"
ARP = "IP address HW type Flags HW address Mask Device\n192.168.1.1 0x1 0x2 {} * wlan0\n"


def test_networks_are_told_apart_by_their_gateway_and_named_by_nothing() -> None:
    home = network(ROUTES + CELL + WLAN, ARP.format("aa:aa:aa:aa:aa:aa"))
    cafe = network(ROUTES + WLAN, ARP.format("bb:bb:bb:bb:bb:bb"))
    assert home.interface == "wlan0"  # the better metric
    assert home.name != cafe.name
    assert "192" not in home.name
    assert network(ROUTES + CELL, "").interface == "wwan0"
    assert network(ROUTES, "").name == ""
    assert (costs("wwan0", ("wwan*", "ppp*")), costs("wlan0", ("wwan*",))) == (True, False)


def test_an_idle_link_is_probed_less_and_a_spoken_word_brings_a_probe_at_once() -> None:
    schedule = Schedule(random.Random(0))
    waits, now = [], 0.0
    for _ in range(8):
        schedule.probed(now, now, Link.OFFLINE)
        waits.append(schedule.due_at - now)
        now = schedule.due_at
    assert max(waits) <= 30 * 1.3
    assert waits[0] <= 1.3
    assert waits[-1] >= 30 * 0.7
    schedule.spoke(now - 10.0, Link.OFFLINE)
    assert schedule.due_at == now - 10.0


class Scripted:
    """A server whose probes say ``load``."""

    name = "offload server"

    def __init__(self) -> None:
        self.around = Moving()
        self.load = TaskLoad(0.0, 0.4, 0.05)
        self.probes: list[tuple[int, bool]] = []

    async def probe(self, padding: int, timeout_s: float, *, fresh: bool = False) -> Probed:
        self.probes.append((padding, fresh))
        await asyncio.sleep(0.04 + padding / 100_000)
        return Probed(0.04 + padding / 100_000, padding, False, {"reply": self.load})

    async def diagnose(self, timeout_s: float) -> Stranger:
        return ""

    async def ask(self, question: object) -> object:
        yield Step(1, Accepted())
        yield Step(2, Text("x"))
        yield Step(3, Finished())


class Moving(Quiet):
    """A wearer who walks from one network into another after ten seconds."""

    def __init__(self) -> None:
        self.now = Network("home", "wlan0")

    def network(self) -> Network:
        return self.now

    async def changes(self, changed: object) -> None:
        await asyncio.sleep(10.0)
        self.now = Network("street", "wwan0")
        changed()  # type: ignore[operator]
        await asyncio.Event().wait()


def test_another_network_is_probed_at_once_over_a_connection_of_its_own() -> None:
    async def go() -> None:
        far = Scripted()
        watch = Watch(far, Clock(), random.Random(0), ("wwan*",))  # type: ignore[arg-type]
        watching = asyncio.create_task(watch.run())
        await asyncio.sleep(5.0)
        assert watch.state is Link.ONLINE
        assert [fresh for _, fresh in far.probes] == [True, False]
        assert watch.path.uplink.p50 == pytest.approx(100_000, rel=0.01)
        cloud = watch.cloud("reply", 100)
        assert cloud is not None
        assert (cloud.first_p50_s, cloud.first_p95_s) == (0.4, pytest.approx(0.6))  # the server's own word
        await asyncio.sleep(5.2)
        assert (watch.state, watch.metered) == (Link.METERED, True)
        assert far.probes[2:] == [(0, True)]  # nothing is padded where bytes cost
        watching.cancel()

    from os1_edge import clock

    clock.run(go(), virtual=True)


def test_not_even_a_probe_leaves_while_nothing_may() -> None:
    from os1_edge import clock
    from os1_edge.offload.route import Rules
    from os1_edge.offload.router import Router

    async def go() -> None:
        far = Scripted()
        far.around = Quiet()  # type: ignore[assignment]
        router = Router(object_named("here"), far, Clock())  # type: ignore[arg-type]
        router.wearer_speaks()
        await asyncio.sleep(5.0)
        before = len(far.probes)
        assert before
        router.rules = Rules(policy="prefer-private")
        router.wearer_speaks()
        await asyncio.sleep(300.0)
        assert len(far.probes) == before
        router.rules = Rules()
        router.wearer_speaks()
        await asyncio.sleep(1.0)
        assert len(far.probes) > before

    clock.run(go(), virtual=True)


def object_named(name: str) -> object:
    """A model that is never asked."""
    return type("Here", (), {"name": name})()


def test_totals_say_who_answered_what_how_late_and_for_how_many_both_worked() -> None:
    journal = Journal()
    for n, (to, answered, first_s, both) in enumerate(
        [
            ("cloud", "cloud", 0.3, False),
            ("cloud", "local", 0.5, True),
            ("cloud", "both", 0.2, False),
            ("cloud", "cloud", 0.9, True),
            ("local", "local", 0.1, False),
            ("local", "local", 0.4, False),
            ("cloud", "", None, False),
        ]
    ):
        taken = Taken(f"2026-03-02T08:00:{n:02}.000", "reply", "online", to, "", 0.6, local_s=0.2)
        taken.answered, taken.first_s, taken.both = answered, first_s, both
        journal.note(taken, {})
    for _ in range(3 * KEPT):  # what the journal no longer holds counts still
        taken = Taken("2026-03-02T08:01:00.000", "caption", "offline", "local", "", 3.0)
        taken.answered, taken.first_s = "local", 1.5
        journal.note(taken, {})
    totals = journal.totals.told()
    assert totals["since"] == "2026-03-02T08:00:00.000"
    assert totals["routes"] == {"reply": {"cloud": 5, "local": 2}, "caption": {"local": 60}}
    assert totals["answered"]["reply"] == {"cloud": 2, "local": 3, "both": 1, "nobody": 1}
    assert totals["late"]["reply"] == {"cloud": 1, "local": 0}
    assert totals["links"] == {"online": 7, "offline": 60}
    assert totals["both_at_work"] == {"local": 1, "cloud": 1}
    assert totals["first_s"]["caption, local"] == {"p50": 1.5, "p95": 1.5, "count": 60}
    assert totals["device_inside"] == 0.5  # of those that it answered as planned
    lines = list(sentences(Offload(server="example.org:443"), journal))
    assert (
        "Since 2026-03-02 08:00:00, reply: answered 2 by the server, 3 on the device, 1 by the server, then "
        "on the device, 1 not at all; 1 came late." in lines
    )
    assert (
        "Both sides were at work for 2; the first word was said 1 times on the device and 1 times by the "
        "server." in lines
    )


def journal_of(count: int, file: Path | None = None) -> Journal:
    """A journal with that many decisions."""
    journal = Journal(file)
    for n in range(count):
        journal.note(
            Taken(f"2026-03-02T08:00:{n:02}.000", "reply", "online", "cloud", f"reason {n}", 0.6, 0.2, 0.3),
            {
                "link": "online",
                "why": "the server answered a probe",
                "rtt_s": 0.04,
                "server": ["door-1", "0.1.0", "qwen2.5-1.5b"],
            },
        )
    return journal


def test_the_last_decisions_outlive_the_process_in_one_bounded_file(tmp_path: Path) -> None:
    file = tmp_path / "state" / "routes.json"
    journal_of(50, file).write()
    found = read(file)
    assert [t.why for t in found.taken] == [f"reason {n}" for n in range(50 - KEPT, 50)]
    assert found.status["link"] == "online"
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("body", ["", "{}", "[1]", '{"taken": [{"at": 1}], "status": {}}', "\x00"])
def test_a_file_that_is_no_journal_is_named(tmp_path: Path, body: str) -> None:
    file = tmp_path / "routes.json"
    file.write_text(body)
    with pytest.raises(BadJournal, match=r"routes\.json is no journal of routes; move it away"):
        read(file)


def test_decisions_are_told_in_words(tmp_path: Path) -> None:
    file = tmp_path / "routes.json"
    journal = journal_of(1, file)
    taken = journal.taken[0]
    taken.answered, taken.first_s, taken.both = "local", 0.41, True
    taken.outcome = "the server had said nothing after 0.41 s"
    journal.write()
    lines = list(sentences(Offload(server="example.org:443"), journal))
    assert lines[0].startswith("The server example.org:443 is asked by the policy prefer-quality")
    assert lines[1] == "The link is online (the server answered a probe)."
    assert lines[2] == "The server door-1 has version 0.1.0 and answers with qwen2.5-1.5b."
    assert lines[-1] == (
        "2026-03-02 08:00:00 reply (online): answered on the device, first word after 0.41 s (due 0.60 s; "
        "the device's own by 0.20 s, the server's by 0.30 s), because reason 0; the server had said nothing "
        "after 0.41 s; both sides were at work."
    )
    shown = CliRunner().invoke(route, ["explain", "--file", str(file)])
    assert shown.exit_code == 0
    assert lines[-1] in shown.output
    made = json.loads(CliRunner().invoke(route, ["explain", "--file", str(file), "--json"]).output)
    assert made["taken"][0]["why"] == "reason 0"


def test_no_word_of_a_question_or_an_answer_is_kept(tmp_path: Path) -> None:
    """The journal of a turn that was really routed."""
    from os1_edge import clock
    from os1_edge.offload.router import Router

    class Here:
        name = "here"

        async def prime(self, messages: object) -> None: ...

        async def stream(self, *_: object, **__: object) -> object:
            yield "secret answer"

    async def go() -> None:
        router = Router(Here(), Scripted(), Clock(), journal=Journal(tmp_path / "r.json"))  # type: ignore[arg-type]
        async for _ in router.stream([Message("user", "secret question")], 8):
            pass
        await asyncio.wait(set(router._behind))

    clock.run(go(), virtual=True)
    kept = (tmp_path / "r.json").read_text()
    assert "secret" not in kept
    assert '"task": "reply"' in kept


def test_a_probe_is_never_repeated_by_grpc_and_a_question_neither() -> None:
    """Karn's rule would not hold of a probe that was; a question is the router's to repeat."""
    from os1_edge.offload.channels import OPTIONS

    config = json.loads(dict(OPTIONS)["grpc.service_config"])
    repeated = {name["method"] for each in config["methodConfig"] for name in each["name"]}
    assert repeated == {"Cancel", "Hello"}


def test_reconnection_waits_are_not_all_the_same() -> None:
    """grpc#33593: equal ones over TLS never come back."""
    from os1_edge.offload.channels import OPTIONS

    options = dict(OPTIONS)
    assert options["grpc.min_reconnect_backoff_ms"] < options["grpc.max_reconnect_backoff_ms"]
