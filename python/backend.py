"""The build backend: scikit-build-core, which finds the C core beside it in a source distribution."""

import contextlib
import pathlib
import shutil

from scikit_build_core import build
from scikit_build_core.build import *  # noqa: F403

HERE = pathlib.Path(__file__).parent


@contextlib.contextmanager
def core_beside():
    """The core's sources as python/core while the archive is made. An unpacked archive has them."""
    beside, above = HERE / "core", HERE.parent / "c"
    if beside.exists():
        yield
        return
    try:
        for part in ("src", "include"):
            shutil.copytree(above / part, beside / part)
        yield
    finally:
        shutil.rmtree(beside)


def build_sdist(sdist_directory, config_settings=None):
    with core_beside():
        return build.build_sdist(sdist_directory, config_settings)
