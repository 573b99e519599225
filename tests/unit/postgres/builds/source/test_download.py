"""Tarballs at an address: whole, as they were published, and fetched once."""

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from pgversus.errors import BuildError
from pgversus.host.directories import Cache
from pgversus.postgres.builds.source.download import DownloadError, downloaded, place_of
from tests.unit.postgres.builds.source.tarballs import FILES, publish, sha256, tarball


class Site(ThreadingHTTPServer):
    """Serves a directory, and keeps what it was asked for."""

    def __init__(self, directory: Path) -> None:
        super().__init__(("127.0.0.1", 0), partial(_Handler, directory=str(directory)))
        self.directory = directory
        self.asked: list[str] = []

    def address(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{name}"


class _Handler(SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        if self.path == "/cut.tar":
            # More than there is: as of a connection that ends too early.
            self.send_header("Content-Length", "100000")
        super().end_headers()

    def send_header(self, keyword: str, value: str) -> None:
        if not (self.path == "/cut.tar" and keyword == "Content-Length" and value != "100000"):
            super().send_header(keyword, value)

    def log_message(self, format: str, *_arguments: object) -> None:  # noqa: A002 - its name there
        assert isinstance(self.server, Site)
        if not format.startswith("code"):
            self.server.asked.append(self.path)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    directory = tmp_path / "site"
    directory.mkdir()
    with Site(directory) as site:
        thread = Thread(target=partial(site.serve_forever, poll_interval=0.01))
        thread.start()
        yield site
        site.shutdown()
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
    return sorted(path.name.partition("-")[2] for path in cache.sources.iterdir())


def test_a_tarball_is_fetched_once(site: Site, cache: Cache, tmp_path: Path) -> None:
    file = tarball(site.directory / "postgresql-17.8.tar.gz")
    address = site.address(file.name)
    heard: list[tuple[str, int]] = []
    source = downloaded(address, cache, lambda name, size: heard.append((name, size)))
    assert (source.facts.words, source.facts.sha256, source.facts.checked) == (file.name, sha256(file), None)
    assert heard[-1] == (file.name, file.stat().st_size)
    source.lay_out(tmp_path / "tree")
    assert (tmp_path / "tree" / "configure").read_text() == FILES["configure"]
    file.unlink()
    assert downloaded(address, cache, quiet).facts == source.facts
    assert site.asked == [f"/{file.name}", f"/{file.name}.sha256"]
    assert kept(cache) == [file.name]


def test_what_was_published_beside_it_is_what_it_was_held_against(site: Site, cache: Cache) -> None:
    file = tarball(site.directory / "p.tar")
    publish(file, sha256(file))
    for _ in range(2):
        facts = downloaded(site.address("p.tar"), cache, quiet).facts
        assert facts.checked == f"{place_of(site.address('p.tar'), cache).name}.sha256"
    assert kept(cache) == ["p.tar", "p.tar.sha256"]


def test_what_is_not_as_it_was_published_is_not_kept(site: Site, cache: Cache) -> None:
    file = tarball(site.directory / "p.tar")
    publish(file, "0" * 64)
    with pytest.raises(BuildError) as caught:
        downloaded(site.address("p.tar"), cache, quiet)
    error = caught.value
    assert (error.slug, error.where) == ("build-damaged", "p.tar")
    assert error.found == f"SHA-256 {sha256(file)}"
    assert error.expected == f"SHA-256 {'0' * 64} (p.tar.sha256)"
    assert kept(cache) == []
    publish(file, sha256(file))
    assert downloaded(site.address("p.tar"), cache, quiet).facts.sha256 == sha256(file)


def test_what_is_not_there_is_said_and_not_kept(site: Site, cache: Cache) -> None:
    with pytest.raises(DownloadError, match=r"^/no/p\.tar: .*(Not Found|not found)"):
        downloaded(site.address("no/p.tar"), cache, quiet)
    assert kept(cache) == []
    assert [path.name for path in cache.staging.iterdir() if path.is_dir()] == []


def test_a_site_that_does_not_answer_is_said(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(DownloadError, match=r"^/p\.tar: .*refused"):
        downloaded("http://127.0.0.1:1/p.tar", cache, quiet)


def test_two_addresses_are_kept_apart(cache: Cache) -> None:
    one, other = (place_of(f"https://h/{folder}/p.tar.gz?x=1", cache) for folder in "ab")
    assert one != other
    assert one.name.endswith("-p.tar.gz")
    assert place_of("https://h", cache).name.endswith("-source.tar")


def test_what_is_cut_off_on_its_way_is_not_kept(site: Site, cache: Cache) -> None:
    tarball(site.directory / "cut.tar")
    with pytest.raises(DownloadError, match="of 100000"):
        downloaded(site.address("cut.tar"), cache, quiet)
    assert kept(cache) == []


def test_a_page_in_place_of_a_tarball_is_not_kept(site: Site, cache: Cache) -> None:
    (site.directory / "postgresql-17.8.tar.bz2").write_text("<html>not here</html>")
    with pytest.raises(DownloadError, match="no tarball"):
        downloaded(site.address("postgresql-17.8.tar.bz2"), cache, quiet)
    assert kept(cache) == []
