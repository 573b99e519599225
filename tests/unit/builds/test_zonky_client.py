"""The Maven client connects over https only."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pgversus.builds.families import _PIP, _ZONKY

GET = """
import sys
import requests
from pgversus.builds.zonky_client import check_https
check_https()
try:
    requests.get(sys.argv[1], timeout=5)
except requests.exceptions.InvalidSchema as error:
    print(error)
"""


def test_plain_http_is_rejected_before_anything_is_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        address = f"http://127.0.0.1:{server.getsockname()[1]}/p.jar"
        ended = subprocess.run([sys.executable, "-c", GET, address], capture_output=True, text=True, check=True)
        assert ended.stdout == "redirected to a scheme other than https\n"
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize("client", [_PIP, _ZONKY])
def test_clients_import_nothing_from_the_current_directory(client: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(99)")
    ended = subprocess.run([*client, "--help"], cwd=tmp_path, capture_output=True, check=False)
    assert ended.returncode != 99
