# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of the endhost experiment: what is made of the runs, without a laboratory."""

import csv
import random
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.endhost import setting
from tests.experiments.endhost.analysis import Count, change_us, deficiency, mean_rate, percentile, summarise
from tests.experiments.endhost.figures import draw
from tests.experiments.endhost.report import between, sheet, write
from tests.experiments.endhost.required import Verdict, verdicts
from tests.experiments.endhost.run import Control, Echo, Mismatch, Notebook, Part, Run, Segment, Signalling, Steps
from tests.experiments.endhost.tables import PAPER_MEAN, PAPER_P99, report
from tests.experiments.endhost.watch import Connection, Sample, Watch, read


def a_run(strategy: str = "spaghetti-pacing", rtt_us: int = 10_000, share: float = 0.01, repetition: int = 1, **more: Any) -> Run:
    ideal = setting.ideal_us(rtt_us)
    completion = round(ideal * (1 + share))
    fields: dict[str, Any] = {"retransmitted_bytes": 0, "dropped_packets": 0, "lateness_us": 7.0} | more
    return Run(strategy, rtt_us, repetition, completion, ideal, [Part(1, 0, completion)], **fields)


def everything(share: float = 0.01) -> list[Any]:
    """A complete, flawless experiment."""
    records: list[Any] = []
    for rtt in setting.RTTS_US:
        for name, strategy in setting.STRATEGIES.items():
            more: dict[str, object] = {"gap_us": 1.5 * rtt + 2_000} if strategy.signal else {}
            if strategy.mechanism:
                more["segments"] = [Segment(3.0, 100_000_000, 99_500_000.0)]
            mine = 0.05 if name == "ifs" else share
            records += [a_run(name, rtt, mine, n, **more) for n in range(1, 21)]
        records.append(Signalling(rtt, [1.5 * rtt + 400.0] * 5))
        records.append(Echo(rtt, rtt + 50.0))
    records.append(Steps("pacing", 10_000, 1, [-8_000.0, 12_000.0], [Segment(2.2, 300_000_000, 299_000_000.0)]))
    records.append(Control("pacing", 0.99e9, 1.2, 8.0))
    return records


# -- the ideal --------------------------------------------------------------------------------------------------------------------------


def test_the_ideal_is_that_of_the_paper_but_for_the_time_stamps() -> None:
    """RR-6205, section 3.3: 949.29 Mb/s of a gigabit without time stamps; 12 bytes of 1460 go to them."""
    assert setting.payload_bps(10**9) * 1460 / 1448 == pytest.approx(949.28e6, rel=1e-5)
    assert setting.ideal_us(10_000) == pytest.approx(180_000_000 * 8e6 / (500e6 * 1448 / 1538), rel=1e-6)


def test_the_shares_fit_on_the_link_and_leave_nothing() -> None:
    third, two_thirds = setting.shares_bps()
    assert setting.payload_bps() - 3 <= third + two_thirds <= setting.payload_bps()
    assert two_thirds == pytest.approx(2 * third, abs=2)


# -- statistics -------------------------------------------------------------------------------------------------------------------------


def test_percentiles_are_nearest_ranks() -> None:
    samples = list(range(1, 21))
    random.Random(7).shuffle(samples)
    assert [percentile(samples, p) for p in (5, 50, 75, 95, 96, 99, 100)] == [1, 10, 15, 19, 20, 20, 20]
    assert percentile(range(1, 101), 99) == 99
    assert percentile([3.0], 99) == 3.0


def test_a_summary() -> None:
    made = summarise([a_run(share=share) for share in (0.01, 0.02, 0.03)])
    assert made.mean == pytest.approx(0.02, abs=1e-6)
    assert made.p99 == pytest.approx(0.03, abs=1e-6)
    assert made.deviation_s == pytest.approx(0.01 * setting.ideal_us(10_000) / 1e6, rel=1e-3)
    # Student's t for two degrees of freedom at 99 %: 9.925.
    assert made.half_interval == pytest.approx(9.925 * 0.01 / 3**0.5, rel=1e-3)
    assert deficiency(a_run(share=0.25)) == pytest.approx(0.25, abs=1e-6)


def test_one_run_has_no_interval() -> None:
    assert summarise([a_run()]).half_interval is None


# -- rates ------------------------------------------------------------------------------------------------------------------------------


def stepped(change_at_us: float, before: float, after: float, tick_us: int = 10_000) -> list[Count]:
    """Cumulative bytes of two rates (bytes per us), counted per tick."""
    counts = []
    for at in range(0, 4_000_000 + tick_us, tick_us):
        counts.append(Count(at, before * min(at, change_at_us) + after * max(at - change_at_us, 0)))
    return counts


