# Read by CMake right after llama-cpp-python's project() line. A normal variable wins over its forced
# cache entry (policy CMP0126): the "common" library serves llama.cpp's own tools, not the Python package,
# and is a third of the compile time.
set(LLAMA_BUILD_COMMON OFF)
