# SPDX-License-Identifier: BSD-3-Clause
"""The regression guard: instructions per packet of the packet path, counted by callgrind, against the accepted ones in
test/bench/instructions.json. Counts repeat to a thousandth of a percent on a machine however busy; they are no times."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from . import report

ACCEPTED = pathlib.Path(__file__).resolve().parents[1] / "instructions.json"
TOLERANCE = 0.02
SKIPPED = 77  # for meson: neither passed nor failed
BURST = re.compile(r"sluice::pipeline::(process_burst\(|\(anonymous namespace\)::process<)")


def short_name(function: str) -> str:
    """`sluice::pipeline::Transmitter::flush_port(unsigned short)` -> `flush_port`."""
    while (bare := re.sub(r"<[^<>]*>", "", function)) != function:
        function = bare
    return function.replace("(anonymous namespace)::", "").split("(", 1)[0].rsplit("::", 1)[-1].strip()


def parse(text: str) -> tuple:
    """Of one dump: its row's name, all instructions, and those of each stage: what process_burst() calls, with what that
    calls; `burst` is its own."""
    name, total, stages = "", 0, {}
    names, caller, callee, own = {}, "", "", True

    def named(word: str) -> str:
        number, _, function = word.partition(" ")
        return names.setdefault(number, function)

    for line in text.splitlines():
        if line.startswith("desc: Trigger: Client Request: "):
            name = line.rsplit(": ", 1)[1]
        elif line.startswith("totals: "):
            total = int(line.split()[1])
        elif line.startswith("fn="):
            caller = named(line[3:])
        elif line.startswith("cfn="):
            callee = named(line[4:])
        elif line.startswith("calls="):
            own = False
        elif line.startswith((*"0123456789+-*",)):
            cost = int((line.split() + ["0"])[1])  # left out where it is none
            if BURST.search(caller):
                stage = "burst" if own else short_name(callee)
                if own or not BURST.search(callee):
                    stages[stage] = stages.get(stage, 0) + cost
            own = True
    return name, total, stages


def count(build: str) -> tuple:
    """Conditions, and row -> {"total", "stages"} in instructions per packet."""
    program = pathlib.Path(build) / "test" / "bench" / "count_bench"
    if shutil.which("valgrind") is None or not program.exists():
        print(f"skipped: needs valgrind, installed before {build} was set up and built")
        sys.exit(SKIPPED)
    rows = {}
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--collect-atstart=no",
             f"--callgrind-out-file={directory}/out", program], capture_output=True, text=True, check=False, timeout=240)
        if done.returncode != 0:
            raise RuntimeError(f"count_bench under valgrind: status {done.returncode}\n{done.stdout}{done.stderr}")
        conditions = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
        packets = conditions.pop("packets")
        conditions["valgrind"] = subprocess.run(["valgrind", "--version"], capture_output=True, text=True,
                                                check=True).stdout.strip()
        dumps = sorted(pathlib.Path(directory).glob("out.*"), key=lambda path: int(path.suffix[1:]))
        for path in dumps:
            name, total, stages = parse(path.read_text(encoding="utf-8"))
            if name:
                rows[name] = {"total": round(total / packets, 1),
                              "stages": {stage: round(cost / packets, 1) for stage, cost in stages.items()}}
    return conditions, rows


def differences(conditions: dict, accepted: dict) -> list:
    """Why the counts say nothing about each other; none: they are comparable."""
    return [f"{key}: {accepted.get(key)} then, {conditions.get(key)} now" for key in conditions | accepted
            if conditions.get(key) != accepted.get(key)]


def changes(rows: dict, accepted: dict) -> list:
    """What to say about each row that is not as accepted, stages that moved included."""
    said = []
    for name in rows | accepted:
        if name not in accepted or name not in rows:
            said.append(f"{name}: {'new' if name in rows else 'not counted any more'}")
            continue
        now, then = rows[name], accepted[name]
        if abs(now["total"] / then["total"] - 1) <= TOLERANCE:
            continue
        moved = [f"{stage} {then['stages'].get(stage, 0):.1f} -> {now['stages'].get(stage, 0):.1f}"
                 for stage in now["stages"] | then["stages"]
                 if abs(now["stages"].get(stage, 0) - then["stages"].get(stage, 0)) > TOLERANCE / 2 * then["total"]]
        said.append(f"{name}: {then['total']:.1f} -> {now['total']:.1f} instructions/packet, "
                    f"{(now['total'] / then['total'] - 1) * 100:+.1f} % ({', '.join(moved) or 'a little everywhere'})")
    return said


def write_accepted(path: pathlib.Path, conditions: dict, rows: dict) -> None:
    """A line a row, for diffs that can be read."""
    body = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    path.write_text(f'{{"conditions": {json.dumps(conditions)},\n "rows": {{\n{body}}}}}\n', encoding="utf-8")


def show(rows: dict, accepted: dict) -> None:
    print(f"{'instructions/packet':26}{'now':>9}{'accepted':>10}   stages, with what they call")
    for name, row in rows.items():
        then = accepted.get(name, {}).get("total")
        stages = ", ".join(f"{stage} {cost:.0f}" for stage, cost in row["stages"].items())
        print(f"{name:26}{row['total']:9.1f}{'-' if then is None else f'{then:.1f}':>10}   {stages}")


def report_rows(rows: dict, accepted: dict) -> list:
    found = []
    for name, row in rows.items():
        then = [accepted[name]["total"]] if name in accepted else []
        found.append(report.Row(f"instructions/{name}", "instructions/packet", values=[row["total"]],
                                against="accepted" if then else "", others=then, extra={"stages": row["stages"]}))
    return found


def run(options):
    conditions, rows = count(options.build)
    known = json.loads(ACCEPTED.read_text(encoding="utf-8")) if ACCEPTED.exists() else {"conditions": {}, "rows": {}}
    show(rows, known["rows"])
    if options.accept:
        write_accepted(ACCEPTED, conditions, rows)
        print(f"\naccepted: {ACCEPTED.relative_to(report.ROOT)} is these counts now, to be committed")
        status = 0
    elif reasons := differences(conditions, known["conditions"]):
        print("\nskipped, not comparable with the accepted counts:\n  " + "\n  ".join(reasons))
        status = SKIPPED
    elif said := changes(rows, known["rows"]):
        print(f"\nchanged by more than {TOLERANCE * 100:.0f} %:\n  " + "\n  ".join(said) +
              f"\nIf that is as it should be: scripts/bench instructions --accept --build {options.build}")
        status = 1
    else:
        print(f"\nall within {TOLERANCE * 100:.0f} % of the accepted counts")
        status = 0
    return True, report_rows(rows, known["rows"]), status  # a busy machine counts the same
