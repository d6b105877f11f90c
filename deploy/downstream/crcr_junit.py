"""Test results from JUnit XML: counts, and the failed tests within the relay's limits. Part of crcr-report.

The files may be made by a pull request: no link is followed, and files, bytes and depth are bounded.
"""
import codecs
import fnmatch
import json
import os
import re
import stat
import xml.parsers.expat

ROWS_MAX, NAME_MAX, MESSAGE_MAX, STACKTRACE_MAX = 1000, 1024, 1024, 4096  # bytes, but for the rows
# Of all rows: the relay takes bodies of at most 2 MiB. The first mebibyte may hold stack traces; the names and messages
# of a thousand tests have room after it.
STACKTRACES_BYTES_MAX, ROWS_BYTES_MAX = 1024 << 10, 1792 << 10
FILES_MAX, FILE_BYTES_MAX, BYTES_MAX, DEPTH_MAX, FAULTS_MAX = 5000, 64 << 20, 256 << 20, 32, 20
# Expat may scan an unfinished tag again with each piece: large pieces keep a tag of many megabytes cheap.
PIECE_BYTES = 1 << 20


def dump(value):
    """Compact JSON as UTF-8; halves of surrogate pairs, which UTF-8 does not have, become question marks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def cut(text, max_bytes):
    """At most so many bytes of UTF-8, and never half a character."""
    return text.encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")


def open_regular(path):
    """Opens a file for reading. OSError for anything else: a link, a pipe that would block, a device."""
    flags = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
    file = os.fdopen(os.open(path, flags), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError("not a regular file")
    return file


def matches(names, patterns):
    """A path's names against a glob's; ** is any number of folders."""
    if not patterns or not names:
        return not names and all(one == "**" for one in patterns)
    if patterns[0] == "**":
        return matches(names, patterns[1:]) or matches(names[1:], patterns)
    return fnmatch.fnmatchcase(names[0], patterns[0]) and matches(names[1:], patterns[1:])


def files_of(pattern):
    """What a glob matches, but never by way of a link below the part of it that has no wildcard. As in glob, names
    that begin with a dot are passed over."""
    parts = pattern.replace(os.sep, "/").split("/")
    fixed = 0
    while fixed < len(parts) - 1 and not re.search(r"[*?[]", parts[fixed]):
        fixed += 1
    root, patterns = "/".join(parts[:fixed] + [""]), parts[fixed:]
    depth_max = DEPTH_MAX if "**" in patterns else len(patterns) - 1
    for folder, folders, names in os.walk(root or "."):
        inner = [one for one in os.path.relpath(folder, root or ".").replace(os.sep, "/").split("/") if one != "."]
        folders[:] = [one for one in folders if not one.startswith(".") and len(inner) < depth_max]
        for name in names:
            if not name.startswith(".") and matches(inner + [name], patterns):
                yield root + "/".join(inner + [name])


class Text:
    """The pieces of a file as text that XML 1.0 allows: decoded as the file says of itself, and what is no text in it,
    or is forbidden (ESC of coloured output, say), is U+FFFD. One bad byte would else end the file."""
    MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
             (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
             (b"<\0?\0", "utf-16-le"), (b"\0<\0?", "utf-16-be"))
    # Names of UTF-16 and UTF-32. That the declaration can be read says that it is neither: .NET writes it so.
    WIDE = re.compile(r"utf.?(16|32)|ucs.?[24]|(cs)?unicode\Z", re.I)
    # As in browsers (encoding.spec.whatwg.org): what is declared, and what has all its characters and is often meant.
    SUPERSETS = {"ascii": "utf-8", "gb2312": "gb18030", "gbk": "gb18030", "big5": "big5hkscs", "shift_jis": "cp932",
                 "euc_kr": "cp949"}
    DECLARED = re.compile(rb"""\s*<\?xml\s[^>]*?encoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']""")
    DECLARATION, DECLARATION_MAX = re.compile(r"\A<\?xml\s.*?\?>", re.S), 1000
    FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
    REFERENCE = re.compile(r"&#(?:x([0-9A-Fa-f]+)|([0-9]+));")
    LITERAL = {"<![CDATA[": "]]>", "<!--": "-->", "<?": "?>"}  # what begins and ends text without references
    OPENING = re.compile(r"<!\[CDATA\[|<!--|<\?")
    UNFINISHED = re.compile(r"(&#?x?[0-9A-Fa-f]*|<[!?\[A-Z-]{0,8}|\]{1,2}|-{1,2}|\?)\Z")  # what these begin with

    def __init__(self, first):
        """first: the beginning of the file."""
        self.fault, self.tail, self.begun = None, "", False
        self.end = None  # of the LITERAL that is open
        self.decoder = codecs.getincrementaldecoder(self.encoding_of(first))("replace")

    def encoding_of(self, first):
        for mark, name in self.MARKS:
            if first.startswith(mark):
                return name
        declared = self.DECLARED.match(first)
        name = declared.group(1).decode() if declared else "utf-8"
        try:
            known = codecs.lookup(name)
            # base64, zip and the like are codecs, too.
            names_only = known.name in ("idna", "punycode") or "escape" in known.name
            if known._is_text_encoding and not names_only and "<?".encode(known.name) == b"<?":
                return self.SUPERSETS.get(known.name, known.name)
        except (LookupError, UnicodeError):
            pass
        if not self.WIDE.search(name):
            self.fault = "the encoding %s is not known: read as UTF-8" % name
        return "utf-8"

    def allowed(self, match):
        digits, base = (match.group(1), 16) if match.group(1) else (match.group(2), 10)
        number = int(digits.lstrip("0")[:9] or "0", base)  # nine digits are beyond any character
        return match.group() if number <= 0x10ffff and not self.FORBIDDEN.match(chr(number)) else "\ufffd"

    def references(self, text):
        """Replaces those of forbidden characters, but not where "&#" is literal text."""
        parts, at = [], 0
        while at < len(text):
            if self.end:
                found = text.find(self.end, at)
                stop = len(text) if found < 0 else found + len(self.end)
                parts.append(text[at:stop])
                self.end = self.end if found < 0 else None
            else:
                opening = self.OPENING.search(text, at)
                stop = opening.end() if opening else len(text)
                parts.append(self.REFERENCE.sub(self.allowed, text[at:stop]))
                self.end = self.LITERAL[opening.group()] if opening else None
            at = stop
        return "".join(parts)

    def decode(self, piece, last=False):
        text = self.tail + self.FORBIDDEN.sub("\ufffd", self.decoder.decode(piece, last))
        if not self.begun:  # a mark or blanks, then the declaration: it has been read, and Expat may refuse it
            text = text.lstrip("\ufeff \t\r\n")
            if not last and "<?xml"[:len(text)] == text[:5] and "?>" not in text and len(text) < self.DECLARATION_MAX:
                self.tail = text
                return ""
            text, self.begun = self.DECLARATION.sub("", text), True
        unfinished = None if last else self.UNFINISHED.search(text)
        whole = unfinished.start() if unfinished else len(text)
        self.tail = text[whole:]
        return self.references(text[:whole])


