from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tileprof.collect import csv_rows
from tileprof.collect.csv_rows import number, parse, split_line, whole
from tileprof.errors import ProfileFormatError

HERE = Path("table.csv")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12,319,469", 12319469.0),
        ("4,963,609,951.19", 4963609951.19),
        ("27.595.520", 27595520.0),
        ("65,77", 65.77),
        ("1,555", 1555.0),
        ("15.680000", 15.68),
        ("0.00000000e+00", 0.0),
        ("8.1097E+14", 8.1097e14),
        ("-3", -3.0),
        ("n/a", None),
        ("no data", None),
        ("nan", None),
        ("inf", None),
        ("", None),
        (None, None),
        ("CachePreferNone", None),
        ("(256, 1, 1)", None),
    ],
)
def test_numbers_as_profilers_write_them(text: str | None, value: float | None) -> None:
    assert number(text) == value


def test_whole_numbers_of_64_bits_are_exact() -> None:
    assert whole("18446744073709551615") == 18446744073709551615
    assert whole("65792.000000") == 65792
    assert whole("x") is None


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**15), st.integers(0, 99))
def test_thousands_separators_do_not_change_a_number(integer: int, cents: int) -> None:
    assert number(f"{integer:,}") == float(integer)
    assert number(f"{integer:,}.{cents:02}") == pytest.approx(integer + cents / 100)


def test_bare_quotes_inside_a_name() -> None:
    assert split_line('1,"f<"a">(int, char)",64') == ["1", 'f<"a">(int, char)', "64"]
    assert split_line('"g(""x"", 1)",2') == ['g("x", 1)', "2"]


def test_a_name_of_7071_characters_with_commas_and_quotes() -> None:
    name = "void k<" + ", ".join(f"std::tuple<int, {i}>" for i in range(340)) + '>("lambda"(int)#1)'
    table = parse(f'"Kernel_Name","N"\n"{name}",3\n', HERE)
    assert table.rows[0] == {"kernel_name": name, "n": "3"}


def test_byte_order_mark_blank_lines_crlf_and_no_final_newline(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbf"A","B"\r\n\r\n1,2\r\n\r\n3,4')
    assert csv_rows.read(path).rows == ({"a": "1", "b": "2"}, {"a": "3", "b": "4"})
    path.write_bytes("A,B\n1,ü\n".encode("utf-16"))
    assert csv_rows.read(path).rows == ({"a": "1", "b": "ü"},)


def test_colours_around_a_header() -> None:
    assert parse("\x1b[0;33mA,B\x1b[m\n1,2\n", HERE).header == ("a", "b")


def test_damaged_rows_are_counted_and_left_out() -> None:
    table = parse("A,B,C\n1,2,3\n4,5\n6,7,8\n9,1", HERE)
    assert [row["a"] for row in table.rows] == ["1", "6"]
    assert table.dropped == 2


def test_a_quote_that_never_closes_costs_one_row_only() -> None:
    table = parse('A,B\n1,2\n3,"x\n4,5\n6,7', HERE)
    assert [row["a"] for row in table.rows] == ["1", "4", "6"]
    assert table.dropped == 1


def test_messages_before_the_header_are_passed_over() -> None:
    table = parse('Generating SQLite file x\n==PROF== hello, world\n"ID","V"\n"0","1"\n', HERE, starts=("id",))
    assert table.rows == ({"id": "0", "v": "1"},)


def test_without_a_header_there_is_an_error() -> None:
    with pytest.raises(ProfileFormatError, match="no line of column names"):
        parse("nothing here\nat all\n", HERE)


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_an_empty_file_says_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(ProfileFormatError, match="empty") as caught:
        csv_rows.read(path)
    assert caught.value.remedy


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        table = parse(text, HERE)
    except ProfileFormatError:
        return
    assert all(len(row) == len(set(table.header)) for row in table.rows)
