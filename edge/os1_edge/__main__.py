"""``python -m os1_edge``: the same as ``os1``."""

from os1_edge.cli import main

main()
