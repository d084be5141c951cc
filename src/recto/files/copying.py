"""A copy of the folder files are kept in, while it is in use. Refuses to copy what is still being written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from recto.files.blobs import is_ours
from recto.files.local_storage import STAGED

# How many files are copied between two words about it.
STEP = 100


def copy_files(source: Path, target: Path, copied: Callable[[int], None]) -> int:
    """Copy what the target does not have yet, each file whole or not at all. Returns how many that were."""
    count = 0
    for place in _blobs(source):
        goal = target / place
        if goal.exists():
            continue
        goal.parent.mkdir(parents=True, exist_ok=True)
        draft = goal.with_name(f"{goal.name}.part")
        try:
            shutil.copyfile(source / place, draft)
        except FileNotFoundError:
            # Deleted meanwhile.
            continue
        draft.replace(goal)
        count += 1
        if count % STEP == 0:
            copied(count)
    return count


def _blobs(folder: Path) -> Iterator[Path]:
    for here, below, names in os.walk(folder):
        if Path(here) == folder and STAGED in below:
            below.remove(STAGED)
        # Without the label: a copy is another storage, and gets its own.
        for name in filter(is_ours, names):
            yield (Path(here) / name).relative_to(folder)
