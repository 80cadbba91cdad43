"""The deployment of compose.yaml, started by hand, with each part failing while an agent works."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.faults.live_agent import Work, new_token, watching
from tests.faults.services import Deployment, deployed
from tests.faults.store import Store


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployed(tmp_path_factory.mktemp("deployment")) as made:
        yield made


@pytest.fixture(scope="module")
def token(deployment: Deployment) -> str:
    return new_token(deployment.folder, **deployment.environment)


@pytest.fixture(scope="module")
def expected(deployment: Deployment, token: str) -> list[bytes]:
    """The contexts of an undisturbed agent."""
    with Work(deployment.web.address, token, "undisturbed", deployment.folder) as work:
        work.start()
        work.ended()
        work.audit(Store(deployment.postgres.url))
        return work.handed_out


def both_workers_killed(deployment: Deployment, work: Work) -> None:
    work.reached(0.3)
    deployment.kill_worker(0)
    work.reached(0.6)
    deployment.kill_worker(1)


def web_server_killed(deployment: Deployment, work: Work) -> None:
    work.reached(0.5)
    deployment.kill_web()


def redis_lost(deployment: Deployment, work: Work) -> None:
    """Redis down while a fifth of the session is stored, and empty when it returns."""
    work.reached(0.3)
    deployment.redis.kill()
    work.reached(0.5)
    deployment.redis.start()


def postgres_restarted(deployment: Deployment, work: Work) -> None:
    work.reached(0.5)
    deployment.postgres.crash()
    deployment.postgres.start()


FAULTS = [
    pytest.param(both_workers_killed, marks=pytest.mark.fault("C1", "M7")),
    pytest.param(web_server_killed, marks=pytest.mark.fault("A1", "M7")),
    pytest.param(redis_lost, marks=pytest.mark.fault("C3", "C4", "R2")),
    pytest.param(postgres_restarted, marks=pytest.mark.fault("D4")),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_the_agent_goes_on_and_the_page_is_right_again(
    browser: Any,
    deployment: Deployment,
    token: str,
    expected: list[bytes],
    fault: Callable[[Deployment, Work], None],
) -> None:
    web = deployment.web
    with (
        Work(web.address, token, fault.__name__, deployment.folder) as work,
        watching(browser, web, work) as watched,
    ):
        work.start()
        fault(deployment, work)
        work.ended()
        watched.catches_up()
        watched.tell(fault.__name__)
        work.audit(Store(deployment.postgres.url))
        assert work.handed_out == expected
