"""Pages in headless Chromium, where it is installed."""

import html
import re
import shutil
import subprocess
from pathlib import Path

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
_OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def measured(page: Path, profile: Path, *options: str, milliseconds: int = 5000) -> str:
    """
    Return what a page writes into its title, after the word ``measured``.

    Args:
        page: The page.
        profile: A new folder for the browser's own files.
        options: More options of the browser.
        milliseconds: How long the page may take, in its own time, which passes at once where nothing happens.
    """
    budget = (f"--user-data-dir={profile}", f"--virtual-time-budget={milliseconds}")
    command = [str(BROWSER), *_OPTIONS, *budget, *options, "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    found = re.search("<title>measured(.*?)</title>", done.stdout, re.DOTALL)
    assert found is not None, done.stdout[:200]
    return html.unescape(found[1])
