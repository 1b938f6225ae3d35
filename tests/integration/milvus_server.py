"""``PYTHON milvus_server.py FOLDER PORT``: becomes the Milvus server of PyPI's package ``milvus``, which that
Python has: the whole server in one process, with its users and privileges, all data under FOLDER.

It listens on all addresses, so it belongs into a network of its own (``scripts/test-hosted --milvus``).
"""

import os
import socket
import sys
from pathlib import Path

from milvus import MilvusServerConfig, _initialize_data_files


def main(folder: str, port: str) -> None:
    unpacked = Path(sys.prefix) / "server"
    _initialize_data_files(str(unpacked))
    ours = {"authorization_enabled": True}
    if pem := os.environ.get("MILVUS_PEM"):
        ours |= {"tls_mode": 1, "server_pem_path": pem, "server_key_path": pem}
    config = MilvusServerConfig(data_dir=folder)
    for key, value in ours.items():
        config.set(key, value)
    for key, value in {"interval": 2, "dropTolerance": 10}.items():  # seconds; of an hour, and three
        config.set(f"dataCoord.gc.{key}", value)
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
