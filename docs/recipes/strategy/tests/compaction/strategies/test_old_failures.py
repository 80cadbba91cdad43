"""Old failures: failed results become stubs once they are old enough, and nothing else does."""

from __future__ import annotations

from compaction.policies.policy import Policy, Step
from compaction.simulation.simulate import simulate
from compaction.strategies.old_failures import OldFailures
from tests.build import Talk, rough


def test_a_failed_result_becomes_a_stub_when_it_is_old_enough() -> None:
    talk = Talk()
    talk.user("go")
    for error in (True, False, False, False):
        talk.respond()
        use = talk.call("Bash", {"command": "make"})
        talk.result(use, "a line of output\n" * 60, error=error)
    policy = Policy("tried", steps=(Step("old_failures", OldFailures(age=2)),))
    (revision,) = simulate(talk.session(), policy, rough).revisions
    assert (revision.step, [edit.targets for edit in revision.edits]) == (4, [("b2",)])
