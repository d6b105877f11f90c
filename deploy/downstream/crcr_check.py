"""`crcr-report check`: URL, token, identity, level; what to mend comes first. Part of crcr-report."""
import json
import time
import urllib.parse
import urllib.request

from crcr_send import OK, USAGE, Failure, Token, detail_of, http_once, line_of

MEND = 1  # exit code
CALLBACK = "/github/callback"


def ask(url, token, options):
    """(status, body as a dictionary or None, what it says as text) of one question."""
    headers = {"User-Agent": "crcr-report", "Accept": "application/json"}
    if token:
        headers["Authorization"] = "Bearer " + token
    status, body, _ = http_once(urllib.request.Request(url, headers=headers), options.max_time)
    try:
        found = json.loads(body.decode("utf-8"))
    except ValueError:
        found = None
    return status, found if isinstance(found, dict) else None, detail_of(body)


class Mend(Exception):
    """The first thing to mend."""


def url_of(options):
    parts = urllib.parse.urlsplit(options.callback_url)
    path = parts.path.rstrip("/")
    if not path.endswith(CALLBACK):
        raise Mend("--callback-url ends in %r; the relay's ends in %s" % (parts.path, CALLBACK))
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, path[:-len("callback")] + "whoami", "", ""))


def relay_check(url, options):
    """Whoever answers a question without a token with 401 and {"detail": …} is a relay."""
    status, found, text = ask(url, None, options)
    host = urllib.parse.urlsplit(url).netloc
    if status == 0:
        tls = "certificate" in text.lower() or "ssl" in text.lower()
        raise Mend("%s: %s" % (host, "its TLS certificate is not trusted here: " + text if tls else
                               "no answer: " + text + ". Is the host right, and reachable from this job?"))
    if status in (429, 500, 502, 503, 504):
        raise Mend("%s answers HTTP %d: %s. Try again later; if it lasts, notify the relay's operators" % (host, status, text))
    if status != 401 or not found or "detail" not in found:
        raise Mend("%s answers HTTP %d to a question that a relay answers with 401: it is none, or an older one" % (host, status))


def token_check(url, options, rows):
    """What the relay says of our token."""
    token = Token(options, time.monotonic() + options.max_wait)
    text = token.get()
    rows.append("token: one could be had; it says: " + token.claims_text())
    status, found, said = ask(url, text, options)
    if status != 200 or not found or "next_step" not in found:
        raise Mend("the relay does not take the token: HTTP %d: %s" % (status, said) if status else "no answer: " + said)
    return found


def look(options, rows):
    url = url_of(options)
    relay_check(url, options)
    rows.append("url: a relay answers at " + options.callback_url)
    found = token_check(url, options, rows)
    rows.append("repository: %s, by %s" % (found.get("repository"), found.get("provider") or found.get("issuer")))
    rows.append("level: %s; events: %s; reports are %s" % (
        found.get("level") or "none", ", ".join(map(str, found.get("events") or ["none"])),
        "taken" if found.get("reports_taken") else "ignored (%s)" % found.get("reason")))
    if found.get("page"):
        rows.append("last dispatches and reports: %s" % found["page"])
    if not found.get("reports_taken"):
        raise Mend(found["next_step"])
    return found["next_step"]


def check(options):
    """Says the next step, then what was found; the exit code."""
    rows = []
    try:
        code, step = OK, look(options, rows)
    except Mend as found:
        code, step = MEND, str(found)
    except Failure as failure:  # of the token
        if failure.code == USAGE:
            raise
        code, step = MEND, str(failure)
    options.say("next step: " + line_of(step), "warning" if code else None)
    for row in rows:
        options.say(line_of(row))
    return code
