"""Check for the programs that some tests need besides Python and make, or install them.

python -m tools.requirements PART    exit status 0: all are installed; 1: some are missing, and one line names them;
                                     2: the same if nothing may be skipped (CI is set)
python -m tools.requirements --install
"""

import os
import shutil
import subprocess
import sys

_PARTS = {
    "builds": (("gcc",), ("bison",), ("flex",), ("m4",), ("perl",), ("git",), ("make",), ("meson",), ("strace",)),
    "browser": (("chromium", "chromium-browser", "google-chrome", "chrome"),),
}
"""The programs of each part, each with all its possible names."""
_PACKAGES = (
    *("bison", "ccache", "chromium", "flex", "fonts-noto-cjk", "gcc", "git", "libc6-dev", "m4", "make", "meson"),
    *("iproute2", "munge", "ninja-build", "perl", "slurm-wlm", "strace"),
)
"""Packages of Debian and Ubuntu."""
_INSTALL = ("apt-get", "install", "--yes", "--no-install-recommends", *_PACKAGES)


def missing(part: str) -> list[str]:
    """Return the programs that a part of the tests needs and that are not installed."""
    return [names[0] for names in _PARTS[part] if not any(map(shutil.which, names))]


def install() -> int:
    """Install all packages as root on Debian or Ubuntu, otherwise print the command; return the exit status."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print(f"as root on Debian or Ubuntu: {' '.join(_INSTALL)}")
        return 0
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (("apt-get", "--quiet=2", "update"), (*_INSTALL, "--quiet=2")):
        status = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False).returncode
        if status != 0:
            return status
    return 0


def main(arguments: list[str]) -> int:
    """Return the exit status of one command line."""
    if arguments == ["--install"]:
        return install()
    (part,) = arguments
    lacking = missing(part)
    if not lacking:
        return 0
    print(f"not run, {', '.join(lacking)} not installed: the {part} tests (`make tools` installs what they need)")
    return 2 if os.environ.get("CI") else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
