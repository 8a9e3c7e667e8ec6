"""What all tests share: no network, and property tests that do not depend on the clock."""

from __future__ import annotations

import os

from hypothesis import settings

# Before any test imports ``datasets``, which reads them once.
os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_HUB_DISABLE_PROGRESS_BARS="1")

settings.register_profile("kbprobe", deadline=None, derandomize=True)
settings.load_profile("kbprobe")
