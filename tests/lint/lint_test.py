"""The lints can fail: each rule is broken once, in a small tree of its own."""

import subprocess
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest

LINT = Path(__file__).resolve().parent


@pytest.fixture
def tree(tmp_path):
    """put(name, text) adds a tracked file; run(lint, *arguments) gives (exit code, output)."""

    class Tree:
        root = tmp_path

        def __init__(self):
            subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
            (tmp_path / ".clang-format").write_text((LINT.parents[1] / ".clang-format").read_text())
            self.put("common/base/err.h", "/* Errors. */\nint err_name(int err);\n")

        def put(self, name, text, mode=0o644):
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(mode)
            subprocess.run(["git", "-C", str(tmp_path), "add", name], check=True)

        def run(self, lint, *arguments):
            done = subprocess.run(
                [str(LINT / lint), *arguments, str(tmp_path)], capture_output=True, text=True
            )
            return done.returncode, done.stdout + done.stderr

    return Tree()


def passes(tree, lint):
    code, output = tree.run(lint)
    assert (code, output) == (0, "")


def fails(tree, lint, says):
    code, output = tree.run(lint)
    assert code == 1, output
    assert says in output


@pytest.mark.parametrize("lint", ["includes", "format", "names"])
def test_this_shape_of_tree_passes(tree, lint):
    tree.put("common/io/redis.h", "/* Redis. */\nint redis_new(void);\n")
    tree.put(
        "common/io/redis.c",
        '#include "redis.h"\n\n#include <hiredis/hiredis.h>\n#include <stdio.h>\n\n#include "../base/err.h"\n',
    )
    tree.put("ingest/main.c", '#include "../common/io/redis.h"\n')
    tree.put("tests/unit/common/io/redis_test.c", '#include <cmocka.h>\n\n#include "common/io/redis.h"\n')
    passes(tree, lint)


