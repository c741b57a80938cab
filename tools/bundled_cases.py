"""
The recordings in the wheel: tests/recordings/conflict as conflict/judge/cases.tar.xz, the same bytes each time.

    python -m tools.bundled_cases
"""

from __future__ import annotations

import io
import lzma
import tarfile
from pathlib import Path

from conflict.judge.bundled import ARCHIVE

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "tests" / "recordings" / "conflict"
TARGET = ROOT / "conflict" / "judge" / ARCHIVE


def packed(source: Path = SOURCE) -> bytes:
    """Return all files of a folder as a compressed archive, without owners and times."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(each for each in source.rglob("*") if each.is_file()):
            member = tarfile.TarInfo(path.relative_to(source).as_posix())
            member.size = path.stat().st_size
            archive.addfile(member, io.BytesIO(path.read_bytes()))
    return lzma.compress(out.getvalue(), preset=9 | lzma.PRESET_EXTREME)


if __name__ == "__main__":
    TARGET.write_bytes(packed())
