"""pgversus in a process that is forked after its imports, which take most of the time of a short command."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path

import scipy.special
import scipy.stats

from pgversus.cli.main import main

_IMPORTED_LATE = (scipy.special, scipy.stats)
_FORKS = get_context("forkserver")
# The fork server imports this module, and with it everything else.
_FORKS.set_forkserver_preload([__name__])


def run_preloaded(
    arguments: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    umask: int,
    outputs: tuple[Path, Path],
    timeout_s: float,
) -> int:
    """Run pgversus and return its exit code.

    umask: unchanged if negative.
    outputs: files for standard output and standard error.
    """
    process = _FORKS.Process(target=_run, args=(arguments, directory, environment, umask, outputs))
    process.start()
    process.join(timeout_s)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise TimeoutError(f"pgversus {' '.join(arguments)}: not finished after {timeout_s:.0f} s")
    return process.exitcode


def _run(
    arguments: Sequence[str],
    directory: Path,
    environment: Mapping[str, str],
    umask: int,
    outputs: tuple[Path, Path],
) -> None:
    for descriptor, path in enumerate(outputs, start=1):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(file, descriptor)
        os.close(file)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    if umask >= 0:
        os.umask(umask)
    # Jobs in the background of a script ignore these signals, and so would servers.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    sys.argv = ["pgversus", *arguments]
    main()
