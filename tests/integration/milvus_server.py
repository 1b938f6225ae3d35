"""Becomes the Milvus server of PyPI's package ``milvus``, whole in one process, with users and TLS.

``PYTHON milvus_server.py FOLDER PORT CERTIFICATE KEY``, by a Python that has it. All data lies under FOLDER.
It listens on all addresses: it belongs into a network of its own (``scripts/test-hosted --milvus``).
"""

import os
import socket
import sys
from pathlib import Path

from milvus import MilvusServerConfig, _initialize_data_files


def main(folder: str, port: str, certificate: str, key: str) -> None:
    unpacked = Path(sys.prefix) / "server"
    _initialize_data_files(str(unpacked))
    config = MilvusServerConfig(data_dir=folder)
    for name, value in (
        ("authorization_enabled", True), ("tls_mode", 1),
        ("server_pem_path", certificate), ("server_key_path", key),
        ("dataCoord.gc.interval", 2), ("dataCoord.gc.dropTolerance", 10),  # seconds, for an hour and three
    ):  # fmt: skip
        config.set(name, value)
    config.resolve()
    config.set("proxy_port", int(port))  # after: it would find a port taken that a killed server just left
    config.write_config()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        health = free.getsockname()[1]
    os.chdir(folder)
    libraries = str(unpacked / "bin")
    os.execve(
        f"{libraries}/milvus",
        ["milvus", "run", "standalone"],
        {**os.environ, "DEPLOY_MODE": "STANDALONE", "METRICS_PORT": str(health),
         "MILVUS_RUN_DIR": f"{folder}/run", "LD_LIBRARY_PATH": libraries},
    )  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
