# SPDX-License-Identifier: Apache-2.0
"""What `optimal` keeps whatever it is given: plans that verify, never worse than the list planners, bounds that hold, calendars untouched."""

import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from fractions import Fraction
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.core.calendar import Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan, Refusal
from broker.core.request import Options, Request
from broker.planners import PLANNERS
from broker.planners.optimal import OBJECTIVES, Objective, Optimal
from broker.planners.optimal.measure import Yardstick
from broker.planners.sequence import congestion_factor, plan_all
from tests.core.grid import cases
from tests.planners.optimal_cases import assert_fits, empty, one_link_network, random_case

seeds = st.integers(0, 2**32 - 1)
_HOUR = 3_600_000_000


def _in_file_order(name: str, requests: list[Request], network: Network, calendars: dict[str, Calendar]) -> list[Plan | Refusal]:
    """The plain loop: nothing of the planner under test."""
    sheet = deepcopy(dict(calendars))
    answers = []
    for request in requests:
        answers.append(answer := PLANNERS[name].plan(request, network, sheet))
        for begin, end, rate, path in answer.segments if isinstance(answer, Plan) else ():
            for link_id in path:
                sheet[link_id].book(begin, end, rate)
    return answers


@pytest.mark.parametrize("objective", OBJECTIVES)
@given(seed=seeds)
@example(seed=379)  # a holding time that the list planners put elsewhere
@example(seed=629)  # volumes refilled beside rows at Rmax
@cases(60)
def test_any_batch_gets_plans_that_fit_and_are_no_worse_than_lists(objective: Objective, seed: int) -> None:
    network, calendars, requests = random_case(seed)
    before = {link_id: calendar.steps() for link_id, calendar in calendars.items()}
    solution = Optimal(objective).solve(requests, network, calendars)
    assert before == {link_id: calendar.steps() for link_id, calendar in calendars.items()}
    assert_fits(solution, requests, network, calendars)
    yardstick = Yardstick(objective, requests, network, calendars)
    assert solution.value == yardstick.value(solution.answers)
    for name in ("vbls", "fbls", "spaghetti"):
        assert yardstick.score(solution.answers) <= yardstick.score(_in_file_order(name, requests, network, calendars)), name
    if solution.bound is not None:
        least = objective in {"congestion", "completion"}
        value, slack = float(solution.value), 1e-9 * abs(solution.bound)
        assert value >= solution.bound - slack if least else value <= solution.bound + slack


@given(seed=seeds)
@example(seed=5076)  # two levels of what others have booked, nearly the same
@cases(60)
def test_least_congestion_over_several_paths_at_once_is_proven(seed: int) -> None:
    """Everybody may split and nothing is asked that a program does not know: then the bound is reached, bookings or not."""
    network, calendars, requests = random_case(seed, plain=True)
    requests = [replace(request, options=replace(request.options, split=True)) for request in requests]
    solution = Optimal().solve(requests, network, calendars)
    assert_fits(solution, requests, network, calendars)
    if solution.bound is not None:
        # Rates are whole bit/s and rows end on whole microseconds, nothing else is lost.
        used = {link_id for answer in solution.answers if isinstance(answer, Plan) for s in answer.segments for link_id in s.path}
        grain = len(requests) / min((network.links[link_id].capacity_bps for link_id in used), default=1)
        assert float(solution.value) <= solution.bound * (1 + 1e-6) + grain


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_first_order_solver_of_large_batches(monkeypatch: pytest.MonkeyPatch, objective: Objective) -> None:
    """PDLP leaves small violations, which rounding must take away, and prices that are a little off, with which bounds must still hold."""
    monkeypatch.setattr("broker.planners.optimal.solver.MAX_FOR_GLOP", 0)
    solvers = set()
    for seed in range(30):
        network, calendars, requests = random_case(seed, plain=True)
        requests = [replace(request, options=replace(request.options, split=True)) for request in requests]
        solution = Optimal(objective).solve(requests, network, calendars)
        solvers.add(solution.solver)
        assert_fits(solution, requests, network, calendars)
        if objective == "congestion" and solution.bound is not None:
            assert solution.bound <= float(solution.value) * (1 + 1e-9)
            assert float(solution.value) <= solution.bound * 1.01 + 1e-4
    assert any("pdlp" in solver for solver in solvers)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_same_inputs_give_the_same_answer(objective: Objective) -> None:
    for seed in range(8):
        network, calendars, requests = random_case(seed)
        first = Optimal(objective).solve(requests, network, calendars)
        assert first == Optimal(objective).solve(requests, network, calendars)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_an_empty_batch(objective: Objective) -> None:
    solution = Optimal(objective).solve(
        [], Network([Link("L", "A", "B", 1000)]), {"L": Calendar(Link("L", "A", "B", 1000).capacity())}
    )
    assert (solution.answers, solution.value, solution.fallback, solution.solver) == ((), 0, None, "")


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("limit", [0.0, 1e-9])
def test_a_time_limit_of_nothing_falls_back_to_lists_and_says_so(objective: Objective, limit: float) -> None:
    network, calendars, requests = random_case(11)
    solution = Optimal(objective, time_limit_s=limit).solve(requests, network, calendars)
    assert_fits(solution, requests, network, calendars)
    yardstick = Yardstick(objective, requests, network, calendars)
    assert yardstick.score(solution.answers) <= yardstick.score(_in_file_order("vbls", requests, network, calendars))
    if limit == 0.0 and objective in {"congestion", "completion"}:
        assert solution.fallback is not None
        assert "time limit" in solution.fallback


