import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from fed_mwu.clients.secret import LENGTH, site_secret


def test_a_secret_is_made_once_and_for_its_owner_only(tmp_path):
    path = tmp_path / "deep" / "secret"
    first = site_secret(path)
    assert len(first) == LENGTH
    assert site_secret(path) == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["secret"]


def test_processes_that_start_together_get_the_same_secret(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(site_secret, [tmp_path / "secret"] * 32))
    assert len(found) == 1


def test_two_sites_have_different_secrets(tmp_path):
    assert site_secret(tmp_path / "a") != site_secret(tmp_path / "b")


def test_a_file_that_is_no_secret_is_refused(tmp_path):
    (tmp_path / "secret").write_bytes(b"short")
    with pytest.raises(ValueError, match=f"{LENGTH} bytes"):
        site_secret(tmp_path / "secret")
