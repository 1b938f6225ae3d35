"""The stages that `os1 bench` measures, a module a room."""
