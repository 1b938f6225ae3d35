"""The commands that correct and forget."""

from __future__ import annotations

import click

from os1_edge.config import load_config
from os1_edge.remember import forget as forgetting
from os1_edge.remember import retention
from os1_edge.remember.about import Mention, about, foresee_about
from os1_edge.remember.cli_common import (
    PATH,
    Access,
    access,
    as_json,
    counted,
    embed_missing,
    embedder,
    plain,
    put,
    row_of,
    say,
    span,
    time_of,
    undo_for,
    window,
    yes,
)
from os1_edge.remember.connection import BadMemory
from os1_edge.remember.edit import edit as correct
from os1_edge.remember.forget import Row
from os1_edge.remember.rows import now
from os1_edge.remember.schema import TABLES
from os1_edge.remember.store import Store
from os1_edge.remember.trash import Window, purge
from os1_edge.remember.undo import undo as take_back

SHOWN = 20
"""Rows shown before it is asked; more are counted."""


@click.command()
@access
@click.argument("id_", metavar="ID")
@click.argument("text")
@as_json
def edit(memory: Access, id_: str, text: str, as_json: bool) -> None:
    """Put TEXT in place of what the memory named by ID says; the old words stay as its history."""
    with memory.opened() as store:
        try:
            kind, number = correct(store, row_of(id_), text, now(), embedder())
        except ValueError as e:
            raise click.UsageError(str(e)) from None
    put({"id": f"{kind}:{number}"}) if as_json else say(f"{kind}:{number} now reads: {plain(text)}")


@click.command()
@access
@click.argument("ids", nargs=-1, required=True)
@undo_for
@yes
@as_json
def delete(memory: Access, ids: tuple[str, ...], undo_for: str | None, yes: bool, as_json: bool) -> None:
    """Delete the memories named by their IDS, with what rested on them alone."""
    undo = window(undo_for)
    rows = [row_of(text) for text in ids]
    with memory.opened() as store:
        for kind, number in rows:
            if not store.rows(f"SELECT 1 FROM {TABLES[kind]} WHERE id = ?", number):
                raise BadMemory(f"there is no {kind}:{number} in the memory; nothing was deleted")
        _forget(store, rows, undo, yes, as_json)


@click.command()
@access
@as_json
def undo(memory: Access, as_json: bool) -> None:
    """Take the latest forgetting back: one by voice or with --undo-for, whose time is not over."""
    with memory.opened() as store:
        restored = take_back(store)
        if restored is not None and (model := embedder()) is not None:
            embed_missing(store, model, lambda _: None)
    if as_json:
        put({"restored": restored.back if restored else {}})
    elif restored is None:
        say("nothing can be undone")
    else:
        say(f"back again, as before {restored.forgotten:%Y-%m-%d %H:%M}: {counted(restored.back)}")


@click.command()
@access
@click.option("--last", help="What happened in this time up to now: 1h, 30m, 2d.")
@click.option("--since", help="What happened from this local time on (2026-03-02T08:30).")
@click.option("--until", help="And before this one.")
@click.option("--about", "what", help="What says this: a name, a thing, a phrase.")
@click.option("--similar", is_flag=True, help="With --about: also what may mean it without saying it.")
@click.option("--expired", is_flag=True, help="What is older or more than the [remember] settings keep.")
@click.option("--clear", is_flag=True, help="Nothing more, but leave no trace of what was deleted before.")
@click.option("--dry-run", is_flag=True, help="Only show it.")
@undo_for
@click.option("--config", "config_file", type=PATH, help="Settings (TOML), for --expired.")
@yes
@as_json
def forget(
    memory: Access,
    last: str | None,
    since: str | None,
    until: str | None,
    what: str | None,
    similar: bool,
    expired: bool,
    clear: bool,
    dry_run: bool,
    undo_for: str | None,
    config_file: object,
    yes: bool,
    as_json: bool,
) -> None:
    """Forget a stretch of time, everything about something, or what is too old.

    It is shown first and asked for. Words, vectors and index entries are overwritten in the file, and so is
    what was made of them; copies (backups, exports) are yours to delete and are named where they are known.
    With --undo-for it lies apart in the file for that long, unless --clear comes first.
    """
    ways = [last or since or until, what, expired, clear]
    if sum(map(bool, ways)) != 1:
        raise click.UsageError("say what: one of --last (or --since, --until), --about, --expired, --clear")
    undo = window(undo_for)
    if undo is not None and (clear or expired):
        raise click.UsageError("what is too old or deleted already cannot be undone")
    with memory.opened() as store:
        if clear:
            _told_left(purge(store), as_json)
        elif expired:
            _expire(store, config_file, dry_run, as_json)
        elif what:
            _forget_about(store, what, similar, dry_run, undo, yes, as_json)
        else:
            begins, ends = time_of(since), time_of(until)
            if last:
                if since or until:
                    raise click.UsageError("give --last or --since and --until, not both")
                begins = now() - span(last)
            rows = forgetting.within(store, begins, ends)
            _forget(store, rows, undo, yes, as_json, dry_run)


