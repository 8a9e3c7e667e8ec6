"""Function words: are real sentences acceptable, and what follows from them, when one changes?"""
