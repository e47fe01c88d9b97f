"""A Spark session for local work, and clear words where there can be none."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evergraph.errors import UserError

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.driver.memory": "4g",
    "spark.driver.maxResultSize": "0",
    "spark.log.level": "ERROR",
}
"""Shards are few and their rows large: Spark has nothing to adapt, and its bars would write over ours."""


def make_session(master: str = "local[*]") -> Any:
    """The session that is running, or a new one. Starting one takes 5 to 12 seconds."""
    if find_spec("pyspark") is None:
        raise UserError("EG203", "the Spark engine needs PySpark", "pip install 'evergraph[spark]', or use --engine memory")
    if master.startswith("local") and not _java():
        raise UserError(
            "EG202",
            "Spark needs Java 17 or newer and found none",
            "install it (Debian: apt install openjdk-17-jre-headless, macOS: brew install openjdk@17), or use --engine memory",
        )
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("evergraph").master(master)
    quiet = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}"
    for name, value in {**SETTINGS, "spark.driver.extraJavaOptions": quiet}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return bool(home and shutil.which("java", path=os.path.join(home, "bin"))) or shutil.which("java") is not None