def _out_of(patience: int, asked: Iterator[int]) -> bool:
    return next(asked) >= patience


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_cancelled_at_any_question_still_answers_whole(objective: Objective) -> None:
    network, calendars, requests = random_case(11)
    for patience in (0, 1, 2, 5, 20):
        asked = iter(range(10**6))
        solution = Optimal(objective, cancelled=partial(_out_of, patience, asked)).solve(requests, network, calendars)
        assert_fits(solution, requests, network, calendars)
        assert solution.cancelled or patience > 0


def test_progress_is_told_from_begin_to_end() -> None:
    network, calendars, requests = random_case(11)
    told: list[float] = []
    Optimal("volume", progress=lambda part, text: told.append(part)).solve(requests, network, calendars)
    assert told
    assert all(0 <= part <= 1 for part in told)
    assert told[-1] == 1


@pytest.mark.parametrize("broken", ["import", "crash"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_without_a_working_solver_the_lists_answer(monkeypatch: pytest.MonkeyPatch, objective: Objective, broken: str) -> None:
    def call(*_: object) -> None:
        raise ImportError("no ortools here") if broken == "import" else RuntimeError("crashed")

    monkeypatch.setattr("broker.planners.optimal.solver._call", call)
    network, calendars, requests = random_case(0)
    solution = Optimal(objective).solve(requests, network, calendars)
    assert_fits(solution, requests, network, calendars)
    assert any(isinstance(answer, Plan) for answer in solution.answers)
    assert solution.fallback is None or "failed" in solution.fallback


def test_a_batch_that_does_not_fit_serves_the_most_and_says_whom_not() -> None:
    network = Network([Link("L", "A", "B", 8_000_000)])
    small = [Request(f"small{i}", "A", "B", 400, 0, deadline_us=1000) for i in range(2)]
    large = Request("large", "A", "B", 900, 0, deadline_us=1000)
    for objective in OBJECTIVES[:2]:
        solution = Optimal(objective).solve([large, *small], network, empty(network))
        refusal = solution.answers[0]
        assert isinstance(refusal, Refusal)
        assert (refusal.code, refusal.field) == ("infeasible", "deadline")
        assert "900 bytes" in refusal.detail
        assert "link L binds" in refusal.detail
        assert all(isinstance(answer, Plan) for answer in solution.answers[1:])
    # 800 bytes in two are less than 900 in one.
    volume = Optimal("volume").solve([large, *small], network, empty(network))
    assert volume.value == 900
    assert isinstance(volume.answers[0], Plan)


def test_no_path_no_capacity_and_a_window_that_is_shut() -> None:
    network = Network(
        [
            Link("L", "A", "B", 8_000_000, available=((0, 0), (_HOUR, 8_000_000))),
            Link("M", "C", "D", 8_000_000),
        ]
    )
    requests = [
        Request("shut", "A", "B", 100, 0, deadline_us=1000),
        Request("cut", "A", "D", 100, 0, deadline_us=1000),
        Request("nowhere", "A", "X", 100, 0, deadline_us=1000),
        Request("good", "C", "D", 100, 0, deadline_us=1000),
    ]
    for objective in OBJECTIVES:
        answers = Optimal(objective).solve(requests, network, empty(network)).answers
        assert [answer.code if isinstance(answer, Refusal) else "planned" for answer in answers] == [
            "infeasible", "no_path", "no_path", "planned",
        ]  # fmt: skip


def test_two_paths_at_once_halve_the_congestion_and_one_at_a_time_does_not() -> None:
    links = [Link(f"{a}{b}", a, b, 8_000_000) for a, b in ("AB", "BD", "AC", "CD")]
    network = Network(links)
    one = Request("r", "A", "D", 800, 0, deadline_us=1000)
    both = replace(one, options=Options(split=True))
    assert Optimal().solve([both], network, empty(network)).value == Fraction(2, 5)
    whole = Optimal().solve([one], network, empty(network))
    assert whole.value == Fraction(4, 5)
    assert whole.bound == pytest.approx(0.8, rel=1e-4)


def test_what_others_have_booked_counts_where_the_batch_books() -> None:
    network = Network([Link("L", "A", "B", 8_000_000), Link("M", "C", "D", 8_000_000)])
    calendars = empty(network)
    calendars["M"].book(0, 1000, 8_000_000)  # full, and no business of the batch
    calendars["L"].book(0, 500, 4_000_000)
    solution = Optimal().solve([Request("r", "A", "B", 400, 0, deadline_us=1000)], network, calendars)
    # 400 bytes in the empty half alone would fill it to 4/5; below 0.65 on both halves they fit: (0.65 - 0.5) + 0.65 = 0.8.
    assert float(solution.value) == pytest.approx(0.65, abs=1e-3)
    assert solution.bound == pytest.approx(0.65)


def test_it_is_better_to_leave_a_busy_link_alone() -> None:
    network = Network([Link("L", "A", "B", 8_000_000)])
    calendars = empty(network)
    calendars["L"].book(0, 500, 7_000_000)
    solution = Optimal().solve([Request("r", "A", "B", 100, 0, deadline_us=1000)], network, calendars)
    assert solution.value == Fraction(1, 5)
    assert solution.bound == pytest.approx(0.2)


def test_schedules_and_single_requests_go_through_the_one_signature() -> None:
    network, _, requests = random_case(3)
    schedule = plan_all(Optimal(), requests, network)
    assert schedule.congestion_factor == congestion_factor(schedule.plans, network)
    request = Request("r", "A", "B", 500, 0, deadline_us=1000)
    line = Network([Link("L", "A", "B", 8_000_000)])
    assert isinstance(Optimal().plan(request, line, empty(line)), Plan)
    assert Optimal().largest_volume(replace(request, volume_bytes=5000), line, empty(line)) == 1000


def test_a_holding_time_is_planned_before_the_volumes() -> None:
    line = Network([Link("L", "A", "B", 8_000_000)])
    hold = Request("hold", "A", "B", None, 0, 4_000_000, 4_000_000, None, 1000)
    move = Request("move", "A", "B", 500, 0, deadline_us=1000)
    for objective in OBJECTIVES:
        solution = Optimal(objective).solve([move, hold], line, empty(line))
        assert_fits(solution, [move, hold], line, empty(line))
        assert all(isinstance(answer, Plan) for answer in solution.answers)
        assert solution.bound is None or objective in {"admitted", "volume"}


@given(seed=seeds)
@example(seed=0)
@cases(40)
def test_on_one_link_with_one_window_spaghetti_is_optimal(seed: int) -> None:
    """RR-6205, section 1. With the same plans, even: nothing is gained by moving them about."""
    from tests.planners.optimal_cases import one_link_case

    calendar, requests = one_link_case(seed)
    network = one_link_network(calendar)
    requests = [replace(request, not_before_us=0, deadline_us=200) for request in requests]
    optimal, spaghetti = plan_all(Optimal(), requests, network), plan_all(PLANNERS["spaghetti"], requests, network)
    if all(isinstance(decision.answer, Plan) for decision in spaghetti.decisions):
        assert optimal.congestion_factor == spaghetti.congestion_factor


def test_an_unknown_objective_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'speed' is not one of congestion, admitted, volume, completion"):
        Optimal("speed")  # type: ignore[arg-type]


def test_other_planners_do_not_load_the_solver() -> None:
    """78 MB and a quarter of a second, for those who ask for it."""
    code = "import sys, broker.planners as p; p.warm_up(); print('ortools' in sys.modules, 'optimal' in p.PLANNERS)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["False", "True"]
