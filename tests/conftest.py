import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("suite", deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


@pytest.fixture
def rng():
    return np.random.default_rng(20231)
