"""Items: the questions of a probe, wherever they are read from."""
