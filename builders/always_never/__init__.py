"""Always-Never: how often does a statement hold, from never to always?"""
