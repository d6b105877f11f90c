"""JUnit files as test runners really write them (deploy/downstream/crcr_junit.py): other encodings, bytes that are no
text, characters that XML forbids, files that end early. No failed test is lost with them."""
import codecs

import pytest

from test_downstream_report import crcr_junit, junit

BAD = '<testsuite><testcase name="first"/><testcase name="{}"><failure message="{}">{}</failure></testcase>' \
      '<testcase name="last"><failure message="m"/></testcase></testsuite>'


def read(tmp_path, content):
    """(row of the first failed test, faults); the file was read to its end."""
    results, faults = junit(tmp_path, content)
    assert (results.passed, results.failed) == (1, 2), faults
    assert results.rows[1]["name"] == "last"
    return results.rows[0], faults


@pytest.mark.parametrize("code", ["\x1b[31m", "\x00", "\x08", "\x0b", "\x0c", "\x1f", "\ufffe", "\uffff", "&#27;[31m", "&#x1B;",
                                  "&#0;", "&#xD800;", "&#xFFFF;", "&#1114112;", "&#99999999999;",
                                  "&#9999999999999;", "&#x1000000000000;", f"&#{'9' * 5000};", f"&#{'0' * 30}27;"])
def test_what_xml_forbids_becomes_a_replacement_character(tmp_path, code):
    row, faults = read(tmp_path, BAD.format(f"n{code}", f"red {code}text", f"trace{code}end"))
    assert row["message"].startswith("red \ufffd") and row["message"].endswith("text") and faults == []
    assert row["stacktrace"].startswith("trace\ufffd") and row["stacktrace"].endswith("end")


def test_what_xml_allows_stays(tmp_path):
    row, _ = read(tmp_path, BAD.format("n", "tab&#9;nl&#10;&#x1F680;🚀&amp;&#00000000000000000038;", "<![CDATA[a & b]]>\tc\n"))
    assert (row["message"], row["stacktrace"]) == ("tab\tnl\n🚀🚀&&", "a & b\tc")


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 1 << 20])
def test_references_and_characters_may_lie_across_pieces(tmp_path, monkeypatch, piece):
    monkeypatch.setattr(crcr_junit, "PIECE_BYTES", piece)
    row, _ = read(tmp_path, BAD.format("ü&#27;漢", "&lt;&#x1b;&amp;", "🚀&#0;"))
    assert (row["name"], row["message"], row["stacktrace"]) == ("ü\ufffd漢", "<\ufffd&", "🚀\ufffd")


@pytest.mark.parametrize("piece", [1, 2, 3, 4, 5, 7, 11, 1 << 20])
@pytest.mark.parametrize("trace, read_as", [
    ("<![CDATA[&#27;[31m &#x1B; &#]]>&#27;", "&#27;[31m &#x1B; &#\ufffd"),
    ("<![CDATA[a]]]]>&#27;<![CDATA[>&#27;]]>", "a]]\ufffd>&#27;"),
    ("<![CDATA[<!-- <? <![CDATA[ &#27;]]>&#27;", "<!-- <? <![CDATA[ &#27;\ufffd"),
    ("<!-- <![CDATA[ <? &#27; -->&#27;<!--?><!-->&#27;", "\ufffd\ufffd"),
    ("<!--><?-->&#27;<!-->--><![CDATA[&#27;]]>", "\ufffd&#27;"),
    ("<?pi <!-- <![CDATA[ &#27; ??>&#27;", "\ufffd"),
    ("]] -- ?&gt; &lt;!--&#27;-->", "]] -- ?> <!--\ufffd-->")])
def test_what_is_no_reference_stays_as_it_is(tmp_path, monkeypatch, piece, trace, read_as):
    monkeypatch.setattr(crcr_junit, "PIECE_BYTES", piece)
    row, faults = read(tmp_path, BAD.format("n", "m", trace))
    assert (row["stacktrace"], faults) == (read_as, [])


@pytest.mark.parametrize("declared, encoding", [
    ("utf8", "utf-8"), ("UTF-8", "utf-8"), ("gb18030", "gb18030"), ("GBK", "gbk"), ("Shift_JIS", "shift_jis"),
    ("windows-1252", "cp1252"), ("ISO-8859-15", "iso8859-15"), ("US-ASCII", "ascii"), ("koi8-r", "koi8-r")])
