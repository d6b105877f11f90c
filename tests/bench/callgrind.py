"""Instructions of user space that a running program executes, counted by valgrind.

Time depends on what else the machine does; instructions hardly do. Two things valgrind counts otherwise than a CPU would
execute them, and both are put right here:

- It has no SHA extensions (SHA-NI), so OpenSSL computes SHA-256 with AVX2, in eleven times as many instructions.
- It counts each byte of `rep movsb`, which glibc copies large blocks with. glibc is set to copy with vectors."""
import functools
import pathlib
import re
import subprocess
import tempfile
import time

SHA_NI_BLOCK = 170  # instructions for 64 bytes with SHA-NI, counted by single steps (README.md, "Instructions")
CALIBRATION_BLOCKS = 10_000


class Counted:
    """What a program that is started with `under` in front executes between begin() and end(), or, if begin() is never
    called, until it ended."""

    def __init__(self, folder):
        self.file = pathlib.Path(folder) / f"callgrind-{time.monotonic_ns()}"
        self.under = ["env", "GLIBC_TUNABLES=glibc.cpu.hwcaps=-ERMS", "valgrind", "--tool=callgrind", "-q",
                      f"--callgrind-out-file={self.file}"]
        self.pid, self.dumps = None, 0

    def begin(self, process):
        self.pid = str(process.pid)
        control("--zero", self.pid)

    def end(self):
        control("--dump", self.pid)
        self.dumps += 1
        return self.instructions(self.file.with_name(f"{self.file.name}.{self.dumps}"))

    def instructions(self, file=None):
        report = annotate(file or self.file)
        return int(total(report) - sha256(report) * (1 - SHA_NI_BLOCK / sha256_block()[1]))


def control(*arguments):
    subprocess.run(["callgrind_control", *arguments], check=True, capture_output=True, timeout=60)


def annotate(file):
    """One line a function: its own instructions, its address or name, its library."""
    return subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", str(file)], check=True, capture_output=True,
                          text=True, timeout=60).stdout


def number(text):
    return int(text.replace(",", ""))


def total(report):
    return number(re.search(r"^ *([\d,]+) \(100\.0%\)  PROGRAM TOTALS", report, re.MULTILINE).group(1))


def sha256(report):
    """The instructions of OpenSSL's SHA-256 in it."""
    return sum(number(line.split()[0]) for line in report.splitlines() if sha256_block()[0] in line)


@functools.cache
def sha256_block():
    """The function of libcrypto that does SHA-256 under valgrind, as reports name it (its symbol is stripped), and its
    instructions for a block of 64 bytes."""
    with tempfile.TemporaryDirectory() as folder:
        counted, zeros = Counted(folder), pathlib.Path(folder) / "zeros"
        zeros.write_bytes(bytes(64 * CALIBRATION_BLOCKS))
        subprocess.run([*counted.under, "openssl", "dgst", "-sha256", zeros], check=True, capture_output=True, timeout=120)
        lines = [line for line in annotate(counted.file).splitlines() if "libcrypto" in line]
    most = max(lines, key=lambda line: number(line.split()[0]))
    name = re.search(r"\S*:(\S+ \[.*libcrypto.*\])", most).group(1)
    return name, number(most.split()[0]) / CALIBRATION_BLOCKS
