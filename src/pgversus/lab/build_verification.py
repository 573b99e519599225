"""Verification of builds: compares the running server with the requested build and refuses a mismatch."""

import re
from collections.abc import Mapping, Sequence

from pgversus.builds.model import Build
from pgversus.builds.source_tree import diff_stat
from pgversus.errors import BuildError
from pgversus.postgres.fingerprint import Fingerprint
from pgversus.records.preparation import BuildRecord, Difference
from pgversus.study.build_options import NO_OPTIONS, BuildOptions, BuildSystem

_COMPILED_IN = ("block_size", "wal_block_size", "segment_size", "debug_assertions")
_NUMBER = re.compile(r"\d+(?:\.\d+)+")
_BYTES_PER_KB = 1024


def compiled_in(fingerprint: Fingerprint) -> dict[str, str]:
    """Return the build properties that the running server reports."""
    found = {name: fingerprint.settings[name].value for name in _COMPILED_IN if name in fingerprint.settings}
    configured = fingerprint.properties.configuration.get("CONFIGURE")
    return found if configured is None else {**found, "CONFIGURE": configured}


def built_from(build: Build | None, baseline: Build | None) -> BuildRecord | None:
    """Return the inputs of a build by pgversus, and the changes since the baseline's commit."""
    made = build.made_from if build is not None else None
    if made is None:
        return None
    base = baseline.made_from if baseline is not None else None
    source = made.source
    return BuildRecord(
        source=source.words,
        source_sha256=source.sha256,
        checked=source.checked,
        commit=source.commit,
        is_changed=source.is_changed,
        options=made.options.words,
        profile=made.manner.profile.value,
        system=(made.manner.system or BuildSystem.CONFIGURE).value,
        diff_stat=diff_stat(base.source, source) if base is not None and base.source != source else None,
    )


def check_same_build(label: str, build: Build | None, fingerprint: Fingerprint) -> None:
    """Raise BuildError if the running server does not match the requested build."""
    made = build.made_from if build is not None else None
    if build is None or made is None:
        return
    requested, found = _requested(build.version, made.options), _found(fingerprint, made.options)
    wrong = [name for name, value in requested.items() if found.get(name) != value]
    if not _is_compiler(fingerprint.compiler, made.compiler):
        requested, found = {**requested, "compiler": made.compiler}, {**found, "compiler": fingerprint.compiler}
        wrong.append("compiler")
    if "with-llvm" in made.options.handed_on and not fingerprint.properties.has_jit:
        requested, found = {**requested, "JIT": "available"}, {**found, "JIT": "not available"}
        wrong.append("JIT")
    if wrong:
        raise BuildError(
            "the running server does not match the requested build",
            slug="build-mismatch",
            where=label,
            found=", ".join(f"{name} {found.get(name, 'not reported')}" for name in wrong),
            expected=", ".join(f"{name} {requested[name]}" for name in wrong),
            to_do=f"pgversus servers remove {build.bin_directory.parent.name}, then run again to rebuild it",
        )


def drop_requested_differences(
    differences: Sequence[Difference], builds: Sequence[Build | None]
) -> tuple[Difference, ...]:
    """Return the differences between builds without those that server names request, which are being compared."""
    options = [build.made_from.options if build is not None and build.made_from else NO_OPTIONS for build in builds]
    requested = _names_of(options)
    is_handed_on = len({one.handed_on for one in options}) > 1
    return tuple(
        one
        for one in differences
        if (one.kind, one.name) not in requested
        and not (is_handed_on and one.kind == "build" and one.name in ("JIT available", "libraries"))
    )


def _requested(version: str, options: BuildOptions) -> dict[str, str]:
    return {
        "server_version": version,
        "block_size": str(options.block_size_kb * _BYTES_PER_KB),
        "wal_block_size": str(options.wal_block_size_kb * _BYTES_PER_KB),
        "debug_assertions": "on" if options.cassert else "off",
        **({} if options.cflags is None else {"CFLAGS": options.cflags}),
    }


def _found(fingerprint: Fingerprint, options: BuildOptions) -> dict[str, str]:
    found = {name: setting.value for name, setting in fingerprint.settings.items()}
    flags = options.cflags or ""
    # configure adds flags of its own.
    has_flags = set(flags.split()) <= set(fingerprint.build_flags.split())
    return {**found, "CFLAGS": flags if has_flags else fingerprint.build_flags}


def _is_compiler(reported: str, requested: str) -> bool:
    """Compare compilers by version: configure, meson and the compiler itself use different names for it."""
    number = _NUMBER.search(reported)
    # Whole numbers: 3.2.0 is not 13.2.0.
    return number is None or re.search(rf"(?<![\d.]){re.escape(number[0])}(?!\d)", requested) is not None


def _names_of(options: Sequence[BuildOptions]) -> set[tuple[str, str]]:
    """Return kind and name of every difference that follows from differing options of these builds."""
    follows: Mapping[str, Sequence[tuple[str, str]]] = {
        "block_size_kb": (
            ("build", "--with-blocksize"),
            ("setting", "block_size"),
            # A number of pages without a unit, scaled to the same number of bytes (study/comparison.py).
            ("setting", "bgwriter_lru_maxpages"),
        ),
        "wal_block_size_kb": (("build", "--with-wal-blocksize"), ("setting", "wal_block_size")),
        "cassert": (("build", "--enable-cassert"), ("setting", "debug_assertions")),
        "cflags": (("build", "CFLAGS"),),
        "compiler": (("build", "compiler"),),
    }
    names = {
        pair for name, pairs in follows.items() if len({getattr(one, name) for one in options}) > 1 for pair in pairs
    }
    handed_on = [frozenset(one.handed_on) for one in options]
    words = frozenset[str]().union(*handed_on) - handed_on[0].intersection(*handed_on)
    return names | {("build", f"--{word.partition('=')[0]}") for word in words}


def library_differences(libraries: Sequence[frozenset[str]]) -> tuple[Difference, ...]:
    """Return a difference if builds link different libraries. libraries: of each arm; empty if unknown."""
    known = [one for one in libraries if one]
    if len(set(known)) < 2:  # noqa: PLR2004 - alike, or nothing to compare with
        return ()
    everywhere = frozenset.intersection(*known)
    values = tuple(" ".join(sorted(one - everywhere)) for one in libraries)
    return (Difference(kind="build", name="libraries", values=values, is_default=False),)
