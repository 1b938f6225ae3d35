"""`python -m os1_cloud` is `os1 serve` where the edge's command line is not installed."""

from os1_cloud.cli import serve

if __name__ == "__main__":
    serve(prog_name="os1 serve")