def test_the_declared_encoding_is_read(tmp_path, declared, encoding):
    text = {"gb18030": "测试失败", "gbk": "测试失败", "shift_jis": "失敗", "koi8-r": "тест", "ascii": "plain"}.get(encoding, "größer")
    xml = f'<?xml version="1.0" encoding="{declared}"?>' + BAD.format(text, text, text)
    row, faults = read(tmp_path, xml.encode(encoding))
    assert (row["name"], row["message"], row["stacktrace"], faults) == (text, text, text, [])


@pytest.mark.parametrize("declared, encoding, text", [
    ("gb2312", "gb18030", "朱镕基𠮷"), ("GBK", "gb18030", "€𠮷"), ("Shift_JIS", "cp932", "①髙"), ("euc-kr", "cp949", "똠방"),
    ("Big5", "big5hkscs", "嘅"), ("US-ASCII", "utf-8", "größer")])
def test_an_encoding_is_read_as_the_one_that_browsers_take_for_it(tmp_path, declared, encoding, text):
    xml = f'<?xml version="1.0" encoding="{declared}"?>' + BAD.format(text, text, text)
    row, faults = read(tmp_path, xml.encode(encoding))
    assert (row["name"], row["message"], row["stacktrace"], faults) == (text, text, text, [])


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("declaration", [
    'version="1.0" encoding=""', "version='1.0' encoding=''", 'version="1.0" encoding=" utf-8"', 'encoding="utf-8"',
    'version="1.0"\n encoding="utf 8"\n', 'version="1.0" encoding="utf-8" standalone="maybe"'])
def test_a_declaration_that_is_not_valid_breaks_nothing(tmp_path, monkeypatch, piece, declaration):
    monkeypatch.setattr(crcr_junit, "PIECE_BYTES", piece)
    row, faults = read(tmp_path, f"<?xml {declaration}?>\n" + BAD.format("größer", "m", "s"))
    assert (row["name"], faults) == ("größer", [])


@pytest.mark.parametrize("mark, encoding", [
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF32_LE, "utf-32-le"), (b"", "utf-16-le"), (b"", "utf-16-be")])
def test_a_byte_order_mark_says_more_than_the_declaration(tmp_path, mark, encoding):
    xml = '<?xml version="1.0" encoding="ISO-8859-1"?>' + BAD.format("größer", "漢", "🚀")
    row, faults = read(tmp_path, mark + xml.encode(encoding))
    assert (row["name"], row["message"], row["stacktrace"], faults) == ("größer", "漢", "🚀", [])


@pytest.mark.parametrize("declared", ["utf-16", "UTF16", "utf_16le", "UTF-32", "UCS-2", "UCS2", "ISO-10646-UCS-2", "UCS-4",
                                      "unicode", "csUnicode"])
def test_a_declaration_that_is_not_true_is_not_believed(tmp_path, declared):
    """UTF-16 is what .NET declares of a text that is then written as UTF-8."""
    row, faults = read(tmp_path, (f'<?xml version="1.0" encoding="{declared}"?>' + BAD.format("größer", "m", "s")).encode())
    assert (row["name"], faults) == ("größer", [])


@pytest.mark.parametrize("encoding", ["x-unheard-of", "base64", "zip", "rot13", "unicode_escape", "idna"])
def test_an_encoding_that_is_unknown_or_none_of_text_is_said(tmp_path, encoding):
    row, faults = read(tmp_path, (f'<?xml version="1.0" encoding="{encoding}"?>' + BAD.format("größer", "m", "s")).encode())
    assert row["name"] == "größer" and len(faults) == 1 and f"the encoding {encoding} is not known: read as UTF-8" in faults[0]


def test_bytes_that_are_no_utf8_cost_nothing_but_themselves(tmp_path):
    row, faults = read(tmp_path, BAD.format("n\u00e9", "before \u00ff\u00fe after", "s").encode("latin-1"))
    assert (row["name"], row["message"], faults) == ("n\ufffd", "before \ufffd\ufffd after", [])


