"""The README and the guides are code: what they print is what happens."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def timeless(text: str) -> str:
    return re.sub(r"\d+\.\d+ s", "T s", text)


def test_python_blocks_print_what_the_readme_says() -> None:
    printed = io.StringIO()
    namespace: dict[str, object] = {}
    with contextlib.redirect_stdout(printed):
        for block in blocks("python"):
            exec(compile(block, "README.md", "exec"), namespace)
    assert printed.getvalue() == "".join(blocks("text")) != ""


def commands() -> list[tuple[str, str]]:
    found = []
    for block in blocks("console"):
        for part in block.split("$ ")[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for the whole session: later commands use what earlier ones made."""
    made = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "examples", made / "examples")
    return made


@pytest.mark.parametrize(("command", "expected"), commands(), ids=[c for c, _ in commands()])
def test_console_blocks_print_what_the_readme_says(command: str, expected: str, folder: Path) -> None:
    words = shlex.split(command)
    assert words[0] == "evergraph"
    run = [sys.executable, "-c", "from evergraph.cli import main; main()", *words[1:]]
    done = subprocess.run(run, capture_output=True, text=True, cwd=folder, check=False)
    mistakes = "" if done.returncode != 2 else done.stderr
    assert timeless(done.stdout + mistakes) == timeless(expected)


@pytest.mark.parametrize("page", [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"], ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_number_of_a_mistake_is_documented() -> None:
    from evergraph.errors import MISTAKES

    guide = (ROOT / "docs" / "rules.md").read_text()
    named = set(re.findall(r"EG\d{3}", guide))
    for low, high in re.findall(r"EG(\d{3}) – EG(\d{3})", guide):
        named |= {f"EG{n:03}" for n in range(int(low), int(high) + 1)}
    assert set(MISTAKES) <= named
