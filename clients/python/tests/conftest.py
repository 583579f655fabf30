"""What the tests share. `npm test` starts the server and says in the environment where it is."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import pathlib
import random
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from annals import Annals, AsyncAnnals

#: Where the server is, and the client that reads and records there.
URL = os.environ["ANNALS_TEST_URL"]
RECORDER_URL = os.environ["ANNALS_TEST_RECORDER_URL"]
DATABASE_URL = os.environ["ANNALS_TEST_DATABASE_URL"]
CREDENTIALS = {
    "client_id": os.environ["ANNALS_TEST_CLIENT_ID"],
    "client_secret": os.environ["ANNALS_TEST_CLIENT_SECRET"],
}
TENANT = "acme"


def read_file(name: str) -> Any:
    return json.loads((pathlib.Path(os.environ["ANNALS_TEST_FOLDER"]) / name).read_text())


def needs(module: str) -> Any:
    """A module that not every machine has. CI has all of them."""
    if os.environ.get("CI"):
        return importlib.import_module(module)
    return pytest.importorskip(module)


@pytest.fixture(scope="session")
def annals() -> Iterator[Annals]:
    with Annals(URL, TENANT, **CREDENTIALS) as client:
        yield client


@pytest.fixture
def async_annals() -> AsyncAnnals:
    return AsyncAnnals(URL, TENANT, **CREDENTIALS)


@pytest.fixture
def unique() -> str:
    """A name of its own for each test, so that a repeat finds nothing of the one before."""
    return f"t{secrets.token_hex(6)}"


@pytest.fixture
def chance() -> random.Random:
    """Random choices. The seed is printed where the test fails."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    return random.Random(seed)


def eventually(check: Callable[[], bool], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < until, "it has not happened"
        time.sleep(0.01)