def test_blanks_before_the_declaration_are_passed_over(tmp_path):
    assert read(tmp_path, "\n  <?xml version='1.0' encoding='UTF-8'?>" + BAD.format("n", "m", "s"))[1] == []


@pytest.mark.parametrize("attribute", ['status="disabled"', 'status="notrun"', 'result="skipped"'])
def test_what_ctest_and_googletest_did_not_run_is_skipped(tmp_path, attribute):
    results, _ = junit(tmp_path, f'<testsuite><testcase name="a" {attribute}/><testcase name="b" status="run"/></testsuite>')
    assert (results.passed, results.failed, results.skipped) == (1, 0, 1)


def test_an_error_of_a_suite_counts_as_a_failed_test(tmp_path):
    results, faults = junit(tmp_path, '<testsuites><testsuite name="collection"><error message="ImportError">no module'
                                      '</error></testsuite><testsuite name="b"><testcase name="x"/></testsuite>'
                                      '<testsuite><testsuite><testcase name="y"/></testsuite><failure message="of it"/>'
                                      '</testsuite></testsuites>')
    assert (results.passed, results.failed, faults) == (2, 2, [])
    assert results.rows == [{"name": "collection", "message": "ImportError", "stacktrace": "no module"},
                            {"name": "(suite)", "message": "of it"}]


@pytest.mark.parametrize("elsewhere", [
    "<properties><property name='p'><failure/></property><error/></properties>", "<system-out>ran: <failure/></system-out>",
    "<system-err><error>e</error></system-err>", "</testsuite><failure/><testsuite>"])
def test_a_failure_of_neither_a_test_nor_a_suite_is_not_counted(tmp_path, elsewhere):
    results, faults = junit(tmp_path, f'<r><testsuite>{elsewhere}<testcase name="a"/>{elsewhere}</testsuite></r>')
    assert (results.passed, results.failed, results.rows, faults) == (1, 0, [], [])


def test_a_failed_test_that_the_file_ends_in_counts(tmp_path):
    results, faults = junit(tmp_path, '<testsuite><testcase name="a"/><testcase name="b"><failure message="m">half of a tr')
    assert (results.passed, results.failed) == (1, 1) and "what stood before it counts" in faults[0]
    assert results.rows == [{"name": "b", "message": "m", "stacktrace": "half of a tr"}]


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_a_failed_test_that_another_run_was_added_to_counts(tmp_path, monkeypatch, piece):
    """Its runner was killed; the next one went on in the same file."""
    monkeypatch.setattr(crcr_junit, "PIECE_BYTES", piece)
    results, faults = junit(tmp_path, '<testsuite><testcase name="b"><failure message="m">half of a tr<testsuite>'
                                      '<testcase name="c"/><testcase name="d"><error/></testcase></testsuite>')
    assert (results.passed, results.failed, len(faults)) == (1, 2, 1)
    assert results.rows == [{"name": "b", "message": "m", "stacktrace": "half of a tr"}, {"name": "d"}]


@pytest.mark.parametrize("limit", ["FILE_BYTES_MAX", "BYTES_MAX"])
@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_what_stood_before_the_limit_of_bytes_counts(tmp_path, monkeypatch, limit, piece):
    begun = '<testsuite><testcase name="a"/><testcase name="b"><failure message="m">'
    monkeypatch.setattr(crcr_junit, limit, len(begun) + 5)
    monkeypatch.setattr(crcr_junit, "PIECE_BYTES", piece)
    results, faults = junit(tmp_path, begun + "trace" * 9 + '</failure></testcase><testcase name="c"/></testsuite>')
    assert (results.passed, results.failed) == (1, 1) and "MiB" in faults[0]
    assert results.rows == [{"name": "b", "message": "m", "stacktrace": "trace"}]


def test_the_text_before_a_fault_is_kept(tmp_path):
    results, faults = junit(tmp_path, '<testsuite><testcase name="b"><failure>expected a & b' + " more" * 9)
    assert results.rows == [{"name": "b", "message": "expected a", "stacktrace": "expected a"}] and len(faults) == 1
