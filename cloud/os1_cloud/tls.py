"""The server's certificate, and whose clients' certificates it believes; read again when the files change.

server imports it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import grpc

from os1_cloud.address import ServeError

log = logging.getLogger(__name__)
Stamp = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files."""

    cert: Path
    """The server's certificate chain."""
    key: Path
    """Its private key."""
    client_ca: Path | None = None
    """Who signs the clients' certificates; None: clients need none."""

    def read(self) -> grpc.ServerCertificateConfiguration:
        """What they hold.

        Raises:
            ServeError: a file cannot be read or is no PEM.
        """
        chain, key = _pem(self.cert, b"CERTIFICATE"), _pem(self.key, b"PRIVATE KEY")
        roots = None if self.client_ca is None else _pem(self.client_ca, b"CERTIFICATE")
        return grpc.ssl_server_certificate_configuration([(key, chain)], roots)

    def stamp(self) -> Stamp:
        """Changes when a file does."""
        found = []
        for path in (self.cert, self.key, self.client_ca):
            if path is not None:
                stat = path.stat()
                found.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
        return tuple(found)


def read_tls(cert: Path, key: Path, client_ca: Path | None = None) -> grpc.ServerCredentials:
    """The server's credentials. Each handshake looks at the files, so a renewed certificate is used from the
    next connection on; one that cannot be read leaves the old one at work, with a warning.

    Raises:
        ServeError: a file cannot be read or is no PEM.
    """
    files = TlsFiles(cert, key, client_ca)
    first, fetch = files.read(), _fetcher(files)
    ask = client_ca is not None
    # Its stub forgets that the fetcher may say None: nothing has changed.
    return grpc.dynamic_ssl_server_credentials(first, fetch, ask)  # type: ignore[arg-type]


def _fetcher(files: TlsFiles) -> Callable[[], grpc.ServerCertificateConfiguration | None]:
    seen = files.stamp()

    def fetch() -> grpc.ServerCertificateConfiguration | None:
        """The new configuration, None if nothing changed."""
        nonlocal seen
        try:
            stamp = files.stamp()
            if stamp == seen:
                return None
            found = files.read()
        except (ServeError, OSError) as e:
            log.warning("the certificate read before stays: %s", e)
            return None
        seen = stamp
        log.info("the certificate was renewed")
        return found

    return fetch


def _pem(path: Path, word: bytes) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as e:
        raise ServeError(f"{path} cannot be read: {e.strerror}") from e
    if b"-----BEGIN " not in content or word not in content:
        raise ServeError(f"{path} holds no PEM {word.decode().lower()}")
    return content
