"""The revisions of a model, such as its training steps, on the same questions."""
