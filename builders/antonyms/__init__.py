"""Antonym negation: is a word denied, or affirmed, by one that means the opposite, or the same?"""
