"""The page's server over real sockets: who is refused, and what a page may send."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import aiohttp
import pytest
from page_world import HELLO, Served, run, serving

from os1_edge.web.gate import EACH, Gate
from os1_edge.web.run import HERE
from os1_edge.web.tls import certificate


def test_nothing_is_told_to_a_browser_that_is_not_paired() -> None:
    async def work(s: Served) -> None:
        for path in ("/api/state", "/api/nothing", "/anything"):
            async with s.http.get(s.url + path) as r:
                assert r.status == 401, path
        with pytest.raises(aiohttp.WSServerHandshakeError, match="401"):
            await s.page()
        async with s.http.post(f"{s.url}/api/pair", json={"code": "aaaa-aaaa"}, headers=s.own) as r:
            assert r.status == 403
            assert "not the code" in (await r.json())["error"]
        await s.paired()
        async with s.http.get(f"{s.url}/api/state") as r:
            assert (await r.json())["state"] == "listening"

    run(work)


def test_another_site_can_neither_call_nor_listen() -> None:
    async def work(s: Served) -> None:
        await s.paired()
        for origin in ("https://evil.example", "http://localhost:1", "null"):
            async with s.http.get(f"{s.url}/api/state", headers={"Origin": origin}) as r:
                assert r.status == 403
            async with s.http.post(f"{s.url}/api/unpair", json={}, headers={"Origin": origin}) as r:
                assert r.status == 403
            with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                await s.http.ws_connect(f"{s.url}/api/glasses", headers={"Origin": origin})
        async with s.http.post(f"{s.url}/api/unpair", json={}) as r:  # a form or a script without an origin
            assert r.status == 403
        async with s.http.get(f"{s.url}/api/state", headers={"Sec-Fetch-Site": "cross-site"}) as r:
            assert r.status == 403

    run(work)


def test_a_name_that_was_made_to_point_here_is_not_served() -> None:
    async def work(s: Served) -> None:
        for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "[", ""):
            async with s.http.get(f"{s.url}/", headers={"Host": host}) as r:
                assert r.status in (400, 421), host

    run(work)


def test_only_the_pages_own_files_are_served() -> None:
    async def work(s: Served) -> None:
        async with s.http.get(f"{s.url}/page/main.js") as r:
            assert r.status == 200
            assert r.content_type == "text/javascript"
        names = (
            "..%2fserver.py",
            "%2e%2e/server.py",
            "..",
            "main.js%00",
            "missing.js",
            ".",
            "%2fetc%2fpasswd",
        )
        for name in names:
            async with s.http.get(aiohttp.client.URL(f"{s.url}/page/{name}", encoded=True)) as r:
                assert r.status in (400, 401, 404), name
                assert b"aiohttp" not in await r.read()

    run(work)


def test_every_answer_carries_the_headers_that_keep_text_from_becoming_markup() -> None:
    async def work(s: Served) -> None:
        for path in ("/", "/page/main.js", "/page/missing.js", "/api/state"):
            async with s.http.get(s.url + path) as r:
                assert "script-src 'self'" in r.headers["Content-Security-Policy"], path
                assert "unsafe-inline" not in r.headers["Content-Security-Policy"]
                assert r.headers["X-Content-Type-Options"] == "nosniff"
                assert r.headers["Cache-Control"] == "no-store"
        await s.paired()
        cookie = next(c for c in s.http.cookie_jar if c.key.startswith("os1-"))
        assert cookie["httponly"]
        assert cookie["samesite"] == "Strict"

    run(work)


def test_the_page_is_small_and_calls_nothing_from_elsewhere() -> None:
    from os1_edge.web.server import PAGE

    texts = {entry.name: entry.read_text("utf-8") for entry in PAGE.iterdir()}
    assert sum(len(text.encode()) for text in texts.values()) < 300_000
    for name, text in texts.items():
        assert "innerHTML" not in text, name
        assert "http://" not in text.replace("http://www.w3.org", ""), name
        assert "https://" not in text, name


@pytest.mark.parametrize(
    "first",
    [
        "{}",
        "no json",
        "[]",
        '{"kind":"hello"}',
        '{"kind":"hello","rate_in":1,"rate_out":48000}',
        '{"kind":"hello","rate_in":"48000","rate_out":48000}',
        '{"kind":"hello","rate_in":1e9,"rate_out":48000}',
    ],
)
def test_a_page_that_does_not_say_what_it_is_is_let_go(first: str) -> None:
    async def work(s: Served) -> None:
        await s.paired()
        async with s.page() as ws:
            await ws.send_str(first)
            assert (await ws.receive()).type == aiohttp.WSMsgType.CLOSE
            assert ws.close_code == aiohttp.WSCloseCode.POLICY_VIOLATION
        assert s.glasses.page is None

    run(work)


@pytest.mark.parametrize(
    "message", [b"", b"\x09abc", b"\x01\x00", '{"kind":"rm"}', "[" * 5000, "[]", '{"kind":7}']
)
def test_a_page_that_sends_nonsense_is_let_go_and_the_next_is_served(message: bytes | str) -> None:
    async def work(s: Served) -> None:
        await s.paired()
        async with s.page() as ws:
            await ws.send_json(HELLO)
            await ws.receive_json()
            await (ws.send_bytes(message) if isinstance(message, bytes) else ws.send_str(message))
            while (await ws.receive()).type not in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED):
                pass
        async with s.page() as ws:
            await ws.send_json(HELLO)
            assert (await ws.receive_json())["kind"] == "snapshot"

    run(work)


def test_a_message_of_many_megabytes_is_refused() -> None:
    async def work(s: Served) -> None:
        await s.paired()
        async with s.page() as ws:
            await ws.send_json(HELLO)
            await ws.receive_json()
            await ws.send_bytes(b"\x02" + bytes(3 << 20))
            assert (await ws.receive()).type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)
        async with s.http.post(f"{s.url}/api/pair", data=b"{" + b" " * (1 << 20), headers=s.own) as r:
            assert r.status in (400, 413)

    run(work)


@pytest.mark.parametrize("over_tls", [False, True])
def test_who_is_not_paired_can_neither_dawdle_nor_fill_the_house(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, over_tls: bool
) -> None:
    tls = certificate(tmp_path, HERE)[0] if over_tls else None
    trusted = ssl.create_default_context(cafile=str(tmp_path / "page.pem")) if over_tls else True
    entered: list[bool] = []
    enters = Gate.enters

    def counted(gate: Gate, address: str) -> bool:
        entered.append(enters(gate, address))
        return entered[-1]

    monkeypatch.setattr(Gate, "enters", counted)
    monkeypatch.setattr("os1_edge.web.gate.HEAD_S", 2.0)

    async def work(s: Served) -> None:
        port = int(s.url.rpartition(":")[2])
        await s.paired()
        async with s.page() as ws:
            await ws.send_json(HELLO)
            await ws.receive_json()
            entered.clear()
            crowd = [await asyncio.open_connection("127.0.0.1", port) for _ in range(EACH + 10)]
            if not over_tls:  # over TLS not even the handshake is begun
                for _, writer in crowd:
                    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
            # Those too many are shut out at once, the others when they have said nothing of use.
            ends = await asyncio.gather(*(reader.read() for reader, _ in crowd), return_exceptions=True)
            assert all(end == b"" or isinstance(end, ConnectionError) for end in ends)
            assert len(entered) == EACH + 10
            assert sum(entered) < EACH  # the paired page has a place
            for _, writer in crowd:
                writer.close()
            s.watched.tell({"kind": "state", "state": "muted"})  # the paired page is still there
            assert (await ws.receive_json())["state"] == "muted"
        async with s.http.get(f"{s.url}/api/state") as r:
            assert r.status == 200

    run(work, tls, trusted)


def test_a_body_that_never_comes_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os1_edge.web.guard.PATIENCE_S", 0.3)

    async def work(s: Served) -> None:
        port = int(s.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST /api/pair HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: {s.url}\r\n"
        writer.write(f"{head}Content-Length: 20\r\n\r\n{{".encode())
        assert b" 408 " in await reader.readline()
        writer.close()

    run(work)


def test_on_the_network_it_is_tls_with_a_certificate_that_stays(tmp_path: Path) -> None:
    async def go() -> None:
        tls, fingerprint = certificate(tmp_path, HERE)
        trusted = ssl.create_default_context(cafile=str(tmp_path / "page.pem"))
        async with serving(tls) as s, s.http.get(s.url, ssl=trusted) as r:
            assert r.status == 200
        assert certificate(tmp_path, HERE)[1] == fingerprint
        assert certificate(tmp_path, [*HERE, "192.0.2.7"])[1] != fingerprint
        (tmp_path / "page.pem").write_bytes(b"broken")
        certificate(tmp_path, HERE)
        assert (tmp_path / "page.pem").stat().st_mode & 0o777 == 0o600

    asyncio.run(go())
