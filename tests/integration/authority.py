"""Signs certificates for tests: of the right authority or another, for these days or days gone by."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

WEEK = timedelta(days=7)


class Authority:
    """A certificate authority with a folder of its own."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._key = ec.generate_private_key(ec.SECP256R1())
        made = _builder(name, name, self._key, datetime.now(UTC) - WEEK).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.cert = folder / f"{name}-ca.pem"
        self.cert.write_bytes(_pem(made.sign(self._key, hashes.SHA256())))

    def issue(self, who: str, since: timedelta = -WEEK) -> tuple[Path, Path]:
        """A certificate and its key, for localhost; for two weeks from ``since`` (from now) on."""
        key, begins = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC) + since
        hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        made = _builder(who, self._name, key, begins).add_extension(
            x509.SubjectAlternativeName(hosts), critical=False
        )
        base = self._folder / f"{self._name}-{who}-{since.days}"
        cert, secret = base.with_suffix(".pem"), base.with_suffix(".key")
        cert.write_bytes(_pem(made.sign(self._key, hashes.SHA256())))
        secret.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return cert, secret


def _builder(
    who: str, issuer: str, key: ec.EllipticCurvePrivateKey, begins: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_named(who))
        .issuer_name(_named(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(begins + 2 * WEEK)
    )


def _named(who: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, who)])


def _pem(made: x509.Certificate) -> bytes:
    return made.public_bytes(serialization.Encoding.PEM)