def test_the_mean_rate_between_two_ticks() -> None:
    counts = stepped(2_000_000, 30.0, 15.0)
    assert mean_rate(counts, 0, 2_000_000) == pytest.approx(240e6)
    assert mean_rate(counts, 1_995_000, 2_005_000) == pytest.approx(180e6)
    with pytest.raises(ValueError, match="nothing was counted"):
        mean_rate(counts, -1, 1_000_000)


@pytest.mark.parametrize("late_us", [-9_300, 0, 4_321, 18_000])
@pytest.mark.parametrize(("before", "after"), [(37.5, 18.75), (18.75, 37.5), (40.0, 0.0)])
def test_a_change_of_rate_is_found_between_two_ticks(late_us: int, before: float, after: float) -> None:
    boundary = 2_000_000
    assert change_us(stepped(boundary + late_us, before, after), boundary) - boundary == pytest.approx(late_us, abs=1)


def test_packets_more_or_less_in_a_tick_move_a_change_little() -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    jitter = random.Random(seed)
    counts = [Count(c.at_us, c.payload_bytes + jitter.randint(-3, 3) * 1448) for c in stepped(2_005_000, 37.5, 18.75)]
    assert change_us(counts, 2_000_000) - 2_000_000 == pytest.approx(5_000, abs=500)


def test_no_change_is_said() -> None:
    with pytest.raises(ValueError, match="did not change"):
        change_us(stepped(2_000_000, 30.0, 30.0), 2_000_000)
    with pytest.raises(ValueError, match="too few"):
        change_us([], 2_000_000)


# -- required figures -------------------------------------------------------------------------------------------------------------------


def missed(records: list[Any], repetitions: int = 20) -> list[Verdict]:
    return [verdict for verdict in verdicts(records, repetitions) if not verdict.reached]


def test_a_flawless_experiment_reaches_every_figure() -> None:
    assert missed(everything()) == []


def test_nothing_measured_reaches_nothing() -> None:
    assert not any(verdict.reached for verdict in verdicts([], 20))


@pytest.mark.parametrize(
    ("flaw", "where"),
    [
        (a_run(share=0.05), "99th percentile"),
        (a_run("vifi-direct", 100_000, gap_us=154_000.0), "longest gap"),
        (a_run("spaghetti-htb", segments=[Segment(2.0, 100_000_000, 98_900_000.0)]), "htb: mean rate"),
        (a_run("spaghetti-htb", segments=[Segment(2.0, 100_000_000, 101_100_000.0)]), "htb: mean rate"),
        (Steps("window", 100, 1, [20_500.0], []), "window: re-pacing"),
        (Control("htb", 0.99e9, 3.2, 8.0), "CPU"),
    ],
)
def test_each_flaw_is_found(flaw: object, where: str) -> None:
    found = missed([*everything(), flaw])
    assert [where in verdict.what for verdict in found] == [True], found


def test_a_mean_that_is_too_high_is_found_even_where_each_run_is_bearable() -> None:
    found = missed(everything(share=0.018))
    assert len(found) == 3
    assert all("pacing" in verdict.what and "mean" in verdict.what for verdict in found)


def test_pacing_must_be_below_ifs() -> None:
    records = [r for r in everything() if not (isinstance(r, Run) and (r.strategy, r.rtt_us) == ("ifs", 10_000))]
    records += [a_run("ifs", share=0.009, repetition=n) for n in range(1, 21)]
    assert ["below IFS" in verdict.what for verdict in missed(records)] == [True]


def test_what_is_short_or_userland_or_discarded_does_not_count() -> None:
    off = Segment(1.9, 100_000_000, 50_000_000.0)
    records = [*everything(), a_run("spaghetti-htb", segments=[off]), a_run(share=0.5, discarded="the emulator was late")]
    records.append(a_run("spaghetti-userland", segments=[Segment(3.0, 100_000_000, 90_000_000.0)]))
    assert missed(records) == []


# -- the file ---------------------------------------------------------------------------------------------------------------------------


def test_a_notebook_goes_on(tmp_path: Path) -> None:
    path, records = tmp_path / "notes" / "runs.jsonl", everything()
    notes = Notebook(path, {"capacity_bps": 1})
    for record in records:
        notes.add(record)
    again = Notebook(path, {"capacity_bps": 1})
    assert again.records == records
    assert again.done()["ifs", 100] == 20
    again.add(a_run("ifs", 100, discarded="why"))
    assert Notebook(path, {"capacity_bps": 1}).done()["ifs", 100] == 20


def test_a_line_that_a_crash_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    notes = Notebook(path, {})
    notes.add(a_run())
    with path.open("a") as file:
        file.write('{"kind": "run", "strat')
    again = Notebook(path, {})
    assert again.records == [a_run()]
    again.add(a_run(repetition=2))
    assert Notebook(path, {}).records == [a_run(), a_run(repetition=2)]


