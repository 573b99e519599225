"""Downloads of tarballs: complete, verified, and fetched once."""

import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from pgversus.builds import tarballs as module
from pgversus.builds.tarballs import DownloadError, downloaded, place_of
from pgversus.errors import BuildError
from pgversus.host.directories import Cache
from pgversus.host.identity import server_user
from pgversus.study.servers import Download
from tests.unit.builds.source_tarballs import FILES, publish, sha256, tarball


class Site(ThreadingHTTPServer):
    """A server for a directory that records the requests."""

    daemon_threads = True

    def __init__(self, directory: Path) -> None:
        super().__init__(("127.0.0.1", 0), partial(_Handler, directory=str(directory)))
        self.directory = directory
        self.requested: list[str] = []
        self.elsewhere: dict[str, str] = {}
        """Redirects by path."""
        self.closing = Event()

    def at(self, name: str, sha256: str | None = None) -> Download:
        return Download(address=f"http://127.0.0.1:{self.server_port}/{name}", sha256=sha256)


class _Handler(SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Site)
        if self.path in self.server.elsewhere:
            self.send_response(302)
            self.send_header("Location", self.server.elsewhere[self.path])
            self.end_headers()
        elif self.path == "/slow.tar":
            self._trickle(self.server.closing)
        else:
            super().do_GET()

    def _trickle(self, closing: Event) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "100000")
        self.end_headers()
        try:
            while not closing.wait(0.01):
                self.wfile.write(b"x")
        except OSError:
            pass

    def end_headers(self) -> None:
        if self.path == "/cut.tar":
            # More than the content, as if the connection ended early.
            self.send_header("Content-Length", "100000")
        super().end_headers()

    def send_header(self, keyword: str, value: str) -> None:
        if not (self.path == "/cut.tar" and keyword == "Content-Length" and value != "100000"):
            super().send_header(keyword, value)

    def log_message(self, format: str, *_arguments: object) -> None:  # noqa: A002 - the name in the base class
        assert isinstance(self.server, Site)
        if not format.startswith("code"):
            self.server.requested.append(self.path)


@pytest.fixture
def testbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    directory = tmp_path / "site"
    directory.mkdir()
    with Site(directory) as testbed:
        thread = Thread(target=partial(testbed.serve_forever, poll_interval=0.01))
        thread.start()
        yield testbed
        testbed.closing.set()
        testbed.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    cache = Cache(root=tmp_path / "cache")
    cache.sources.mkdir(parents=True)
    cache.staging.mkdir()
    return cache


def quiet(_name: str, _size: int) -> None:
    pass


def kept(cache: Cache) -> list[str]:
    assert [path.name for path in cache.staging.iterdir() if path.is_dir()] == []
    return sorted(path.name.partition("-")[2] for path in cache.sources.iterdir())


def published(testbed: Site, name: str) -> Path:
    """A tarball with its .sha256 file."""
    file = tarball(testbed.directory / name)
    publish(file, sha256(file))
    return file


def test_a_tarball_is_fetched_once(testbed: Site, cache: Cache, tmp_path: Path) -> None:
    file = published(testbed, "postgresql-17.8.tar.gz")
    heard: list[tuple[str, int]] = []
    source = downloaded(testbed.at(file.name), cache, lambda name, size: heard.append((name, size)))
    assert (source.facts.words, source.facts.sha256) == (file.name, sha256(file))
    assert source.facts.checked == "postgresql-17.8.tar.gz.sha256"
    assert heard[-1] == (file.name, file.stat().st_size)
    source.lay_out(tmp_path / "tree", server_user())
    assert (tmp_path / "tree" / "configure").read_text() == FILES["configure"]
    file.unlink()
    assert downloaded(testbed.at(file.name), cache, quiet).facts == source.facts
    assert testbed.requested == [f"/{file.name}.sha256", f"/{file.name}"]
    assert kept(cache) == [file.name, f"{file.name}.json"]


def test_a_tarball_without_a_published_hash_is_not_fetched(testbed: Site, cache: Cache) -> None:
    tarball(testbed.directory / "p.tar")
    with pytest.raises(DownloadError, match=r"^/p\.tar\.sha256: .*(Not Found|not found)"):
        downloaded(testbed.at("p.tar"), cache, quiet)
    assert (testbed.requested, kept(cache)) == (["/p.tar.sha256"], [])


def test_a_hash_given_by_the_user_replaces_the_published_one(testbed: Site, cache: Cache) -> None:
    file = tarball(testbed.directory / "p.tar")
    source = downloaded(testbed.at("p.tar", sha256(file)), cache, quiet)
    assert (source.facts.sha256, source.facts.checked) == (sha256(file), "the hash given with its address")
    assert testbed.requested == ["/p.tar"]
    with pytest.raises(BuildError) as caught:
        downloaded(testbed.at("p.tar", "f" * 64), cache, quiet)
    assert caught.value.slug == "build-damaged"
    assert caught.value.expected == f"SHA-256 {'f' * 64} (the hash given with its address)"
    assert kept(cache) == ["p.tar", "p.tar.json"]


