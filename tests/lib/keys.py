"""The App's private key. One for all tests of a process: to make one costs a busy machine half a second."""
import functools
import subprocess
import time

import jwt


@functools.cache
def _pem():
    return subprocess.run(["openssl", "genrsa", "2048"], check=True, capture_output=True).stdout


def app_key(file):
    """Writes the key there."""
    file.touch(0o600)
    file.write_bytes(_pem())


def app_jwt(file, **changes):
    """What the App signs itself with."""
    now = int(time.time())
    claims = {"iss": "12345", "iat": now - 60, "exp": now + 540, **changes}
    return jwt.encode(claims, file.read_text(), algorithm="RS256")
