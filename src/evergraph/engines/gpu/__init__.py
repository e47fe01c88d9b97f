"""Facts on a GPU: the memory engine over CuPy."""
