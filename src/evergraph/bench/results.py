"""Where a measurement was taken, and how it is kept: one JSON object with machine, date, commit, versions and rows."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from evergraph.bench.lubm import write
from evergraph.bench.run_one import versions

WIDTH = 132
HERE = Path(__file__).parent


def console() -> Console:
    """Where tables go: as wide as the terminal, or wide enough for a table where there is none."""
    found = Console()
    return found if found.is_terminal else Console(width=WIDTH)


def show(written: dict[str, Any], as_json: bool, tables: Iterable[Table], notes: Iterable[str]) -> None:
    """What was written, as JSON; or tables, and below them notes, of which one that begins with "wrong" stands out."""
    if as_json:
        print(json.dumps(written, ensure_ascii=False))
        return
    out = console()
    for table in tables:
        out.print(table)
    for note in notes:
        out.print(note, style="bold red" if note.startswith("wrong") else "dim", highlight=False, soft_wrap=True)


def machine() -> dict[str, Any]:
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }


def save(path: Path, rows: Sequence[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Write rows with everything needed to read them later; what was written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    found = {
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "versions": versions(),
        **more,
        "rows": list(rows),
    }
    path.write_text(json.dumps(found, indent=1) + "\n")
    return found


def commit() -> str:
    """The commit of this source tree, with `+` after it when files differ from it; `unknown` outside a repository."""
    head = _git("rev-parse", "--short=12", "HEAD")
    return (head + ("+" if _git("status", "--porcelain") else "")) if head else "unknown"


def table(title: str, left: Sequence[str], right: Sequence[str]) -> Table:
    """A table of these columns, of words and of numbers."""
    out = Table(title=title)
    for name in left:
        out.add_column(name, no_wrap=True)
    for name in right:
        out.add_column(name, justify="right", no_wrap=True)
    return out


def lubm(universities: int, folder: Path) -> Path:
    """The file of LUBM(universities), seed 0, made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"lubm{universities}.nt"
    if not path.exists():
        write(universities, path, seed=0)
    return path


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=HERE, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())
