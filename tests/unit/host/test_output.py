import pytest

from pgversus.host.output import Output

END = 64 * 1024


def abridged(*chunks: bytes) -> bytes:
    output = Output(is_abridged=True)
    for chunk in chunks:
        output.add(chunk)
    return bytes(output)


@pytest.mark.parametrize("size", [0, 1, END - 1, END, END + 1, 2 * END])
def test_what_is_no_longer_than_both_parts_is_whole(size: int) -> None:
    content = bytes(number % 251 for number in range(size))
    assert abridged(content) == content
    assert abridged(*(content[at : at + 1000] for at in range(0, size, 1000))) == content


@pytest.mark.parametrize("piece", [7, 1000, 10 * END])
def test_a_longer_one_loses_its_middle_in_whole_lines(piece: int) -> None:
    content = b"".join(b"%06d\n" % number for number in range(100_000))
    found = abridged(*(content[at : at + piece] for at in range(0, len(content), piece)))
    first, words, last = found.partition(b"... ")[0], found.partition(b"... ")[2], found.rpartition(b" ...\n")[2]
    assert content.startswith(first)
    assert content.endswith(last)
    assert END - 7 < len(first) <= END
    assert END - 7 < len(last) <= END
    assert first.endswith(b"\n")
    assert int(words.split()[0]) == len(content) - len(first) - len(last)


def test_one_long_line_is_cut_all_the_same() -> None:
    found = abridged(b"x" * (10 * END))
    assert found == b"x" * END + b"... %d bytes left out ...\n" % (8 * END) + b"x" * END


def test_all_of_it_is_kept_where_it_is_wanted() -> None:
    output = Output()
    output.add(b"x" * (10 * END))
    assert output.text() == "x" * (10 * END)
