"""Writes the corpus anew: `python tests/transcripts/make.py`. The files are committed; a test holds them to this."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import honest_scenes
import loop_scenes
from recorded import WRITERS, Session

HERE = Path(__file__).parent


def write_corpus(folder: Path) -> None:
    """Every scene into `honest/` or `loops/` below the folder."""
    for part, scenes in (("honest", honest_scenes.SCENES), ("loops", loop_scenes.SCENES)):
        shutil.rmtree(folder / part, ignore_errors=True)
        (folder / part).mkdir(parents=True)
        for name, (form, tell) in scenes.items():
            session = Session(name)
            tell(session)
            WRITERS[form](session, folder / part)


if __name__ == "__main__":
    write_corpus(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