def _forget_about(
    store: Store, what: str, similar: bool, dry_run: bool, undo: Window | None, yes: bool, as_json: bool
) -> None:
    try:
        found = about(store, what, embedder())
    except ValueError as e:
        raise click.UsageError(str(e)) from None
    said = [m for m in found if m.why == "says"]
    meant = [m for m in found if m.why == "means"]
    if not as_json:
        _show("says it", said)
        _show("may mean it" + ("" if similar else " (stays; --similar forgets these too)"), meant)
    plan = foresee_about(store, what, found if similar else said)
    _carry_out(store, plan, undo, yes, as_json, dry_run, [m for m in meant if not similar])


def _show(heading: str, mentions: list[Mention]) -> None:
    if mentions:
        say(f"{heading}:")
    for mention in mentions[:SHOWN]:
        say(f"  {f'{mention.kind}:{mention.id}':14}{mention.time:%Y-%m-%d %H:%M}  {plain(mention.text)}")
    if len(mentions) > SHOWN:
        say(f"  and {len(mentions) - SHOWN} more")


def _forget(
    store: Store, rows: list[Row], undo: Window | None, yes: bool, as_json: bool, dry_run: bool = False
) -> None:
    _carry_out(store, forgetting.foresee(store, rows), undo, yes, as_json, dry_run)


def _carry_out(
    store: Store,
    plan: forgetting.Forgetting,
    undo: Window | None,
    yes: bool,
    as_json: bool,
    dry_run: bool = False,
    stays: list[Mention] | None = None,
) -> None:
    left_alone = [f"{m.kind}:{m.id}" for m in stays or []]
    if not plan or dry_run:
        if as_json:
            put(
                {
                    "forgotten": {},
                    "would_forget": plan.gone,
                    "would_remake": plan.remade,
                    "similar": left_alone,
                }
            )
        elif plan:
            say(f"this would forget {counted(plan.gone)}; made again: {counted(plan.remade)}")
        else:
            say("there is nothing to forget")
        return
    if not yes:
        again = f"; {counted(plan.remade)} made again without it" if plan.remade else ""
        click.confirm(f"Forget {counted(plan.gone)}{again}?", abort=True, err=True)
    receipt = forgetting.carry_out(store, plan, undo=undo)
    if as_json:
        put(
            {
                "forgotten": receipt.gone,
                "remade": receipt.remade,
                "similar": left_alone,
                "copies": receipt.copies,
                "left": receipt.left,
                "undo_until": receipt.undo_until,
            }
        )
        return
    say(f"forgotten: {counted(receipt.gone)}")
    if receipt.remade:
        say(f"made again without it: {counted(receipt.remade)}")
    if receipt.undo_until:
        say(f"until {receipt.undo_until:%Y-%m-%d %H:%M} it can be undone: os1 memory undo")
    for copy in receipt.copies:
        say(f"a copy may still hold it: {copy}")
    if receipt.left:
        say(receipt.left)


def _expire(store: Store, config_file: object, dry_run: bool, as_json: bool) -> None:
    settings = load_config(config_file).remember  # type: ignore[arg-type]  # click gives a Path or None
    rules = retention.Retention(
        settings.keep_turns_days,
        settings.keep_contexts_days,
        settings.keep_events_days,
        settings.keep_summaries_days,
        None if settings.max_mb is None else int(settings.max_mb * 1e6),
    )
    found = retention.expired(store, rules, now())
    gone: dict[str, int] = {}
    for kind, _ in {row for e in found for row in e.rows}:
        gone[kind] = gone.get(kind, 0) + 1
    if not dry_run and found:
        gone = retention.expire(store, rules, now())
    if as_json:
        put({"would_forget" if dry_run else "forgotten": gone, "why": [e.why for e in found]})
        return
    for e in found:
        say(f"{e.why}: {len(e.rows)}")
    say(f"{'this would forget' if dry_run else 'forgotten'}: {counted(gone)}")


def _told_left(left: str, as_json: bool) -> None:
    put({"left": left}) if as_json else say(left or "nothing that was deleted is left in the file")


COMMANDS = (edit, delete, forget, undo)
