"""HTTP with patience, and the OIDC token of the job. Part of crcr-report."""
import base64
import email.utils
import http.client
import json
import os
import random
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

AUDIENCE = "pytorch-cross-repo-ci-relay"  # unless --audience says another
TOKEN_LIFE_S = 240  # a GitHub token lives 5 minutes or more; an older one is minted anew before it is used

OK, FAULT, USAGE, REFUSED, UNREACHABLE, NO_TOKEN = range(6)  # exit codes


class Failure(Exception):
    """Ends the report: the exit code, and its text."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def line_of(text, limit=600):
    """Text from elsewhere as one line: it can neither forge a log line nor a workflow command."""
    return re.sub(r"[\x00-\x20\x7f-\x9f\u2028\u2029]+", " ", str(text)).strip()[:limit]


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """The token goes to the URL that was given, and nowhere else."""

    def redirect_request(self, *_):
        return None


OPENER = urllib.request.build_opener(NoRedirect)


def retry_after_of(headers):
    """Seconds, or None."""
    text = (headers.get("Retry-After") or "").strip()
    if text.isdigit():
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, IndexError, AttributeError):
        return None


def http_once(request, timeout_s):
    """(status, body, Retry-After); status 0: no answer, and body says why."""
    try:
        with OPENER.open(request, timeout=timeout_s) as answer:
            return answer.status, answer.read(), None
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(), retry_after_of(error.headers)
    except (OSError, http.client.HTTPException, ValueError) as error:  # URLError is an OSError
        return 0, str(getattr(error, "reason", None) or error or type(error).__name__).encode(), None


def detail_of(body):
    try:
        return line_of(json.loads(body.decode("utf-8"))["detail"])
    except (ValueError, KeyError, TypeError):
        return line_of(body.decode("utf-8", "replace"), 200)


def http_until(what, make_request, options, deadline):
    """Asks again on 429, 5xx and no answer, until an answer that stays or the deadline. (status, body)
    Of the options it reads max_time, max_wait and say."""
    pause_s = 1.0
    while True:
        request = make_request()
        left_s = deadline - time.monotonic()
        status, body, retry_after_s = http_once(request, max(1.0, min(options.max_time, left_s)))
        if status != 429 and 0 < status < 500:
            return status, body
        why = "HTTP %d: %s" % (status, detail_of(body)) if status else "no answer: %s" % detail_of(body)
        # All jobs of a run get the same moment to wait for: they must not come back at once.
        wait_s = (pause_s if retry_after_s is None else max(pause_s, retry_after_s)) * random.uniform(1.0, 1.25)
        pause_s = min(30.0, pause_s * 2)
        if time.monotonic() + wait_s >= deadline:
            raise Failure(UNREACHABLE, "%s: %s; given up after --max-wait %d s" % (what, why, options.max_wait))
        options.say("%s: %s; again in %.1f s" % (what, why, wait_s))
        time.sleep(wait_s)


class Token:
    """The OIDC token of this job, minted when needed and again when it has grown old. Never printed."""

    def __init__(self, options, deadline):
        self.options, self.deadline = options, deadline
        self.text, self.minted = "", 0.0

    def get(self):
        if not self.text or time.monotonic() - self.minted > TOKEN_LIFE_S:
            self.text = self.mint()
            self.minted = time.monotonic()
            if not re.match(r"^[\w-]+\.[\w-]+\.[\w-]+$", self.text):
                raise Failure(NO_TOKEN, "what was given as OIDC token is no JWT (%d characters)" % len(self.text))
            if os.environ.get("GITHUB_ACTIONS") == "true":
                print("::add-mask::" + self.text, flush=True)  # the runner takes this line out of the log
        return self.text

    def mint(self):
        if os.environ.get("CRCR_OIDC_TOKEN"):
            return os.environ["CRCR_OIDC_TOKEN"].strip()
        if self.options.token_command:
            return self.by_command()
        if os.environ.get("ACTIONS_ID_TOKEN_REQUEST_URL"):
            return self.by_actions()
        if os.environ.get("GITHUB_ACTIONS") == "true":
            raise Failure(NO_TOKEN, "the job may not mint an OIDC token: give it `permissions: id-token: write`")
        raise Failure(NO_TOKEN, "no OIDC token: set CRCR_OIDC_TOKEN or give --token-command")

    def by_command(self):
        try:
            done = subprocess.run(self.options.token_command, shell=True, stdout=subprocess.PIPE, timeout=60,
                                  env=dict(os.environ, CRCR_AUDIENCE=self.options.audience))
        except subprocess.TimeoutExpired:
            raise Failure(NO_TOKEN, "--token-command did not end within 60 s")
        if done.returncode:
            raise Failure(NO_TOKEN, "--token-command ended with exit code %d" % done.returncode)
        return done.stdout.decode("utf-8", "replace").strip()

    def by_actions(self):
        url = os.environ["ACTIONS_ID_TOKEN_REQUEST_URL"]
        url += ("&" if "?" in url else "?") + urllib.parse.urlencode({"audience": self.options.audience})
        headers = {"Authorization": "Bearer " + os.environ.get("ACTIONS_ID_TOKEN_REQUEST_TOKEN", ""),
                   "Accept": "application/json", "User-Agent": "crcr-report"}
        status, body = http_until("the token service", lambda: urllib.request.Request(url, headers=headers),
                                  self.options, self.deadline)
        if status != 200:
            raise Failure(NO_TOKEN, "the token service answered HTTP %d" % status)
        try:
            return json.loads(body.decode("utf-8"))["value"]
        except (ValueError, KeyError, TypeError):
            raise Failure(NO_TOKEN, "the token service answered no token")

    def claims_text(self):
        """Who the token says that we are; its claims are no secret."""
        try:
            part = self.text.split(".")[1]
            claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode("utf-8"))
            names = ("iss", "aud", "repository", "pipeline_slug")
            return ", ".join("%s %s" % (name, line_of(claims[name], 200)) for name in names if name in claims)
        except (ValueError, IndexError, TypeError):
            return "nothing that could be read"