class JUnit:
    """Counts of test cases and the rows of failed ones, from any number of files.

    Read as a stream: neither a large file nor a long stack trace is ever in memory whole. A document type is refused,
    so entities cannot blow up. What stood before a fault in a file counts.
    """
    BAD, SKIPPED, IDLE = ("failure", "error"), ("skipped", "disabled"), ("notrun", "disabled", "skipped", "suppressed")

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.files = 0  # that were read to their end
        self.faults = []  # texts for people
        self.rows, self.rows_bytes, self.rows_left_out = [], 0, 0
        self.case = None  # the one that is open
        self.parents = []  # of each element that is open: its name when it is a suite, or None
        self.bytes_left = BYTES_MAX

    def read(self, path):
        self.case, self.parents = None, []
        self.parser = xml.parsers.expat.ParserCreate("utf-8")
        self.parser.StartElementHandler = self.on_start
        self.parser.EndElementHandler = self.on_end
        self.parser.CharacterDataHandler = self.on_text
        self.parser.StartDoctypeDeclHandler = self.on_doctype
        try:
            with open_regular(path) as file:
                self.parse(path, file)
            self.files += 1
        except (OSError, ValueError, xml.parsers.expat.ExpatError) as error:
            self.faults.append("%s: %s; what stood before it counts" % (path, error))
            self.end_case_cut_off()

    def parse(self, path, file):
        left, text = min(FILE_BYTES_MAX, self.bytes_left), None
        for piece in iter(lambda: file.read(PIECE_BYTES), b""):
            too_long, piece = len(piece) > left, piece[:left]
            left -= len(piece)
            self.bytes_left -= len(piece)
            if text is None:
                text = Text(piece)
                if text.fault:
                    self.faults.append("%s: %s" % (path, text.fault))
            self.parser.Parse(text.decode(piece), False)
            if too_long:
                raise ValueError("more than %d MiB, or %d MiB in all" % (FILE_BYTES_MAX >> 20, BYTES_MAX >> 20))
        self.parser.Parse(text.decode(b"", True) if text else "", True)

    def on_doctype(self, *_):
        raise ValueError("a document type is not accepted in JUnit XML")

    def on_start(self, name, attributes):
        name = name.rsplit(":", 1)[-1]
        suite = self.parents[-1] if self.parents else None
        self.parents.append((attributes.get("name") or "(suite)") if name == "testsuite" else None)
        if name == "testcase":
            self.end_case_cut_off()
            # GoogleTest and CTest mark what did not run with attributes, not with an element.
            idle = attributes.get("status") in self.IDLE or attributes.get("result") in self.IDLE
            self.case = {"attributes": attributes, "bad": None, "skipped": idle, "text": None}
        elif name in self.BAD and (self.case["bad"] is None if self.case else suite):
            if not self.case:  # of a suite that could not even be begun: a test that failed
                self.case = {"attributes": {"name": suite}, "skipped": False, "of_suite": name}
            self.case.update(bad=attributes, text=[], open=name, room=STACKTRACE_MAX)
        elif self.case and name in self.SKIPPED:
            self.case["skipped"] = True

    def on_text(self, text):
        case = self.case
        if case and case.get("open") and case["room"] > 0:
            case["text"].append(text[:case["room"]])
            case["room"] -= len(text)

    def on_end(self, name):
        name = name.rsplit(":", 1)[-1]
        self.parents.pop()
        if self.case and name == self.case.get("open"):
            self.case["open"] = None
        if self.case and name in ("testcase", self.case.get("of_suite")):
            self.end_case()

    def end_case_cut_off(self):
        """One that failed before its runner was killed counts: the file ends in it, or the next run was added to it."""
        if self.case and self.case["bad"] is not None:
            self.end_case()

    def end_case(self):
        case, self.case = self.case, None
        if case["bad"] is not None:
            self.failed += 1
            self.keep_row(case)
        elif case["skipped"]:
            self.skipped += 1
        else:
            self.passed += 1

    def keep_row(self, case):
        attributes, bad = case["attributes"], case["bad"]
        stacktrace = "".join(case["text"]).strip()
        message = bad.get("message") or bad.get("type") or stacktrace.split("\n", 1)[0]
        row = {"name": cut(attributes.get("name") or "(no name)", NAME_MAX),
               "classname": cut(attributes.get("classname") or "", NAME_MAX),
               "message": cut(message, MESSAGE_MAX), "stacktrace": cut(stacktrace, STACKTRACE_MAX)}
        try:
            row["duration"] = max(0.0, min(1e9, float(attributes.get("time", "").replace(",", ""))))
        except ValueError:
            pass
        self.add_row({key: value for key, value in row.items() if value != ""})

    def add_row(self, row):
        """As many rows as there is room for; a row gives up its stack trace before it is left out."""
        short = {key: value for key, value in row.items() if key != "stacktrace"}
        for kept, bytes_max in ((row, STACKTRACES_BYTES_MAX), (short, ROWS_BYTES_MAX)):
            size = len(dump(kept)) + 1
            if len(self.rows) < ROWS_MAX and self.rows_bytes + size <= bytes_max:
                self.rows.append(kept)
                self.rows_bytes += size
                return
        self.rows_left_out += 1


def junit_read(patterns):
    """Reads the files that the globs match. (results, faults): results is None when there was nothing to count,
    which is not the same as no tests."""
    found = sorted({path for pattern in patterns for path in files_of(pattern)})
    if patterns and not found:
        return None, ["no file matches %s: no test results are reported" % ", ".join(patterns)]
    results = JUnit()
    for path in found[:FILES_MAX]:
        results.read(path)
    faults = results.faults[:FAULTS_MAX]
    if len(found) > FILES_MAX:
        faults.append("%d files match; the first %d were read" % (len(found), FILES_MAX))
    if len(results.faults) > FAULTS_MAX:
        faults.append("%d more files have a fault" % (len(results.faults) - FAULTS_MAX))
    counted = results.files or results.passed + results.failed + results.skipped
    return results if counted else None, faults
