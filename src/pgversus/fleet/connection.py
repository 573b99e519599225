"""Addresses of a fleet, its encryption, and a configuration of Dask that does not disturb measurements."""

import logging
import signal
import ssl
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import dask
from distributed.security import Security

from pgversus.errors import StudyError
from pgversus.fleet.certificates import AUTHORITY, CERTIFICATE, KEY, Certificates, certificates_in

PORT = 8786
LOOPBACK = "127.0.0.1"
NO_PAGES = f"{LOOPBACK}:0"
"""Address of Dask's web server, which a fleet runs without pages."""
HOST = "host"
"""The resource of a worker that measures. Each worker has one of it, so that it runs one task at a time."""
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end the scheduler or a worker without an error."""
_CONFIGURATION = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.tick.interval": "5s",
    "distributed.admin.tick.limit": "30s",
    "distributed.worker.memory.monitor-interval": "5s",
    "distributed.scheduler.work-stealing": False,
    # Only the ledger decides whether a block is measured again, and on which host.
    "distributed.scheduler.allowed-failures": 0,
    # A task for a host that is gone fails instead of waiting for it.
    "distributed.scheduler.no-workers-timeout": "60s",
    "distributed.scheduler.active-memory-manager.start": False,
    # The web pages of Dask are neither encrypted nor protected.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.diagnostics.nvml": False,
    "distributed.comm.timeouts.connect": "10s",
}


def configure() -> None:
    """Configure Dask so that a worker does not disturb its host, and so that pgversus makes all decisions."""
    dask.config.set(_CONFIGURATION)
    # The usual messages of Dask are about its internals.
    logging.getLogger("distributed").setLevel(logging.WARNING)


def resource_of(name: str) -> str:
    """Return the resource that only the worker with this name has. Unlike its address, it survives a restart."""
    return f"on_{name}"


def security_of(folder: Path | None) -> Security | None:
    """Return the encryption with the certificates in this folder; None without a folder.

    StudyError if a file is missing or cannot be used: Dask reads them only when it connects.
    """
    if folder is None:
        return None
    files = certificates_in(folder)
    _check_readable(files, folder)
    certificate, key = str(files.certificate), str(files.key)
    return Security(
        require_encryption=True,
        tls_ca_file=str(files.authority),
        tls_client_cert=certificate,
        tls_client_key=key,
        tls_scheduler_cert=certificate,
        tls_scheduler_key=key,
        tls_worker_cert=certificate,
        tls_worker_key=key,
    )


def _check_readable(files: Certificates, folder: Path) -> None:
    try:
        context = ssl.create_default_context(cafile=str(files.authority))
        context.load_cert_chain(files.certificate, files.key)
    except OSError as error:
        # Every error of OpenSSL is an OSError.
        raise StudyError(
            "the certificates in this folder cannot be used",
            slug="fleet-no-certificates",
            where=str(folder),
            found=str(error),
            expected=f"{AUTHORITY}, {CERTIFICATE} and {KEY} that belong together and that this user can read",
            to_do="run pgversus fleet certificates DIR NAME..., then copy DIR/NAME to the host",
        ) from error


def checked_address(text: str, *, has_certificates: bool) -> str:
    """Return the address of a scheduler in full: `tls://host:port`, or `tcp://` for one on this host alone.

    StudyError for other addresses: everyone who can connect to a fleet may run programs on its hosts.
    """
    scheme = "tls" if has_certificates else "tcp"
    try:
        parts = urlsplit(text if "://" in text else f"{scheme}://{text}")
        port = parts.port or PORT
    except ValueError as error:
        # An unbalanced bracket, or a port that is not a number.
        raise _wrong(text, "not an address of the form HOST:PORT") from error
    if parts.scheme not in ("tls", "tcp") or not parts.hostname or parts.path.strip("/"):
        raise _wrong(text, "not an address of the form HOST:PORT")
    if parts.scheme == "tls" and not has_certificates:
        raise _wrong(text, "tls:// without --certificates")
    if parts.scheme == "tcp" and has_certificates:
        raise _wrong(text, "tcp:// with --certificates")
    if parts.scheme == "tcp" and not is_loopback(parts.hostname):
        raise _wrong(text, "an unencrypted connection to another host")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Return whether a name or address can be reached from this host only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _wrong(text: str, found: str) -> StudyError:
    return StudyError(
        "invalid fleet address",
        slug="fleet-address",
        where=text,
        found=found,
        expected="tls://HOST:PORT with --certificates, or tcp://127.0.0.1:PORT",
        to_do="create certificates with pgversus fleet certificates, and copy to each host its own",
    )
