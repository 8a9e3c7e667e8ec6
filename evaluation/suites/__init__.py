"""Suites: probes, models, studies and seeds, declared in one file and run as one."""
