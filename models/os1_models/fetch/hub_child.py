"""Runs in a process of its own: asks the hub about one file, then downloads it into a folder.

    python hub_child.py REPOSITORY REVISION PATH FOLDER

Prints one line saying why and exits 1 when that does not work; the line begins with `SILENT` if the hub
gave no answer at all. Imports nothing of this project.
"""

from __future__ import annotations

import sys
from pathlib import Path

ENVIRONMENT = {
    # Set before huggingface_hub is imported, which reads them once. Seconds.
    "HF_HUB_ETAG_TIMEOUT": "4",
    "HF_HUB_DOWNLOAD_TIMEOUT": "20",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_UPDATE_CHECK": "1",
}
MARKER = ".answered"
"""Written when the hub answers; its growth tells the watching parent that there is life."""
SILENT = "no answer: "
ASK_TIMEOUT_S = 4.0


def one_line(error: Exception) -> str:
    """An error as one line, however many its text has."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def main(repository: str, revision: str, path: str, folder: str) -> None:
    """Ask first, in one request that is not repeated: `hf_hub_download` keeps trying for half a minute."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
    from huggingface_hub.errors import HfHubHTTPError

    address = hf_hub_url(repository, path, revision=revision)
    try:
        get_hf_file_metadata(address, timeout=ASK_TIMEOUT_S)
    except HfHubHTTPError:
        raise
    except Exception as error:  # of whichever HTTP library this version of the hub's stands on
        sys.exit(SILENT + one_line(error))
    with (Path(folder) / MARKER).open("a") as marker:
        marker.write(".")
    hf_hub_download(repository, path, revision=revision, local_dir=folder)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Exception as error:  # whatever it is, the parent wants one line of it
        sys.exit(one_line(error))
