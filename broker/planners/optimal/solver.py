# SPDX-License-Identifier: Apache-2.0
"""The only access to OR-Tools: takes a program as flat arrays, returns numbers, and keeps the time limit over several calls.

MathOpt takes its models as protocol buffers of flat arrays, which numpy fills in milliseconds, while one object per variable takes
seconds. With one thread and fixed seeds the same program gets the same answer unless a limit is reached. The time spent comes from
the solvers' own reports, so no function here reads a clock.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ortools.math_opt import model_pb2, parameters_pb2, result_pb2

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

# GLOP is exact and takes about a second for 1e5 variables of these programs; from here on PDLP's 1e-4 comes sooner.
MAX_FOR_GLOP = 250_000
_PDLP_ACCURACY = 1e-4
_MIN_S = 1e-3  # some solvers read a limit of 0 as "no limit"
_GLANCE_S = 0.1  # how often a running solver checks for cancellation


class Program(NamedTuple):
    """Minimise cost * x, subject to lower <= x <= upper and row_lower <= A x <= row_upper; A as triples (row, column, value), each pair once."""

    cost: Floats
    lower: Floats
    upper: Floats
    rows: Ints
    columns: Ints
    values: Floats
    row_lower: Floats
    row_upper: Floats
    whole: Flags | None = None  # variables that must be integer

    @property
    def variables(self) -> int:
        """The number of variables."""
        return len(self.cost)


class Answer(NamedTuple):
    """`values` is None if no point was found; `prices` (of the rows) is None for integer programs and if the solver gave none.

    `settled`: the solver finished, so the answer is optimal, or the program is infeasible if there are no values.
    """

    values: Floats | None
    prices: Floats | None
    bound: float | None
    settled: bool


NOTHING = Answer(None, None, None, settled=False)


@dataclass
class Solver:
    """Solves programs one after the other within `time_limit_s` in total."""

    time_limit_s: float
    cancelled: Callable[[], bool] | None = None
    spent_s: float = 0.0
    variables: int = 0  # of the largest program so far
    used: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)

    @property
    def stopped(self) -> bool:
        """True if the solver was cancelled."""
        return self.cancelled is not None and self.cancelled()

    @property
    def exhausted(self) -> bool:
        """True if the time limit is used up, or the solver was cancelled."""
        return self.spent_s >= self.time_limit_s or self.stopped

    def solve(self, program: Program, share: float = 1.0) -> Answer:
        """Choose by size: GSCIP for integers, GLOP for programs that it solves quickly, PDLP for larger ones and after half of the time.

        `share` is the part of the remaining time that this program may take.
        """
        limit = (self.time_limit_s - self.spent_s) * share
        self.variables = max(self.variables, program.variables)
        if program.whole is not None:
            return self._once("gscip", program, limit)
        if program.variables <= MAX_FOR_GLOP:
            answer = self._once("glop", program, limit / 2)
            if answer.settled or self.exhausted:
                return answer
            limit = min(limit, self.time_limit_s - self.spent_s)
        return self._once("pdlp", program, limit)

    def _once(self, name: str, program: Program, limit_s: float) -> Answer:
        if self.exhausted:
            self._trouble("cancelled" if self.stopped else "the time limit struck")
            return NOTHING
        try:
            result = _call(name, program, max(limit_s, _MIN_S), self.cancelled)
        except Exception as error:  # on any error the list planners' answer stands; MathOpt's own class has no public name
            self._trouble(f"{name} failed: {error}")
            return NOTHING
        self.spent_s += result.solve_stats.solve_time.ToTimedelta().total_seconds()
        if name not in self.used:
            self.used.append(name)
        answer = _read(program, result)
        if not answer.settled:
            self._trouble("cancelled" if self.stopped else f"{name} stopped: {_reason(result)}")
        return answer

    def _trouble(self, text: str) -> None:
        if text not in self.troubles:
            self.troubles.append(text)


def _call(name: str, program: Program, limit_s: float, cancelled: Callable[[], bool] | None) -> "result_pb2.SolveResultProto":
    from ortools.math_opt import callback_pb2, model_parameters_pb2, parameters_pb2
    from ortools.math_opt.core.python import solver

    # GSCIP with an interrupter complains on standard error: it runs to its limit, or is killed with its process.
    with _watched(None if name == "gscip" else cancelled) as interrupter:
        result: result_pb2.SolveResultProto = solver.solve(
            _model(program),
            parameters_pb2.SolverTypeProto.Value(f"SOLVER_TYPE_{name.upper()}"),
            parameters_pb2.SolverInitializerProto(),
            _parameters(name, limit_s),
            model_parameters_pb2.ModelSolveParametersProto(),
            None,
            callback_pb2.CallbackRegistrationProto(),
            None,
            interrupter,
        )
    return result


def _parameters(name: str, limit_s: float) -> "parameters_pb2.SolveParametersProto":
    from ortools.math_opt import parameters_pb2

    parameters = parameters_pb2.SolveParametersProto(threads=1)
    parameters.time_limit.FromNanoseconds(int(limit_s * 1e9))
    if name == "pdlp":
        criteria = parameters.pdlp.termination_criteria.simple_optimality_criteria
        criteria.eps_optimal_relative = criteria.eps_optimal_absolute = _PDLP_ACCURACY
    else:
        parameters.random_seed = 1  # PDLP does not use a seed and complains about one
    if name == "gscip":
        parameters.relative_gap_tolerance = 0.0
        parameters.absolute_gap_tolerance = 0.0
    return parameters


def _model(program: Program) -> "model_pb2.ModelProto":
    from ortools.math_opt import model_pb2

    model = model_pb2.ModelProto()
    n, m = program.variables, len(program.row_lower)
    model.variables.ids.extend(range(n))
    model.variables.lower_bounds.extend(program.lower.tolist())
    model.variables.upper_bounds.extend(program.upper.tolist())
    model.variables.integers.extend([False] * n if program.whole is None else program.whole.tolist())
    model.linear_constraints.ids.extend(range(m))
    model.linear_constraints.lower_bounds.extend(program.row_lower.tolist())
    model.linear_constraints.upper_bounds.extend(program.row_upper.tolist())
    order = np.lexsort((program.columns, program.rows))
    model.linear_constraint_matrix.row_ids.extend(program.rows[order].tolist())
    model.linear_constraint_matrix.column_ids.extend(program.columns[order].tolist())
    model.linear_constraint_matrix.coefficients.extend(program.values[order].tolist())
    priced = np.flatnonzero(program.cost)
    model.objective.linear_coefficients.ids.extend(priced.tolist())
    model.objective.linear_coefficients.values.extend(program.cost[priced].tolist())
    return model


def _read(program: Program, result: "result_pb2.SolveResultProto") -> Answer:
    from ortools.math_opt import result_pb2

    reason = result.termination.reason
    if reason == result_pb2.TERMINATION_REASON_INFEASIBLE:
        return NOTHING._replace(settled=True)
    optimal = reason == result_pb2.TERMINATION_REASON_OPTIMAL
    # A simplex method stopped half-way has a basis that carries nothing yet.
    if not result.solutions or not result.solutions[0].HasField("primal_solution") or not (optimal or program.whole is not None):
        return NOTHING
    first = result.solutions[0]
    values = _dense(first.primal_solution.variable_values, program.variables)
    prices = None
    if first.HasField("dual_solution"):
        prices = _dense(first.dual_solution.dual_values, len(program.row_lower))
    bound = result.termination.objective_bounds.dual_bound
    return Answer(values, prices, bound if np.isfinite(bound) else None, optimal)


def _reason(result: "result_pb2.SolveResultProto") -> str:
    from ortools.math_opt import result_pb2

    reason: str = result_pb2.TerminationReasonProto.Name(result.termination.reason)
    return reason.removeprefix("TERMINATION_REASON_").lower().replace("_", " ")


def _dense(vector: Any, size: int) -> Floats:
    out = np.zeros(size)
    out[np.array(vector.ids, np.int64)] = np.array(vector.values, np.float64)
    return out


@contextmanager
def _watched(cancelled: Callable[[], bool] | None) -> Iterator[Any]:
    """An interrupter that is triggered when `cancelled` returns True, or None if cancelling is not possible."""
    if cancelled is None:
        yield None
        return
    from ortools.util.python.pybind_solve_interrupter import PySolveInterrupter

    interrupter, done = PySolveInterrupter(), threading.Event()

    def watch() -> None:
        while not done.wait(_GLANCE_S):
            if cancelled():
                interrupter.interrupt()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield interrupter
    finally:
        done.set()
        watcher.join()
