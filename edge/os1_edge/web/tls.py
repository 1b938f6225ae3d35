"""A certificate of the companion's own: browsers give camera and microphone to HTTPS pages only, outside of
localhost. Nobody signs it, so the browser warns once; its fingerprint is shown to compare."""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAYS = 397
"""Browsers take no certificate that lasts longer."""

RENEW_DAYS = 30


def certificate(
    folder: Path, hosts: Collection[str], now: datetime | None = None
) -> tuple[ssl.SSLContext, str]:
    """The server's TLS and its certificate's SHA-256 fingerprint; made anew when it is missing, about to
    expire, or not for ``hosts``.

    Raises:
        OSError: ``folder`` cannot be written.
    """
    now = now or datetime.now(UTC)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "page.pem"
    found = _read(file)
    if found is None or not _fits(found, hosts, now):
        found = _make(file, hosts, now)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(file)
    return context, found.fingerprint(hashes.SHA256()).hex(":").upper()


def _read(file: Path) -> x509.Certificate | None:
    try:
        return x509.load_pem_x509_certificate(file.read_bytes())
    except (OSError, ValueError):
        return None


def _fits(found: x509.Certificate, hosts: Collection[str], now: datetime) -> bool:
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    have = {*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))}
    lasts = found.not_valid_after_utc - now > timedelta(days=RENEW_DAYS)
    return set(hosts) <= have and lasts and found.not_valid_before_utc <= now


def _make(file: Path, hosts: Collection[str], now: datetime) -> x509.Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "OS-1 on this device")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=DAYS))
        .add_extension(x509.SubjectAlternativeName([_name(host) for host in sorted(hosts)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    draft = file.with_name(file.name + ".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(secret + made.public_bytes(serialization.Encoding.PEM))
    draft.replace(file)
    return made


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
