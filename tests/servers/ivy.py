"""A Java archive of Maven Central, fetched by Ivy, which comes with PySpark."""

from __future__ import annotations

import os
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

from . import tools
from .cache import UnavailableError


def java() -> str:
    """The program `java`: that of JAVA_HOME, else the one on PATH. Raises UnavailableError."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if found is None:
        raise UnavailableError("there is no Java to download with, or to run: set JAVA_HOME")
    return found


def spark_jars() -> Path:
    """The folder of the Java archives that PySpark brings. Raises UnavailableError."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise UnavailableError("PySpark, whose Java archives are needed here, is not installed")
    return Path(spec.origin).with_name("jars")


def fetch(organisation: str, module: str, version: str, into: Path) -> Path:
    """Put the module's archive, without what it depends on, into a folder; returns its path.

    Raises UnavailableError when there is no Java or no PySpark, or the archive cannot be fetched.
    """
    (ivy,) = spark_jars().glob("ivy-*.jar")
    with tempfile.TemporaryDirectory(dir=into, prefix=".ivy-") as workspace:
        command = [java(), "-jar", str(ivy), "-cache", workspace, "-warn", "-notransitive", "-types", "jar"]
        archive = into / f"{module}-{version}.jar"
        module_of_archive = ["-dependency", organisation, module, version, "-confs", "default"]
        tools.run([*command, *module_of_archive, "-retrieve", f"{into}/[artifact]-[revision].[ext]"], into)
    if not archive.exists():
        raise UnavailableError(f"{organisation}:{module}:{version} could not be downloaded")
    return archive