@pytest.mark.parametrize("lint", ["includes", "format", "names", "dialect", "shell", "behaviours"])
def test_an_empty_tree_is_no_success(tmp_path, lint):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    done = subprocess.run([str(LINT / lint), str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 2, done.stdout + done.stderr


@pytest.mark.parametrize(
    "name, line, says",
    [
        ("common/base/str.c", '#include "../io/redis.h"', 'common/base may not include "../io/redis.h"'),
        ("common/model/task.c", '#include "../io/redis.h"', "common/model may not include"),
        ("common/io/x.c", '#include "../view/keys.h"', "common/io may not include"),
        ("common/view/x.c", '#include "../../ingest/webhook.h"', "common/view may not include"),
        ("ingest/x.c", '#include "../reporter/fold.h"', "ingest may not include"),
        ("tests/unit/ingest/x_test.c", '#include "reporter/fold.h"', "may not include"),
        ("common/io/x.c", '#include "common/base/err.h"', "is no file of ours"),
        ("common/io/x.c", '#include "gone.h"', "is no file of ours"),
        ("common/io/x.c", '#include "../base/err.h"\n#include <stdio.h>', "after our own headers"),
        ("common/io/redis.c", '#include <stdio.h>\n\n#include "redis.h"', '"redis.h" comes first'),
        ("common/io/redis.c", '#include "../base/err.h"\n\n#include "redis.h"', '"redis.h" comes first'),
        ("common/model/x.c", "#include <hiredis/hiredis.h>", "may be named only in common/io/redis*"),
        ("common/io/x.c", "#include <curl/curl.h>", "may be named only in common/io/http_client*"),
        ("common/view/x.c", "#include <jansson.h>", "may be named only in"),
        ("common/crypto/jwt.h", "#include <cjose/cjose.h>", "in a header"),
        ("common/io/x.c", "#include <lzma.h>", "is not known"),
        ("elsewhere/x.c", '#include "../common/base/err.h"', "no rule for this folder"),
    ],
)
def test_a_broken_include_rule_is_found(tree, name, line, says):
    for header in ("common/io/redis.h", "common/view/keys.h", "ingest/webhook.h", "reporter/fold.h"):
        tree.put(header, "/* x */\n")
    tree.put(name, line + "\n")
    fails(tree, "includes", says)
    assert f"{name}:{line.count(chr(10)) + 1}: " in tree.run("includes")[1]


@pytest.mark.parametrize("line", ["#include <unistd.h>", "x = clock_wall_ms();", 'f = fopen("x", "r");'])
def test_a_pure_file_that_reaches_outside_is_found(tree, line):
    tree.put("ingest/route.c", line + "\n")
    tree.put("ingest/route.h", "/* Which. Not PURE, says nobody. */\n")
    passes(tree, "includes")
    tree.put("ingest/route.h", "/* Which. PURE. */\n")
    fails(tree, "includes", "ingest/route.c:1: a PURE file has no ")


@pytest.mark.parametrize(
    "line, says",
    [
        ("n = sizeof x;", "write sizeof(x)"),
        ("n = sizeof *p;", "write sizeof(x)"),
        ("if (p == NULL)", "write !p"),
        ("if (p != NULL)", "write p"),
        ("if (err == OK)", "write !err"),
        ("if (f(assert_ok(p), 1) !=\n    OK)", "write err"),
    ],
)
def test_a_form_of_another_dialect_is_found(tree, line, says):
    tree.put("common/base/x.c", "/* p == NULL */\n" + line + "\n")
    fails(tree, "dialect", says)
    assert "common/base/x.c:2: " in tree.run("dialect")[1]


def test_what_is_cleared_before_it_is_made_is_found(tree):
    made = "void f(void)\n{\n    struct buf CLEANUP(buf_clear) b;\n"
    tree.put("common/base/x.c", made + "    if (early())\n        return;\n    buf_init(&b, 1);\n}\n")
    fails(tree, "dialect", "common/base/x.c:3: b: put something into it")
    tree.put("common/base/x.c", made + "    buf_init(&b, 1);\n    if (early())\n        return;\n}\n")
    passes(tree, "dialect")


def test_the_accepted_forms_of_c_pass(tree):
    tree.put("tests/unit/x_test.c", 'if (!p || err || sizeof(x) > 1)\n    log("p == NULL");\n'
             "assert_int_equal(f(a, (b)), OK);\nassert_true(p != NULL &&\n            f() == OK);\n")
    passes(tree, "dialect")


def test_a_file_that_clang_format_would_change_is_found(tree):
    tree.put("common/base/str.c", "int  x( void );\n")
    fails(tree, "format", "common/base/str.c:1:")


@pytest.mark.parametrize(
    "name, text, says",
    [
        ("common/base/x.c", "/* TO" "DO: more */\n", "x.c:1: TO" "DO"),
        ("deploy/try", "# FIX" "ME\n", "deploy/try:1: FIX" "ME"),
        ("common/base/x.c", "int a;\n" * 501, "501 lines"),
        ("common/base/x.h", "int x_new(void);\n", "x.h:1: x_new() is in a group without a comment"),
        ("common/base/x.h", "/* A. */\nint x_a(void);\n\nint x_b(void);\n", "x.h:4: x_b()"),
        ("common/base/x.c", "\nvoid f(void)\n{\n    exit(1);\n}\n", "x.c:4: exit(: exit() belongs to main.c"),
        ("ingest/x.c", "int f(void)\n{\n    return (int)time(NULL);\n}\n", "x.c:3: time("),
        ("reporter/x.c", "void f(void)\n{\n    sleep(1);\n}\n", "x.c:3: sleep("),
        ("common/io/x.c", 'void f(void)\n{\n    log_info("e", LOG_INT("n", 1));\n}\n', "x.c:3: log_info("),
        ("common/io/x.c", 'void f(char *s)\n{\n    sprintf(s, "x");\n}\n', "x.c:3: sprintf("),
    ],
)
def test_what_must_not_stand_there_is_found(tree, name, text, says):
    tree.put(name, text)
    fails(tree, "names", says)


@pytest.mark.parametrize(
    "name, text",
    [
        ("ingest/main.c", "int main(void)\n{\n    exit(0);\n}\n"),
        ("common/base/clock.c", "void f(void)\n{\n    clock_gettime(0, 0);\n}\n"),
        ("ingest/x.c", 'void f(void)\n{\n    log_info("e", LOG_INT("n", 1));\n}\n'),
        ("common/io/x.c", "/* calls exit(1), sleep(1)\n * and log_info(x) */\nvoid expiry_time(int);\n"),
        ("common/io/x.c", 'const char *x = "time(";\n'),
        ("common/base/x.h", "/* A group. */\nint x_a(void);\nint x_b(void);\n\n#define X(y) (y)\nenum e { A };\n"),
    ],
)
def test_what_may_stand_there_is_not(tree, name, text):
    tree.put(name, text)
    passes(tree, "names")


def test_a_shell_fault_is_found(tree):
    tree.put("deploy/good", "#!/usr/bin/env bash\necho fine\n", 0o755)
    passes(tree, "shell")
    tree.put("deploy/bad", "#!/bin/sh\nrm $1/*\n", 0o755)
    fails(tree, "shell", "SC2086")


@pytest.fixture
def documented(tree):
    """A tree whose README holds the table that its crcrctl prints."""
    row = "| `A_NAME` | x |"
    tree.put("bin/crcrctl", f"#!/bin/sh\n[ \"$*\" = 'config --markdown' ] && echo '{row}'\n", 0o755)
    tree.put(
        "common/daemon/config_table.c",
        '#define INGEST DAEMON_INGEST\n#define ALL (INGEST | DAEMON_CTL)\n'
        '{\n    .name = "A_NAME",\n    .daemons = INGEST,\n}\n',
    )
    tree.put("ingest/main.c", 'config_text(c, "A_NAME");\n')
    tree.put("deploy/CONFIGURATION.md", f"before\n<!-- config:begin -->\n{row}\n<!-- config:end -->\nafter\n")
    return tree


def run_config_table(tree, *more):
    return tree.run("config_table", "--crcrctl", str(tree.root / "bin/crcrctl"), *more)


def test_an_equal_table_passes(documented):
    assert run_config_table(documented) == (0, "")


def test_another_table_is_found_and_mended(documented):
    readme = documented.root / "deploy/CONFIGURATION.md"
    good = readme.read_text()
    readme.write_text(good.replace("A_NAME", "B_NAME"))
    code, output = run_config_table(documented)
    assert code == 1 and "deploy/CONFIGURATION.md:2: the table differs" in output
    assert run_config_table(documented, "--fix") == (0, "")
    assert readme.read_text() == good


def test_a_property_that_nobody_reads_is_found(documented):
    documented.put("ingest/main.c", "int x;\n")
    code, output = run_config_table(documented)
    assert code == 1 and "config_table.c:4: A_NAME is given to DAEMON_INGEST, but ingest/" in output


def test_a_property_that_one_of_its_programs_does_not_read_is_found(documented):
    table = documented.root / "common/daemon/config_table.c"
    table.write_text(table.read_text().replace("= INGEST,", "= ALL,"))
    code, output = run_config_table(documented)
    assert code == 1 and "A_NAME is given to DAEMON_CTL" in output
    assert "DAEMON_INGEST" not in output
    documented.put("common/daemon/config.c", 'f("A_NAME");\n')
    assert run_config_table(documented) == (0, "")


def test_missing_markers_and_a_missing_crcrctl_are_said(documented):
    code, output = documented.run("config_table", "--crcrctl", "/nowhere/crcrctl")
    assert code == 1 and "/nowhere/crcrctl is missing" in output
    (documented.root / "deploy/CONFIGURATION.md").write_text("nothing\n")
    code, output = run_config_table(documented)
    assert code == 1 and "markers" in output


# ---- behaviour → test -----------------------------------------------------------------------------------

@pytest.fixture
def behaviours(tree):
    """put_rows(*rows) writes the table of a tree that has one test of each kind."""
    tree.put("tests/unit/x_test.c", "static void it_works(void **state)\n{\n}\nstatic void forgotten(void **state)\n{\n}\n"
                                    "    cmocka_unit_test_setup(it_works, start),\n")
    tree.put("tests/e2e/test_x.py", "class TestIt:\n    def test_it(self, relay):\n        pass\n")

    def put_rows(*rows):
        table = "\n".join(["| rule | test |", "|---|---|", *rows])
        tree.put("tests/README.md", f"x\n<!-- behaviours:begin -->\n{table}\n<!-- behaviours:end -->\n")
        return tree
    return put_rows


def test_a_table_whose_tests_are_there_passes(behaviours):
    passes(behaviours("| It works | `unit/x_test.c::it_works`, `e2e/test_x.py::test_it` |"), "behaviours")


@pytest.mark.parametrize(
    "row, says",
    [
        ("| It works | |", "no test"),
        ("| | `unit/x_test.c::it_works` |", "a row is"),
        ("| It works | soon |", "no test"),
        ("| It works | `unit/x_test.c::it_works`, and more |", "more than tests"),
        ("| It works | `unit/y_test.c::it_works` |", "there is no tests/unit/y_test.c"),
        ("| It works | `unit/x_test.c::gone` |", "has no test gone"),
        ("| It works | `unit/x_test.c::forgotten` |", "has no test forgotten"),
        ("| It works | `e2e/test_x.py::test_gone` |", "has no test test_gone"),
    ],
)
def test_a_row_without_its_test_is_found(behaviours, row, says):
    fails(behaviours(row), "behaviours", says)


def test_a_test_that_another_table_names_and_is_gone_is_found(behaviours):
    tree = behaviours("| It works | `unit/x_test.c::it_works` |")
    tree.put("tests/README.md", "| a rule | `unit/x_test.c::gone` |\n<!-- behaviours:begin -->\n| rule | test |\n"
                                "| It works | `unit/x_test.c::it_works` |\n<!-- behaviours:end -->\n")
    fails(tree, "behaviours", "has no test gone")


def test_an_empty_table_and_missing_markers_are_found(tree, behaviours):
    fails(behaviours(), "behaviours", "the table is empty")
    tree.put("tests/README.md", "x\n")
    fails(tree, "behaviours", "markers")


def test_the_claims_of_the_security_page_are_read_as_well(behaviours):
    tree = behaviours("| It works | `unit/x_test.c::it_works` |")
    tree.put("deploy/SECURITY.md", "x\n<!-- behaviours:begin -->\n| claim | test |\n|---|---|\n"
                                   "| Nobody gets in | `e2e/test_x.py::test_gone` |\n<!-- behaviours:end -->\n")
    fails(tree, "behaviours", "deploy/SECURITY.md:5: tests/e2e/test_x.py has no test test_gone")


# ---- the pages that say where things are ----------------------------------------------------------------

def test_a_file_a_function_and_a_link_that_are_not_there_are_found(tree):
    tree.put("common/io/a.c", "int asked(void)\n{\n    return 1;\n}\n")
    tree.put(".github/CONTRIBUTING.md", "Nothing is named here.\n")
    tree.put(".github/ARCHITECTURE.md", "| it asks | `common/io/a.c` | `asked()` |\n[a](../common/io/a.c#x) [b](https://x/y)\n")
    passes(tree, "architecture")
    tree.put(".github/ARCHITECTURE.md", "| it asks | `common/io/b.c` | `asked()` |\n")
    fails(tree, "architecture", "ARCHITECTURE.md:1: common/io/b.c is no file")
    tree.put(".github/ARCHITECTURE.md", "| it asks | `common/io/a.c` | `told()` |\n")
    fails(tree, "architecture", "ARCHITECTURE.md:1: told() is not in common/io/a.c")
    tree.put(".github/ARCHITECTURE.md", "[a](../common/io/b.c)\n")
    fails(tree, "architecture", "ARCHITECTURE.md:1: the link ../common/io/b.c leads nowhere")


def test_a_long_line_and_an_uncommon_word_in_prose_are_found(tree):
    tree.put("a.md", f"{'x' * 100}\n| {'x' * 120} |\n    {'x' * 120}\n```\n{'x' * 120}\n```\nas the code says: `burial`\n")
    passes(tree, "prose")
    tree.put("a.md", f"fine\n{'x' * 101}\n")
    fails(tree, "prose", "a.md:2: 101 columns; prose ends at 100")
    tree.put("a.md", "The record is buried.\n")
    fails(tree, "prose", "a.md:1: say 'written to the DLQ', not 'buried'")
    tree.put("a.md", "| Limits are judged first | `judged` |\n")
    fails(tree, "prose", "a.md:1: say 'checked or classified', not 'judged'")
    tree.put("a.md", "fine\n")
    tree.put("docker-compose.yml", "# The port is settled here.\n")
    fails(tree, "prose", "docker-compose.yml:1: say 'finished', not 'settled'")
    tree.put("docker-compose.yml", "services: {}\n")
    tree.put("reporter/a.c", "/* Told twice. */\n")
    fails(tree, "prose", "reporter/a.c:1: say 'reported, sent, stored or given', not 'told'")


def junit(path, **tests):
    cases = "".join(f'<testcase classname="c" name="{name}">{said and f"<failure message={quoteattr(said)}/>"}</testcase>'
                    for name, said in tests.items())
    path.write_text(f"<testsuite>{cases}</testsuite>")
    return str(path)


def test_only_what_passed_in_the_second_try_is_not_counted_as_failed(tmp_path):
    first = junit(tmp_path / "first.xml", good="", late="too slow", bad="wrong", gone="lost")
    second = junit(tmp_path / "second.xml", late="", bad="wrong again")
    script = LINT.parent / "lib/junit_counts.py"
    answers = [subprocess.run(["/usr/bin/python3", script, *files], capture_output=True, text=True, check=True).stdout
               for files in ([first], [first, second])]
    assert answers == ["1 3 0\nlate: too slow\nbad: wrong\ngone: lost\n",
                       "2 2 0\nbad: wrong\ngone: lost\n~late: too slow\n"]
    empty = tmp_path / "empty.xml"
    empty.write_text("<testsuite/>")
    assert subprocess.run(["/usr/bin/python3", script, first, empty], check=False).returncode == 1
