"""As much of GitHub Actions as the tests of deploy/downstream need: expressions, and one composite action."""
import os
import re
import subprocess

import yaml

from lib.processes import ROOT

FOLDER = ROOT / "deploy" / "downstream"
TOKENS = re.compile(r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<name>[A-Za-z_][\w.*-]*)|(?P<sign>\|\||&&|==|!=|!|\(|\)|,))")
WORDS = {"true": True, "false": False, "null": None}


def tokens_of(expression):
    at, found = 0, []
    while expression[at:].strip():
        match = TOKENS.match(expression, at)
        assert match, f"not understood: {expression[at:]!r}"
        found.append((match.lastgroup, match.group(match.lastgroup)))
        at = match.end()
    return found


class Expression:
    """The part of GitHub's expressions that our files use: properties, texts, || && == != ! ( ) and format()."""

    def __init__(self, text, contexts):
        self.tokens, self.contexts = tokens_of(text), contexts

    def value(self):
        found = self.any()
        assert not self.tokens, f"left over: {self.tokens}"
        return found

    def take(self, *signs):
        if self.tokens and self.tokens[0][1] in signs and self.tokens[0][0] == "sign":
            return self.tokens.pop(0)[1]
        return None

    def any(self):
        left = self.all()
        while self.take("||"):
            right = self.all()
            left = left or right
        return left

    def all(self):
        left = self.compared()
        while self.take("&&"):
            right = self.compared()
            left = left and right
        return left

    def compared(self):
        left = self.one()
        sign = self.take("==", "!=")
        if not sign:
            return left
        equal = (left or "") == (self.one() or "")  # null equals the empty text
        return equal if sign == "==" else not equal

    def one(self):
        if self.take("!"):
            return not self.one()
        if self.take("("):
            found = self.any()
            assert self.take(")")
            return found
        kind, text = self.tokens.pop(0)
        if kind == "text":
            return text[1:-1].replace("''", "'")
        if text == "format" and self.take("("):
            return self.format()
        return WORDS[text] if text in WORDS else self.property(text)

    def format(self):
        """What is null prints as nothing."""
        given = [self.any()]
        while self.take(","):
            given.append(self.any())
        assert self.take(")")
        return re.sub(r"\{(\d+)\}", lambda match: text_of(given[int(match.group(1)) + 1]), given[0])

    def property(self, path):
        """null for what is not there, as GitHub has it."""
        found = self.contexts
        for name in path.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        return found


def text_of(found):
    """A value as GitHub prints it."""
    return "" if found is None else str(found).lower() if isinstance(found, bool) else str(found)


def fill(text, contexts):
    """A text with its ${{ }} replaced."""
    def replaced(match):
        return text_of(Expression(match.group(1), contexts).value())
    return re.sub(r"\$\{\{(.*?)\}\}", replaced, str(text), flags=re.S)


def load(name):
    """One of our YAML files. YAML 1.1 reads the key `on` as true."""
    document = yaml.safe_load((FOLDER / name).read_text())
    return {("on" if key is True else key): value for key, value in document.items()}


class Job:
    """A job that was started by a repository_dispatch and calls our action, as a runner would."""

    def __init__(self, folder, repo, event, token_url, run_id="811", attempt="1", status="success"):
        self.folder, self.action = folder, load("action.yml")
        self.outputs = folder / "outputs"
        self.event = folder / "event.json"
        self.event.write_text(event)
        self.status = status
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": repo,
            "GITHUB_WORKFLOW": "PyTorch CI", "GITHUB_JOB": "test", "GITHUB_RUN_ID": run_id,
            "GITHUB_RUN_ATTEMPT": attempt, "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_EVENT_PATH": str(self.event), "GITHUB_ACTION_PATH": str(FOLDER),
            "GITHUB_OUTPUT": str(self.outputs), "ACTIONS_ID_TOKEN_REQUEST_URL": token_url,
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "request-secret",
        }

    def start(self, **inputs):
        """The action as a process; names of inputs with underscores."""
        contexts = {"github": {"job": "test"}, "job": {"status": self.status, "check_run_id": "700811"}}
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        declared = self.action["inputs"]
        assert set(given) <= set(declared), set(given) - set(declared)
        contexts["inputs"] = {name: given.get(name, fill(what.get("default", ""), contexts))
                              for name, what in declared.items()}
        step = self.action["runs"]["steps"][0]
        environment = {**self.environment, **{k: fill(v, contexts) for k, v in step["env"].items()}}
        self.outputs.write_text("")
        return subprocess.Popen(["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
                                env=environment, cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)

    def end(self, process, timeout=60):
        """(exit code, what the log shows, outputs). The runner takes ::add-mask:: out of the log."""
        text, _ = process.communicate(timeout=timeout)
        masks = re.findall(r"^::add-mask::(.+)$", text, re.M)
        log = "\n".join(line for line in text.splitlines() if not line.startswith("::add-mask::"))
        assert not [mask for mask in masks if mask in log], "a token is in the log"
        outputs = dict(line.split("=", 1) for line in self.outputs.read_text().splitlines())
        return process.returncode, log, outputs

    def run(self, **inputs):
        return self.end(self.start(**inputs))