def test_a_tarball_with_a_wrong_hash_is_not_stored(testbed: Site, cache: Cache) -> None:
    file = tarball(testbed.directory / "p.tar")
    publish(file, "0" * 64)
    with pytest.raises(BuildError) as caught:
        downloaded(testbed.at("p.tar"), cache, quiet)
    error = caught.value
    assert (error.slug, error.where) == ("build-damaged", "p.tar")
    assert error.found == f"SHA-256 {sha256(file)}"
    assert error.expected == f"SHA-256 {'0' * 64} (p.tar.sha256)"
    assert kept(cache) == []
    publish(file, sha256(file))
    assert downloaded(testbed.at("p.tar"), cache, quiet).facts.sha256 == sha256(file)


@pytest.mark.parametrize("length", [0, 1000, None])
def test_a_tarball_modified_in_the_cache_is_fetched_again_once(testbed: Site, cache: Cache, length: int | None) -> None:
    file = published(testbed, "p.tar")
    facts = downloaded(testbed.at("p.tar"), cache, quiet).facts
    place = place_of(testbed.at("p.tar"), cache)
    place.write_bytes(b"changed" if length is None else place.read_bytes()[:length])
    for _ in range(2):
        assert downloaded(testbed.at("p.tar"), cache, quiet).facts == facts
    assert testbed.requested == [f"/{file.name}.sha256", f"/{file.name}"] * 2


def test_a_missing_tarball_is_reported_and_not_stored(testbed: Site, cache: Cache) -> None:
    with pytest.raises(DownloadError, match=r"^/no/p\.tar: .*(Not Found|not found)"):
        downloaded(testbed.at("no/p.tar", "0" * 64), cache, quiet)
    assert kept(cache) == []


def test_an_unreachable_server_is_reported(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(DownloadError, match=r"^/p\.tar\.sha256: .*refused"):
        downloaded(Download(address="http://127.0.0.1:1/p.tar"), cache, quiet)


def test_different_addresses_and_hashes_are_stored_separately(cache: Cache) -> None:
    addresses = [f"https://h/{folder}/p.tar.gz" for folder in "ab"]
    downloads = [Download(address=address, sha256=sha256) for address in addresses for sha256 in (None, "0" * 64)]
    assert len({place_of(download, cache) for download in downloads}) == 4
    assert place_of(downloads[0], cache).name.endswith("-p.tar.gz")
    assert place_of(Download(address="https://h"), cache).name.endswith("-source.tar")


def test_a_truncated_download_is_not_stored(testbed: Site, cache: Cache) -> None:
    published(testbed, "cut.tar")
    with pytest.raises(DownloadError, match="of 100000"):
        downloaded(testbed.at("cut.tar"), cache, quiet)
    assert kept(cache) == []


@pytest.mark.parametrize("name", ["p.tar", "p.tar.sha256"])
def test_an_oversized_download_is_rejected(
    testbed: Site, cache: Cache, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(module, "_MOST_BYTES", 2000)
    monkeypatch.setattr(module, "_MOST_CHECKSUM_BYTES", 200)
    published(testbed, "p.tar")
    (testbed.directory / name).write_bytes(bytes(1 << 20))
    with pytest.raises(DownloadError, match=rf"^/{name}: larger than 2000? bytes"):
        downloaded(testbed.at("p.tar"), cache, quiet)
    assert kept(cache) == []


def test_a_slow_download_times_out(testbed: Site, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LONGEST_S", 0.2)
    began = time.monotonic()
    with pytest.raises(DownloadError, match=r"^/slow\.tar: incomplete after 0 s, \d+ bytes received"):
        downloaded(testbed.at("slow.tar", "0" * 64), cache, quiet)
    assert time.monotonic() - began < 10
    assert kept(cache) == []


def test_local_redirects_are_followed(testbed: Site, cache: Cache) -> None:
    file = published(testbed, "p.tar")
    testbed.elsewhere = {
        "/old.tar": testbed.at("p.tar").address,
        "/old.tar.sha256": f"{testbed.at('p.tar').address}.sha256",
    }
    assert downloaded(testbed.at("old.tar"), cache, quiet).facts.sha256 == sha256(file)


@pytest.mark.parametrize("to", ["http://other.example/p.tar", "ftp://127.0.0.1/p.tar"])
def test_redirects_away_from_https_are_rejected(testbed: Site, cache: Cache, to: str) -> None:
    testbed.elsewhere = {"/p.tar": to}
    with pytest.raises(DownloadError, match=rf"^/p\.tar: redirected to {to.partition(':')[0]} instead of https"):
        downloaded(testbed.at("p.tar", "0" * 64), cache, quiet)
    assert kept(cache) == []


@pytest.mark.parametrize("address", ["http://other.example/p.tar", "ftp://other.example/p.tar"])
def test_a_hash_over_an_insecure_connection_is_rejected(cache: Cache, address: str) -> None:
    with pytest.raises(DownloadError, match=r"^p\.tar: its hash would be fetched over (http|ftp)"):
        downloaded(Download(address=address), cache, quiet)
