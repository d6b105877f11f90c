"""The programs of the release build (build/bin) are hardened: position-independent, nothing of the linker's tables writable
once they run, no stack to execute, libc's checked functions, stack protector."""
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("crcr-ingest", "crcr-dispatcher", "crcr-reporter", "crcrctl")
GOOD = ("-O2", "-D_FORTIFY_SOURCE=2", "-fstack-protector-strong", "-fPIE", "-pie",
        "-Wl,-z,relro,-z,now,-z,noexecstack")
SOURCE = """
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    char text[64];
    snprintf(text, (size_t)argc, "%s", argv[0]);
    strcpy(text, argv[argc - 1]);
    return puts(text);
}
"""
WRONG = {"not position-independent": ("-fno-pie", "-no-pie"), "relocations stay writable": ("-Wl,-z,norelro",),
         "symbols are bound late": ("-Wl,-z,lazy",), "the stack can be executed": ("-Wl,-z,execstack",),
         "no checked functions": ("-U_FORTIFY_SOURCE",), "no stack protector": ("-fno-stack-protector",),
         "libraries from a folder of its own": ("-Wl,-rpath,/tmp",)}


def faults(program):
    def read(*what):
        return subprocess.run(["readelf", "-W", *what, program], check=True, capture_output=True, text=True).stdout
    head, segments, dynamic, symbols = read("-h"), read("-l"), read("-d"), read("--dyn-syms")
    stack = re.search(r"^ *GNU_STACK .* (\S+) +0x\w+$", segments, re.MULTILINE)
    found = {
        "not position-independent": not re.search(r"Type: +DYN", head) or "(FLAGS_1)" not in dynamic or " PIE" not in dynamic,
        "relocations stay writable": "GNU_RELRO" not in segments,
        "symbols are bound late": not re.search(r"BIND_NOW|Flags:.* NOW", dynamic),
        "the stack can be executed": not stack or stack[1] != "RW",
        "no checked functions": not re.search(r" __\w+_chk[@ ]", re.sub("__stack_chk_fail", "", symbols)),
        "no stack protector": "__stack_chk_fail" not in symbols,
        "libraries from a folder of its own": bool(re.search(r"\((RPATH|RUNPATH)\)", dynamic)),
    }
    return {name for name, is_so in found.items() if is_so}


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_program_of_the_release_build_is_hardened(program):
    binary = ROOT / "build" / "bin" / program
    assert binary.exists(), "cmake --preset release && cmake --build --preset release"
    assert faults(binary) == set()


@pytest.mark.parametrize("fault", [None, *WRONG])
def test_a_program_that_is_not_is_found(tmp_path, fault):
    subprocess.run(["cc", *GOOD, *WRONG.get(fault, ()), "-x", "c", "-", "-o", tmp_path / "program"], input=SOURCE, text=True,
                   check=True, capture_output=True)
    assert faults(tmp_path / "program") == ({fault} if fault else set())
