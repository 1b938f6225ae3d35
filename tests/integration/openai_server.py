"""A server that speaks as much of OpenAI's protocol as vLLM and llama-server do to us, in its own process:
``python openai_server.py PORT [--host H] [--loads S] [--fails WORDS] [--child]``. It counts, and does what
the question says:

    die     ends itself in the middle of the answer
    busy    takes no more, and says so

Prints what it is asked, as servers do when they are told to. Standard library only.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LOADED = time.monotonic()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path not in ("/health", "/v1/models"):
            self.send_error(404)
            return
        body = b"{}"
        self.send_response(200 if time.monotonic() >= LOADED else 503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        print("asked", asked, flush=True)
        *_, last = [m["content"] for m in asked["messages"] if m["role"] == "user"]
        question = last if isinstance(last, str) else last[-1]["text"]
        said = "".join(m["content"] for m in asked["messages"] if m["role"] == "assistant")
        if "busy" in question:
            self.send_response(429)
            self.send_header("Retry-After", "7")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, word in enumerate(_words(last, said.count(" "), asked["max_tokens"])):
            self._event(choices=[{"delta": {"content": word}}])
            if number == 1 and "die" in question:
                os._exit(3)
        self._event(choices=[{"delta": {}, "finish_reason": "stop"}])
        self._event(choices=[], usage={"prompt_tokens": 9, "completion_tokens": asked["max_tokens"]})
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _event(self, **part: Any) -> None:
        self._chunk(b"data: " + json.dumps(part).encode() + b"\n\n")
        time.sleep(0.01)

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))


def _words(asked: Any, start: int, count: int) -> list[str]:
    if isinstance(asked, str):
        return [f"{number} " for number in range(start, start + count)]
    pictures = [base64.b64decode(p["image_url"]["url"].partition(",")[2]) for p in asked[:-1]]
    return [f"a picture of {len(picture)} bytes " for picture in pictures]


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("port", type=int)
    options.add_argument("--host", default="127.0.0.1")
    options.add_argument("--loads", type=float, default=0.0)
    options.add_argument("--fails", default="")
    options.add_argument("--child", action="store_true", help="has a process of its own, as vLLM has")
    given = options.parse_args()
    if given.child:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
    if given.fails:
        print(given.fails)
        sys.exit(7)
    LOADED += given.loads
    ThreadingHTTPServer((given.host, given.port), Handler).serve_forever()
