"""Disks that are full or closed: the last version stays, and the next write succeeds."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from evergraph import KnowledgeGraph, UserError
from evergraph.store import Store
from survival import LIMITS, PROGRAM, elsewhere, insert, orphans, template_for, versions_of


@pytest.mark.parametrize("start", ["none", "template"])
def test_a_write_that_does_not_fit_leaves_the_last_version(tmp_path: Path, start: str) -> None:
    if start == "template":
        template_for("update", tmp_path / start)
        start = str(tmp_path / start)
    held = versions_of(Path(start))
    (tmp_path / "limited").mkdir()
    codes = elsewhere("insert_with_small_files", tmp_path / "limited", start)
    assert codes == [1] * len(LIMITS)
    for limit in LIMITS:
        path = tmp_path / "limited" / str(limit)
        assert versions_of(path) == held
        assert insert(path) == 0
        kg = KnowledgeGraph.open(path)
        assert kg.version == len(held) and kg.verify() == sum(kg.counts().values()) > 800
        Store(path).compact()
        assert orphans(path) == set()


@contextmanager
def tiny_disk(path: Path, size: str) -> Iterator[None]:
    path.mkdir()
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path], check=False).returncode:
        pytest.skip("needs the right to mount a small disk")
    try:
        yield
    finally:
        subprocess.run(["umount", path], check=True)


def test_a_full_disk_leaves_the_last_version(tmp_path: Path) -> None:
    """With no room, a page, two, … until the update fits; after each failure room is made and taken again."""
    with tiny_disk(tmp_path / "disk", "1m"):
        path, filler = tmp_path / "disk" / "g", tmp_path / "disk" / "filler"
        template_for("update", path)
        held = versions_of(path)
        failures = 0
        for pages in count():
            fill(filler, pages * 4096)
            failed = insert(path)
            filler.unlink()
            if not failed:
                break
            failures += 1
            assert versions_of(path) == held
            KnowledgeGraph.open(path).verify()
        assert failures > 4
        kg = KnowledgeGraph.open(path)
        assert kg.verify() == sum(kg.counts().values()) > 800
        assert Store(path).compact().version >= kg.version
        assert orphans(path) == set()


def fill(path: Path, leave: int) -> None:
    """Take all room but some."""
    with path.open("wb") as out:
        stat = os.statvfs(path.parent)
        out.write(bytes(max(0, stat.f_bavail * stat.f_frsize - leave)))


def test_compacting_a_full_disk_leaves_the_last_version(tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "disk", "1m"):
        path, filler = tmp_path / "disk" / "g", tmp_path / "disk" / "filler"
        template_for("update", path)
        held = versions_of(path)
        fill(filler, 4096)
        with pytest.raises(UserError, match="EG403"):
            Store(path).compact()
        filler.unlink()
        assert versions_of(path) == held
        Store(path).compact()
        assert versions_of(path) == [*held, held[-1]]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everyone can enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_store_that_may_only_be_read_can_be_read(open_folder: Path) -> None:
    path = open_folder / "g"
    template_for("update", path)
    for folder in (path, *path.rglob("*")):
        folder.chmod(0o555 if folder.is_dir() else 0o444)
    held = versions_of(path)
    assert elsewhere("as_nobody", path) == "EG403"
    assert versions_of(path) == held
    for folder in (path, *path.rglob("*")):
        folder.chmod(0o755)


def test_a_store_cannot_be_made_where_nothing_may_be_written(open_folder: Path) -> None:
    open_folder.chmod(0o555)
    assert elsewhere("as_nobody", open_folder / "g") == "EG403"
    open_folder.chmod(0o755)
    assert list(open_folder.iterdir()) == []


def test_an_input_that_may_not_be_read_changes_nothing(open_folder: Path) -> None:
    template_for("update", open_folder / "g")
    held = versions_of(open_folder / "g")
    (open_folder / "g" / ".writer").chmod(0o666)
    (open_folder / "secret.nt").write_text("<http://a> <http://p> <http://b> .\n")
    (open_folder / "secret.nt").chmod(0o000)
    assert elsewhere("as_nobody", open_folder / "g", open_folder / "secret.nt") == "EG101"
    assert versions_of(open_folder / "g") == held


@pytest.mark.parametrize("target", ["nowhere", "/proc/self/mem"])
def test_an_input_that_cannot_be_read_is_named_and_changes_nothing(tmp_path: Path, target: str) -> None:
    """A link to nothing, and a file that gives an error when it is read."""
    template_for("update", tmp_path / "g")
    kept = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file() and p.name != ".writer"}
    (tmp_path / "bad.nt").symlink_to(target)
    for kg in (KnowledgeGraph.open(tmp_path / "g"), KnowledgeGraph(PROGRAM)):
        with pytest.raises(UserError, match=r"EG101.*bad\.nt"):
            kg.update(insert=tmp_path / "bad.nt")
    (tmp_path / "bad.nt").unlink()
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file() and p.name != ".writer"} == kept
