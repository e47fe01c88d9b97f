"""A measurement in a process of its own: nothing of the run before it is left, and what it started ends with it.

Contract: the module is given its arguments, the number of cores and the file to which it writes one JSON object; the object,
or one with `status` and `line` where there is none, is what comes back.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evergraph.bench.run_one import environment


def apart(module: str, arguments: Sequence[str], cores: int, limit: float) -> dict[str, Any]:
    """Run `python -m module *arguments CORES RESULT`, at most `limit` seconds, in a session of its own."""
    with TemporaryDirectory() as folder:
        result, errors = Path(folder, "result.json"), Path(folder, "errors")
        command = [sys.executable, "-m", module, *arguments, str(cores), str(result)]
        with errors.open("wb") as stream:
            process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=stream, env=environment(cores), start_new_session=True
            )
            try:
                code = process.wait(limit)
            except BaseException as reason:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                if isinstance(reason, subprocess.TimeoutExpired):
                    return {"status": "timeout", "line": f"stopped after {limit} s"}
                raise
        if result.exists():
            found: dict[str, Any] = json.loads(result.read_text())
            return found
        last = errors.read_text(errors="replace").strip().splitlines()[-1:]
        ended = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        return {"status": "failed", "line": " · ".join([ended, *last])[:200]}
