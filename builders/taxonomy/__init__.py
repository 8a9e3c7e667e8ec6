"""Taxonomy conjunction: what are two things both a type of?"""
