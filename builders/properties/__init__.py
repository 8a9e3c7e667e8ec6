"""Property conjunction: what has both of two properties, and what has one but not the other?"""
