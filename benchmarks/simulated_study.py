"""One simulated study: the real engine, the real rule, a simulated host."""

import math
from dataclasses import dataclass

from benchmarks.simulated_host import HOSTS, START_S, SimulatedHost, SimulatedSite
from pgversus.lab.course import Course
from pgversus.lab.engine import run_courses
from pgversus.lab.progress import Silence
from pgversus.stats.analysis import standing
from pgversus.stats.verdict import Verdict
from pgversus.study.comparison import Arm, Comparison
from pgversus.study.dataset import Dataset
from pgversus.study.design import Design
from pgversus.study.servers import LocalPath
from pgversus.study.study import Context
from pgversus.study.workload import PgbenchWorkload, Script

WINDOW_S, WARM_UP_S, ROUNDS = 2, 2, 8
NEVER_S = 1e9
SERVER = LocalPath(path="/simulated")
WORKLOAD = PgbenchWorkload(scripts=(Script(name="tpcb-like"),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a study ended."""

    verdicts: tuple[Verdict, ...]
    covered: bool
    """Whether every interval holds the truth."""
    blocks: int
    measured_s: float
    wall_s: float


def simulate(
    host: str,
    ratios: tuple[float, ...],
    seed: int,
    max_blocks: int,
    host_type: type[SimulatedHost] = SimulatedHost,
) -> Outcome:
    """The end of one study of contenders that are truly `ratios` times as fast as the baseline."""
    comparison = _comparison(len(ratios), seed, max_blocks)
    arms = len(ratios) + 1
    # With as many rounds as may be measured again.
    block_s = arms * (START_S + WARM_UP_S + ROUNDS * WINDOW_S * 3 // 2)
    machine = host_type(
        HOSTS[host],
        dict(enumerate((1.0, *ratios))),
        seed=(seed, sorted(HOSTS).index(host)),
        window_s=WINDOW_S,
        warm_up_s=WARM_UP_S,
        seconds=block_s * max_blocks + 1,
    )
    course = Course(Context(number=1, levels=(), comparison=comparison), len(ratios))
    run_courses(
        [course],
        SimulatedSite(machine),
        seed=seed,
        budget_s=NEVER_S,
        clock=machine.clock,
        progress=Silence(),
        keep=lambda _course, _block: None,
        keep_preparation=lambda _course: None,
    )
    verdicts, covered = [], True
    for contender, truth in enumerate(ratios, 1):
        stands = standing(course.samples, comparison, course.rule, contender)
        verdicts.append(stands.verdict)
        covered = covered and stands.interval.low <= math.log(truth) <= stands.interval.high
    return Outcome(
        verdicts=tuple(verdicts),
        covered=covered,
        blocks=len(course.blocks),
        measured_s=sum(trial.seconds for block in course.blocks for trial in block.trials.values()),
        wall_s=course.wall_s,
    )


def _comparison(contenders: int, seed: int, max_blocks: int) -> Comparison:
    return Comparison(
        arms=tuple(
            Arm(index=i, label=str(i), server=SERVER, settings=(), workload=WORKLOAD, dataset=Dataset())
            for i in range(contenders + 1)
        ),
        factors=("server",),
        design=Design(
            window_s=float(WINDOW_S),
            rounds=ROUNDS,
            warm_up_s=float(WARM_UP_S),
            budget_s=NEVER_S,
            max_blocks=max_blocks,
            seed=seed,
        ),
    )
