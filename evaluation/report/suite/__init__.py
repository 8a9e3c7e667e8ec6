"""The page of a suite: all results below a folder, on one page that can be searched and sorted."""

from evaluation.report.suite.page import DEFAULT_ROWS, SuitePage, make_suite_page

__all__ = ["DEFAULT_ROWS", "SuitePage", "make_suite_page"]
