"""Encyclopedic composition: what lies at the end of a path of two or three facts of Wikidata?"""
