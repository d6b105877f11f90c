"""The App's private key. One for all tests of a process: to make one costs a busy machine half a second."""
import functools
import subprocess


@functools.cache
def _pem():
    return subprocess.run(["openssl", "genrsa", "2048"], check=True, capture_output=True).stdout


def app_key(file):
    """Writes the key there."""
    file.touch(0o600)
    file.write_bytes(_pem())
