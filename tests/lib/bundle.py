"""Modules of the pages for a script of a test: the browser itself has only one file of all (reporter/web/pages.cmake)."""
import subprocess

from lib.processes import ROOT


def bundled(*names):
    """A script whose `ours` has what these modules export."""
    done = subprocess.run(["esbuild", "--bundle", "--format=iife", "--global-name=ours", "--external:/assets/*", "--log-level=warning"],
                          cwd=ROOT / "reporter" / "web" / "pages", input="".join(f'export * from "./{name}";' for name in names),
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