def test_records_of_another_setting_are_not_mixed(tmp_path: Path) -> None:
    Notebook(tmp_path / "runs.jsonl", {"capacity_bps": 1, "machine": "x"})
    with pytest.raises(Mismatch, match="another capacity_bps; --fresh"):
        Notebook(tmp_path / "runs.jsonl", {"capacity_bps": 2, "machine": "x"})


# -- what is shown ----------------------------------------------------------------------------------------------------------------------


def test_the_tables_stand_beside_those_of_the_paper() -> None:
    text = report(everything(), verdicts(everything(), 20))
    assert "| spaghetti, pacing | 1.00% | 1.00% | 1.00% | 4.0% | 4.0% | 4.7% |" in text
    assert "| IFS (no booking) | 5.00% | 5.00% | 5.00% | 3.4% | 16.4% | 64.3% |" in text
    assert "**no**" not in text and "not measured" not in text
    assert PAPER_MEAN.keys() == PAPER_P99.keys()


def test_an_empty_report_is_one() -> None:
    assert "not measured" in report([], verdicts([], 20))


def test_the_figures_are_the_same_for_the_same_runs() -> None:
    pictures = draw(everything())
    assert set(pictures) == {"endhost-completion.svg", "endhost-summary.svg", "endhost-signalling.svg"}
    assert all(b"<svg" in picture and len(picture) < 400_000 for picture in pictures.values())
    some = [record for record in everything() if isinstance(record, Signalling)]
    assert draw(some) == {"endhost-signalling.svg": pictures["endhost-signalling.svg"]}


def test_figures_of_half_an_experiment() -> None:
    assert set(draw([a_run(), a_run("ifs", 100)])) == {"endhost-completion.svg", "endhost-summary.svg"}
    assert draw([]) == {}


def test_the_runs_are_kept_as_a_sheet(tmp_path: Path) -> None:
    (tmp_path / "endhost.md").write_text("<!-- measured: begin --><!-- measured: end -->")
    records = [a_run("vifi-direct", gap_us=1234.0), a_run(share=0.5, discarded="the emulator, it was late")]
    write(records, [], tmp_path)
    first, second = csv.DictReader((tmp_path / "endhost.csv").open())
    assert (first["strategy"], first["rtt_ms"], first["above_ideal"], first["gap_ms"]) == ("vifi-direct", "10", "0.01000", "1.234")
    assert (second["above_ideal"], second["discarded"]) == ("0.50000", "the emulator, it was late")
    assert len(sheet(records)) < 130 * 3


def test_only_what_is_between_the_marks_is_replaced() -> None:
    page = "before\n<!-- measured: begin -->\nold\n<!-- measured: end -->\nafter\n"
    once = between(page, "new")
    assert once == "before\n<!-- measured: begin -->\n\nnew\n\n<!-- measured: end -->\nafter\n"
    assert between(once, "new") == once
    with pytest.raises(ValueError, match="no <!-- measured: begin"):
        between("nothing", "new")


# -- looking ----------------------------------------------------------------------------------------------------------------------------


def a_watch(samples: dict[Connection, list[Sample]], closed: dict[Connection, int]) -> Watch:
    watch = Watch.__new__(Watch)
    watch.samples, watch._closed, watch._trailer = samples, closed, 0
    return watch


def test_the_last_byte_of_a_connection_that_is_closed_between_two_looks() -> None:
    one = b"identity"
    samples = [Sample(90, 100, 500), Sample(1090, 1100, 900)]
    assert a_watch({one: samples}, {}).last_us(900) == 1100
    assert a_watch({one: samples}, {one: 2100}).last_us(900) == 1100
    assert a_watch({one: samples}, {one: 2100}).last_us(1000) == 2100
    assert a_watch({one: samples}, {}).first_us(500) == 1100
    assert a_watch({one: samples}, {}).first_us(900) is None


def test_what_follows_the_payload_does_not_count() -> None:
    """An END frame that waits for its digest came 0.4 s after the last byte once: the link stood idle for -0.4 s."""
    samples = [Sample(90, 100, 923), Sample(1090, 1100, 1000)]
    watch = a_watch({b"identity": samples}, {})
    watch._trailer = 77
    assert watch.last_us(1000) == 100


def test_any_bytes_from_the_kernel_are_read_to_an_end() -> None:
    """Property: no dump, however cut, hangs the reader or makes it fail with something else than a struct error."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    draws = random.Random(seed)
    for _ in range(300):
        data = draws.randbytes(draws.randrange(200))
        try:
            read(data, 7411, {})
        except Exception as error:
            assert type(error).__name__ == "error", error
