#!/usr/bin/env python3
"""Recomputes the figures of a run from its profile_export.jsonl and compares them with those that replayd wrote.

    recompute.py DIR [--records FILE] [--engine FILE]

DIR holds profile_export.jsonl, profile_export_aiperf.json (of which only the settings are believed) and any of the other files and
tables. Every figure in them is computed again from the requests, by this script's own reading of the definitions, and must be
the same to the last printed digit; in JSON, where nothing is rounded, to the last bit. Probabilities alone may differ by 1e-9 of their
value. --records is the run's file of records: its ledger must be that of DIR, and the figures that follow from records alone must be the
same. --engine is the log of the simulated engine: counts and tokens are computed from what it saw. Nothing but Python's standard
library is used. The exit code is 1 when anything differs or a file is missing that the
settings call for.
"""

import csv
import json
import math
import os
import re
import sys
from collections import Counter
from decimal import Decimal

faults = []
compared = 0


def check(where, got, want, loose=False):
    """Compares what a file says with what was computed."""
    global compared
    compared += 1
    if loose and isinstance(got, (int, float)) and want is not None:
        same = math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-300)
    else:
        same = got == want
    if not same:
        faults.append(f"{where}: written {got!r}, computed {want!r}")


# --- figures ---


def percentile(ordered, p):
    """Linear between the two neighboring ranks, as numpy's default."""
    rank = p / 100 * (len(ordered) - 1)
    low = int(rank)
    part = rank - low
    a, b = ordered[low], ordered[min(low + 1, len(ordered) - 1)]
    return b - (b - a) * (1 - part) if part >= 0.5 else a + (b - a) * part


def stats(values, percentiles):
    if not values:
        return None
    ordered = sorted(values)
    n = len(ordered)
    mean = math.fsum(ordered) / n
    figures = {
        "avg": mean,
        "min": ordered[0],
        "max": ordered[-1],
        "std": math.sqrt(math.fsum((v - mean) * (v - mean) for v in ordered) / n),
    }
    for p in percentiles:
        figures[percentile_name(p)] = percentile(ordered, p)
    return figures


def percentile_name(p):
    return "p%d" % p if p == int(p) else "p%s" % repr(float(p))


def value(record, metric):
    entry = (record.get("metrics") or {}).get(metric)
    return None if entry is None else entry["value"]


def start(record):
    return record["metadata"].get("request_start_ns") or 0


def end(record):
    return record["metadata"].get("request_end_ns") or 0


def outcome(record):
    if record["metadata"].get("was_cancelled"):
        return "cancelled"
    return "ok" if record.get("error") is None else "failed"


PER_REQUEST = {
    "time_to_first_token": ("Time to First Token", "ms"),
    "time_to_second_token": ("Time to Second Token", "ms"),
    "request_latency": ("Request Latency", "ms"),
    "inter_token_latency": ("Inter Token Latency", "ms"),
    "output_token_throughput_per_user": ("Output Token Throughput Per User", "tokens/sec/user"),
    "output_sequence_length": ("Output Sequence Length", "tokens"),
    "input_sequence_length": ("Input Sequence Length", "tokens"),
    "output_token_count": ("Output Token Count", "tokens"),
    "reasoning_token_count": ("Reasoning Token Count", "tokens"),
    "time_to_first_output_token": ("Time to First Output Token", "ms"),
    "time_to_first_token_from_due": ("Time to First Token From Due", "ms"),
    "request_latency_from_due": ("Request Latency From Due", "ms"),
    "lateness": ("Lateness", "ms"),
}
SINGLE = {
    "output_token_throughput": ("Output Token Throughput", "tokens/sec"),
    "output_token_throughput_per_gpu": ("Output Token Throughput Per GPU", "tokens/sec/gpu"),
    "total_token_throughput": ("Total Token Throughput", "tokens/sec"),
    "request_throughput": ("Request Throughput", "requests/sec"),
    "request_count": ("Request Count", "requests"),
    "goodput": ("Goodput", "requests/sec"),
    "good_request_count": ("Good Request Count", "requests"),
    "good_request_fraction": ("Good Request Fraction", "ratio"),
    "expected_request_count": ("Expected Request Count", "requests"),
    "dropped_request_count": ("Dropped Request Count", "requests"),
    "attainment": ("Attainment", "ratio"),
    "service_attainment": ("Service Attainment", "ratio"),
    "error_request_count": ("Error Request Count", "requests"),
    "cancelled_request_count": ("Cancelled Request Count", "requests"),
    "benchmark_duration": ("Benchmark Duration", "sec"),
    "total_isl": ("Total Input Sequence Length", "tokens"),
    "total_osl": ("Total Output Sequence Length", "tokens"),
    "total_output_tokens": ("Total Output Tokens", "tokens"),
}
LENGTHS = {
    "requested_isl": ("Requested ISL", "tokens"),
    "isl_mismatch_diff_pct": ("ISL Mismatch Diff", "%"),
    "other_isl_count": ("Prompts of Other Lengths", "requests"),
    "requested_osl": ("Requested OSL", "tokens"),
    "osl_mismatch_diff_pct": ("OSL Mismatch Diff", "%"),
    "other_osl_count": ("Answers of Other Lengths", "requests"),
}
SIDES = (("isl", "prompts", "requested_isl", "usage_prompt_tokens"), ("osl", "answers", "requested_osl", "usage_completion_tokens"))
PER_SESSION = {
    "session_makespan": ("Session Makespan", "sec"),
    "session_requests": ("Session Requests", "requests"),
    "session_cached_ratio": ("Session Cached Ratio", "ratio"),
    "session_time_tools": ("Session Time in Tools", "sec"),
    "session_time_lateness": ("Session Time Late", "sec"),
    "session_time_ttft": ("Session Time to First Tokens", "sec"),
    "session_time_decode": ("Session Time in Decode", "sec"),
}
OF_SESSIONS = {
    "session_count": ("Session Count", "sessions"),
    "ok_session_count": ("Ok Session Count", "sessions"),
    "failed_session_count": ("Failed Session Count", "sessions"),
    "cut_session_count": ("Cut Session Count", "sessions"),
    "good_session_count": ("Good Session Count", "sessions"),
    "session_attainment": ("Session Attainment", "ratio"),
}
NAMES = {tag: (f"{name} ({unit})", name, unit) for tag, (name, unit) in {**PER_REQUEST, **LENGTHS, **SINGLE, **PER_SESSION, **OF_SESSIONS}.items()}
NAMES["inter_chunk_latency"] = ("Inter Chunk Latency (ms)", "Inter Chunk Latency", "ms")


LARGER_IS_BETTER = {
    "output_token_throughput_per_user", "output_sequence_length", "input_sequence_length", "output_token_count", "reasoning_token_count",
}


def good(record, bounds):
    """Whether an ok request kept all bounds; None: it cannot be judged, and counts as neither."""
    most, sure = value(record, "inter_token_latency_most"), True
    for metric, bound in bounds.items():
        v, other = value(record, metric), None  # what it is, and what it may be instead
        if metric == "inter_token_latency":
            other = most
        elif metric == "output_token_throughput_per_user" and most:
            other = 1000 / most
        elif metric == "time_to_second_token" and v is None and (value(record, "output_sequence_length") or 0) > 1:
            other = value(record, "time_to_first_token")
        missed = [x is not None and (x < bound if metric in LARGER_IS_BETTER else x > bound) for x in (v, other)]
        if missed[0]:
            return False
        sure = sure and not missed[1]  # not defined, so kept
    return True if sure and value(record, "request_latency") is not None else None


def aggregate(records, settings):
    """Figures of records by metric: a dict of a distribution's figures, or a number."""
    ok = [r for r in records if outcome(r) == "ok"]
    failed = sum(outcome(r) == "failed" for r in records)
    figures = {}
    for metric in PER_REQUEST:
        values = [value(r, metric) for r in (records if metric == "lateness" else ok)]
        figures[metric] = stats([v for v in values if v is not None], settings["percentiles"])
    gaps = [gap for r in ok for gap in value(r, "inter_chunk_latency") or []]
    figures["inter_chunk_latency"] = stats(gaps, settings["percentiles"])
    for side, _, asked, counted in SIDES:
        pairs = [(value(r, asked), value(r, counted)) for r in ok]
        off = [100 * (c - a) / a for a, c in pairs if a and c]
        figures[f"requested_{side}"] = stats([a for a, _ in pairs if a], settings["percentiles"])
        figures[f"{side}_mismatch_diff_pct"] = stats(off, settings["percentiles"])
        figures[f"other_{side}_count"] = sum(v != 0 for v in off) if off else None

    total_in = sum(value(r, "input_sequence_length") or 0 for r in ok)
    total_out = sum(value(r, "output_sequence_length") or 0 for r in ok)
    reasoning = sum(value(r, "reasoning_token_count") or 0 for r in ok)
    span = (max(map(end, ok)) - min(map(start, ok))) / 1e9 if ok else 0.0
    figures["request_count"] = len(ok)
    figures["error_request_count"] = failed
    figures["cancelled_request_count"] = sum(outcome(r) == "cancelled" for r in records)
    figures["benchmark_duration"] = span
    figures["total_isl"], figures["total_osl"] = total_in, total_out
    figures["total_output_tokens"] = total_out - reasoning
    if span > 0:
        figures["output_token_throughput"] = total_out / span
        figures["total_token_throughput"] = (total_in + total_out) / span
        figures["request_throughput"] = len(ok) / span
        if settings["gpus"]:
            figures["output_token_throughput_per_gpu"] = total_out / span / settings["gpus"]
    if settings["goodput"]:
        count = sum(good(r, settings["goodput"]) is True for r in ok)
        figures["good_request_count"] = count
        if len(ok) + failed:
            figures["good_request_fraction"] = count / (len(ok) + failed)
        if span > 0:
            figures["goodput"] = count / span
    return {tag: f for tag, f in figures.items() if f is not None}


# --- lengths ---


def two_digits(v):
    if v == 0:
        return "0"
    places = max(0, 1 - math.floor(math.log10(abs(v)) + 1e-12))
    text = "%.*f" % (places, abs(v))
    return ("−" if v < 0 else "+") + (text.rstrip("0").rstrip(".") if "." in text else text)


def lengths(records, why):
    """Returns the member lengths of the JSON file, and the lines of the tables about it."""
    ok = [r for r in records if outcome(r) == "ok"]
    sums, said = {}, {}
    for _, name, asked, counted in SIDES:
        pairs = [(value(r, asked), value(r, counted)) for r in ok]
        both = [(a, c) for a, c in pairs if a and c]
        off = sorted(100 * (c - a) / a for a, c in both if a != c)
        s = {
            "compared": len(both), "other": len(off), "asked_tokens": sum(a for a, _ in both), "counted_tokens": sum(c for _, c in both),
            "uncounted": sum(1 for a, c in pairs if a and not c), "unasked": sum(1 for a, _ in pairs if not a),
        }
        parts, tokens = [], f"({s['asked_tokens']} tokens asked, {s['counted_tokens']} counted)"
        if off:
            s["median_off_percent"] = percentile(off, 50)
            by = two_digits(s["median_off_percent"])
            parts.append(f"{len(off)} of {len(both)} have other lengths than asked, {by} % in the median {tokens}")
        elif both:
            parts.append(f"{len(both)} of {len(both)} have the length asked {tokens}")
        if s["uncounted"]:
            parts.append(f"the server counted none of {s['uncounted']}")
        if s["unasked"]:
            parts.append(f"no length was asked for in {s['unasked']}")
        sums[name] = s
        if parts:
            said[name.capitalize()] = "; ".join(parts)
    if why and sums["answers"]["unasked"] < len(ok):
        said["Exact lengths"] = f"not asked for, because {why}"
    return sums, said


def check_lengths(where, written, records):
    """Medians are kept to a billionth of the asked length."""
    sums, said = lengths(records, written.get("not_exact"))
    for name, want in sums.items():
        got, near = dict(written[name]), want.pop("median_off_percent", None)
        median = got.pop("median_off_percent", None)
        check(f"{where}: {name}", got, want)
        check(f"{where}: {name}: median", near is not None and median is not None and abs(near - median) < 1e-6, near is not None)
    return said


# --- the ledger ---


def check_ledger(where, ledger, records, settings):
    """What became of all that was expected: it balances, and what ended is what the export has."""
    outcomes, dropped = ledger["outcomes"], ledger["dropped"]
    check(f"{where}: outcomes", {k: n for k, n in outcomes.items() if n}, dict(Counter(r["metadata"]["outcome"] for r in records)))
    check(f"{where}: expected", ledger["expected"], sum(outcomes.values()) + sum(dropped.values()) + ledger["in_flight"] + ledger["waiting"])
    kept = [good(r, settings["goodput"]) for r in records if outcome(r) == "ok"]
    unjudged = kept.count(None)
    check(f"{where}: good", ledger["good"], kept.count(True))
    check(f"{where}: not judged", ledger.get("not_judged", 0), unjudged)
    judged = sum(n for k, n in outcomes.items() if k not in ("cancelled", "aborted")) - unjudged + dropped.get("session_failed", 0)
    overload = dropped.get("overload", 0)  # eligible, unless the workload chose to shed
    check(f"{where}: eligible", ledger["eligible"] in (judged, judged + overload), True)
    figures = {"expected_request_count": ledger["expected"], "dropped_request_count": sum(dropped.values())}
    if ledger["expected"] > unjudged:
        figures["attainment"] = ledger["good"] / (ledger["expected"] - unjudged)
    if ledger["eligible"]:
        figures["service_attainment"] = ledger["good"] / ledger["eligible"]
    return figures


# --- sessions ---


def sessions(path, ledger, records, bound, percentiles):
    """Figures of sessions, from a line for each; their requests are those of the export, and the ledger adds them up."""
    if not os.path.exists(path):
        check(f"{path}: sessions of the ledger", ledger.get("sessions"), None)
        return {}
    all, parts = by_line(path), ("tools", "lateness", "ttft", "decode")
    for s in all:
        check(f"{path}: {s['session']}: parts", sum(s["time_ns"][part] for part in parts), s["makespan_ns"])
    sent = Counter(r["metadata"]["conversation_id"] for r in records if r["metadata"].get("conversation_id"))
    requests = Counter()
    for s in all:
        requests[s["session"]] += s["requests"]
    check(f"{path}: requests", {k: n for k, n in requests.items() if n}, dict(sent))
    ok = [s for s in all if s["outcome"] == "ok"]
    told = [s for s in ok if s["cached_tokens"] is not None and s["prompt_tokens"]]
    within = [s for s in ok if not bound or s["makespan_ns"] <= bound * 1e9]
    outcomes = Counter(s["outcome"] for s in all)
    summed = {
        "begun": len(all), "in_progress": 0, "outcomes": dict(outcomes), "good": len(within), "requests": sum(s["requests"] for s in ok),
        "prompt_tokens": sum(s["prompt_tokens"] for s in told), "cached_tokens": sum(s["cached_tokens"] for s in told),
        "time_ns": {part: sum(s["time_ns"][part] for s in ok) for part in parts},
    }
    check(f"{path}: ledger", ledger.get("sessions"), summed)
    figures = {
        "session_makespan": stats([s["makespan_ns"] / 1e9 for s in ok], percentiles),
        "session_requests": stats([s["requests"] for s in ok], percentiles),
        "session_cached_ratio": stats([s["cached_tokens"] / s["prompt_tokens"] for s in told], percentiles),
        **{f"session_time_{part}": stats([s["time_ns"][part] / 1e9 for s in ok], percentiles) for part in parts},
        "session_count": len(all), "good_session_count": len(within),
        **{f"{o}_session_count": outcomes[o] for o in ("ok", "failed", "cut")},
    }
    if outcomes["ok"] + outcomes["failed"]:
        figures["session_attainment"] = len(within) / (outcomes["ok"] + outcomes["failed"])
    return {tag: f for tag, f in figures.items() if f is not None}


# --- the records and the engine's log ---


def by_line(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def of_record(r):
    """A record as a line of the export, as far as it says the same."""
    ok, metrics = r["outcome"] == "ok", {}
    ttft, latency, out = r["ttft_ns"], r["e2e_ns"], r["usage_output_tokens"]
    lateness = r["lateness_ns"]
    if lateness is not None:
        metrics["lateness"] = lateness / 1e6
    if ok:
        metrics["request_latency"] = latency / 1e6
        metrics["request_latency_from_due"] = r["e2e_from_due_ns"] / 1e6
        metrics["output_sequence_length"] = out
        metrics["output_token_count"] = out - r["usage_reasoning_tokens"]
        metrics["reasoning_token_count"] = r["usage_reasoning_tokens"]
        metrics["input_sequence_length"] = r["usage_prompt_tokens"] or r["counted_input_tokens"] or r["input_tokens"]
        metrics["requested_isl"], metrics["requested_osl"] = r["input_tokens"], r["output_tokens"]
        metrics["usage_prompt_tokens"] = r["usage_prompt_tokens"]
        metrics["usage_completion_tokens"] = out if r["usage_source"] in ("usage", "chunks", "timings") else 0
    if ok and ttft is not None:
        metrics["time_to_first_token"] = ttft / 1e6
        if r["ttfat_ns"] is not None:
            metrics["time_to_first_output_token"] = r["ttfat_ns"] / 1e6
        metrics["time_to_first_token_from_due"] = r["ttft_from_due_ns"] / 1e6
        decoded = out - max(1, r.get("usage_opening_tokens", 0))
        if decoded > 0 and latency > ttft:  # all chunks of one read have one time: then there is no time between tokens
            metrics["inter_token_latency"] = (latency - ttft) / decoded / 1e6
            metrics["output_token_throughput_per_user"] = 1e3 / metrics["inter_token_latency"]
        if decoded > 0 and r["tpot_most_ns"] is not None:
            metrics["inter_token_latency_most"] = latency / decoded / 1e6
        if r["second_token_ns"] is not None:
            metrics["time_to_second_token"] = r["second_token_ns"] / 1e6
    counts = ("output_sequence_length", "output_token_count", "reasoning_token_count", "input_sequence_length", *(t for s in SIDES for t in s[2:]))
    metrics = {tag: {"value": v} for tag, v in metrics.items() if v > 0 or tag not in counts}
    md = {
        "benchmark_phase": r["phase"], "outcome": r["outcome"], "was_cancelled": r["outcome"] == "cancelled",
        "request_start_ns": r["write_ns"], "request_end_ns": r["write_ns"] + latency if ok else r["end_ns"],
    }
    return {"metadata": md, "metrics": metrics, "error": None if ok else {"code": r["status"] or None}}


ONLY_IN_THE_EXPORT = ("inter_chunk_latency",)
# The instants of records are the wall clock's, which may be slewed, those of the export lie as far apart as the time between them was.
OVER_THE_SPAN = ("benchmark_duration", "goodput", "request_throughput", "output_token_throughput", "total_token_throughput", "output_token_throughput_per_gpu")


def check_records(path, figures, ledger, settings):
    lines = by_line(path)
    records = [of_record(r) for r in lines if "ledger" not in r]
    records = [r for r in records if r["metadata"]["benchmark_phase"] != "warmup"]
    last = {}
    for line in lines:
        if "ledger" in line:
            told = line["ledger"]
            last[told["workload"], told["target"], told["shard"], told["began_ns"]] = told
    counts = ("expected", "in_flight", "waiting", "filtered", "good", "eligible", "not_judged")
    total = {key: sum(told.get(key, 0) for told in last.values()) for key in counts}
    for key in ("outcomes", "dropped"):
        total[key] = dict(sum((Counter(told[key]) for told in last.values()), Counter()))
    for key, n in total.items():
        check(f"{path}: ledger: {key}", (ledger or {}).get(key, 0), n)
    again = aggregate(records, settings) | check_ledger(f"{path}: ledger", total, records, settings)
    for tag in sorted(set(figures) | set(again)):
        got, want = figures.get(tag), again.get(tag)
        if tag in OVER_THE_SPAN and got and want and math.isclose(got, want, rel_tol=1e-5):
            want = got
        if tag not in ONLY_IN_THE_EXPORT:
            check(f"{path}: {tag}", got, want)


def check_engine(path, figures, records):
    """What the engine saw of the requests of this run: one line each, those of other runs left out."""
    seen = {}
    for entry in by_line(path):
        seen.setdefault(entry["id"], []).append(entry)
    ok, received, sent = [], 0, 0
    for r in records:
        if not start(r):
            continue
        sent += 1
        during = [e for e in seen.get(r["metadata"]["x_request_id"], []) if start(r) <= e["arrival"] <= end(r)]
        received += len(during)
        ok += [e for e in during if outcome(r) == "ok"]
    check(f"{path}: requests", sent, received)
    check(f"{path}: ok", figures["request_count"], sum(e["outcome"] == "ok" for e in ok))
    check(f"{path}: output tokens", figures["total_osl"], sum(e["output_tokens"] for e in ok))
    check(f"{path}: prompt tokens", figures["total_isl"], sum(e["prompt_tokens"] for e in ok))
    span = figures["benchmark_duration"]
    if span > 0:
        check(f"{path}: tokens per second", figures["output_token_throughput"], sum(e["output_tokens"] for e in ok) / span)
        check(f"{path}: requests per second", figures["request_throughput"], len(ok) / span)


# --- each line of the export by itself ---


def check_record(where, r):
    """Metrics of a line that follow from others of it."""
    md = r["metadata"]
    ttft, latency, itl = (value(r, m) for m in ("time_to_first_token", "request_latency", "inter_token_latency"))
    osl, user = value(r, "output_sequence_length"), value(r, "output_token_throughput_per_user")
    if outcome(r) != "ok":
        check(f"{where}: no latency", [ttft, latency, itl], [None, None, None])
        return
    check(f"{where}: request_latency", latency, (end(r) - start(r)) / 1e6)
    if ttft is not None:
        check(f"{where}: time_to_first_token", ttft, (md["first_content_ns"] - start(r)) / 1e6)
        check(f"{where}: first token from due", value(r, "time_to_first_token_from_due"), (md["first_content_ns"] - md["due_ns"]) / 1e6)
    check(f"{where}: latency from due", value(r, "request_latency_from_due"), (end(r) - md["due_ns"]) / 1e6)
    # All chunks of one read have one time. Where one read held all, there is no time between tokens.
    between = ttft is not None and (osl or 0) > 1 and latency > ttft
    check(f"{where}: inter_token_latency", itl, (latency - ttft) / (osl - 1) if between else None, loose=True)
    check(f"{where}: per user", user, 1000 / itl if itl else None)
    most = value(r, "inter_token_latency_most")
    if most is not None:
        check(f"{where}: inter_token_latency_most", most, latency / (osl - 1), loose=True)
    elif ttft is not None and (osl or 0) > 1:
        check(f"{where}: inter_token_latency is exact", between, True)
    gaps = value(r, "inter_chunk_latency")
    if gaps:
        check(f"{where}: gaps", math.fsum(gaps), latency - ttft, loose=True)
        # Gaps inside a read are left out, so that the first gap is the second token's only if that came in a read of its own.
        second = value(r, "time_to_second_token")
        if second is not None or not value(r, "merged_reads"):
            check(f"{where}: time_to_second_token", second, gaps[0])


# --- files ---


def decimals(v):
    return "%.2f" % v


def single(tag, v):
    """A share has all its decimals."""
    if NAMES[tag][2] != "ratio":
        return decimals(v)
    text = format(Decimal(repr(float(v))), "f")
    return text[:-2] if text.endswith(".0") else text


def check_csv(path, figures, settings):
    with open(path, encoding="utf-8", newline="") as f:
        rows = list(csv.reader(f))
    head = rows[0]
    want = ["Metric", "avg", "min", "max"] + [percentile_name(p) for p in settings["percentiles"]] + ["std"]
    check(f"{path}: heading", head, want)
    blank = rows.index([])
    by_name = {row[0]: row[1:] for row in rows[1:blank]}
    names = sorted(NAMES[tag][0] for tag, f in figures.items() if isinstance(f, dict))
    check(f"{path}: metrics", sorted(by_name), names)
    for tag, f in figures.items():
        if isinstance(f, dict):
            check(f"{path}: {tag}", by_name.get(NAMES[tag][0]), [decimals(f[k]) for k in head[1:]])
    check(f"{path}: second heading", rows[blank + 1], ["Metric", "Value"])
    singles = {row[0]: row[1] for row in rows[blank + 2 :]}
    want = {}
    for tag, f in figures.items():
        if not isinstance(f, dict):
            full, name, unit = NAMES[tag]
            want[name if unit == "requests" else full] = single(tag, f)
    check(f"{path}: single values", singles, want)


def check_stats(where, written, figures, settings):
    """Metrics of a JSON object."""
    for tag, f in figures.items():
        got = dict(written.get(tag) or {})
        check(f"{where}: {tag}: unit", got.pop("unit", None), NAMES[tag][2])
        check(f"{where}: {tag}", got, f if isinstance(f, dict) else {"avg": f})
    for tag in written:
        if tag in NAMES and tag not in figures:
            faults.append(f"{where}: {tag} is written and not defined")


def check_slices(path, directory, records, settings):
    length = round(settings["slice"] * 1e9)
    first = min((start(r) or end(r)) for r in records)
    slices = {}
    for r in records:
        slices.setdefault(((start(r) or end(r)) - first) // length, []).append(r)
    figures = {i: aggregate(rows, settings) for i, rows in sorted(slices.items())}
    with open(path, encoding="utf-8") as f:
        file = json.load(f)
    check(f"{path}: slices", [s["timeslice_index"] for s in file["timeslices"]], list(figures))
    for s in file["timeslices"]:
        i = s["timeslice_index"]
        check(f"{path}: slice {i}: bounds", [s["start_ns"], s["end_ns"]], [first + i * length, first + (i + 1) * length])
        check_stats(f"{path}: slice {i}", s, figures.get(i, {}), settings)

    tidy = []
    for i, of in figures.items():
        for tag in sorted(of):
            f = of[tag] if isinstance(of[tag], dict) else {"avg": of[tag]}
            order = ["avg", "min", "max"] + [percentile_name(p) for p in settings["percentiles"]] + ["std"]
            tidy += [[str(i), NAMES[tag][1], NAMES[tag][2], k, decimals(f[k]) if isinstance(of[tag], dict) else single(tag, f[k])] for k in order if k in f]
    name = os.path.join(directory, "profile_export_aiperf_timeslices.csv")
    with open(name, encoding="utf-8", newline="") as f:
        rows = list(csv.reader(f))
    check(f"{name}: heading", rows[0], ["Timeslice", "Metric", "Unit", "Stat", "Value"])
    check(f"{name}: lines", len(rows) - 1, len(tidy))
    for got, want in zip(rows[1:], tidy):
        check(name, got, want)
    trend = trends(slices, figures)
    check_trend(path, file.get("trend"), trend)
    table = os.path.join(directory, "table_slices.txt")
    if os.path.exists(table):
        check_slice_table(table, slices, figures, trend, settings)


def trends(slices, figures):
    """What slices say together: ranges, Mann and Whitney's test, Mann and Kendall's."""
    metric = "time_to_first_token"
    if not any(metric in f for f in figures.values()):
        metric = "request_latency"
    parts = [[value(r, metric) for r in slices[i] if outcome(r) == "ok" and value(r, metric) is not None] for i in figures]
    of = [(i, part) for i, part in zip(figures, parts) if part]
    if len(of) < 2:
        return None
    means = [figures[i][metric]["avg"] for i, _ in of]
    rates = [figures[i]["output_token_throughput"] for i, _ in of if "output_token_throughput" in figures[i]]
    first, others = of[0][1], [v for _, part in of[1:] for v in part]
    n, m = len(first), len(others)
    wins = sum(1.0 if a > b else 0.5 if a == b else 0.0 for a in first for b in others)
    both = sorted(first + others)
    ties = sum(k**3 - k for k in (both.count(v) for v in set(both)))
    variance = n * m / 12 * (n + m + 1 - ties / ((n + m) * (n + m - 1)))
    p = None
    if min(n, m) >= 8 and variance > 0:
        p = math.erfc((wins - n * m / 2 - 0.5) / math.sqrt(variance) / math.sqrt(2)) / 2
    delta = 2 * wins / (n * m) - 1
    warm = p is not None and p < 0.01 and delta >= 0.147
    drift = means[1:] if warm else means
    return {
        "metric": metric, "means": means, "rates": rates, "u": wins, "n": n, "m": m, "p": p, "delta": delta, "warm": warm,
        "drift": drift, **kendall(drift),
    }


def kendall(values):
    n = len(values)
    s = sum((values[j] > values[i]) - (values[j] < values[i]) for i in range(n) for j in range(i + 1, n))
    if n < 4:
        return {"s": s, "tau": 0.0, "kendall": None}
    tau = s / (n * (n - 1) / 2)
    sizes = [values.count(v) for v in set(values)]
    if len(sizes) == n and n <= 30:
        orders = [1]  # orders of n values by inversions, as whole numbers
        for k in range(2, n + 1):
            more = [0] * (len(orders) + k - 1)
            for inversions, count in enumerate(orders):
                for extra in range(k):
                    more[inversions + extra] += count
            orders = more
        pairs = n * (n - 1) // 2
        far = sum(count for inversions, count in enumerate(orders) if abs(pairs - 2 * inversions) >= abs(s))
        return {"s": s, "tau": tau, "kendall": far / math.factorial(n)}
    variance = (n * (n - 1) * (2 * n + 5) - sum(k * (k - 1) * (2 * k + 5) for k in sizes)) / 18
    p = None
    if variance > 0:
        p = min(1.0, math.erfc((abs(s) - 1) / math.sqrt(variance) / math.sqrt(2)))
    return {"s": s, "tau": tau, "kendall": p}


def check_trend(path, written, t):
    if t is None:
        check(f"{path}: trend", written, None)
        return
    means, rates = t["means"], t["rates"]
    check(f"{path}: trend: metric", written["metric"], t["metric"])
    check(f"{path}: trend: range", [written["min"], written["max"]], [min(means), max(means)])
    check(f"{path}: trend: variation", written["variation_percent"], 100 * (max(means) - min(means)) / min(means))
    check(f"{path}: trend: first and last", [written["first"], written["last"]], [means[0], means[-1]])
    if rates:
        ends = [written["output_token_throughput_min"], written["output_token_throughput_max"]]
        check(f"{path}: trend: rates", ends, [min(rates), max(rates)])
    warm, drift = written["warm_up"], written["degradation"]
    check(f"{path}: warm-up", [warm["detected"], warm["u"], warm["first"], warm["others"]], [t["warm"], t["u"], t["n"], t["m"]])
    check(f"{path}: warm-up: p", warm.get("p"), t["p"], loose=True)
    check(f"{path}: warm-up: delta", warm["cliffs_delta"], t["delta"], loose=True)
    rising = t["kendall"] is not None and t["kendall"] < 0.01 and t["s"] > 0
    check(f"{path}: degradation", [drift["detected"], drift["s"], drift["slices"], drift["tau"]], [rising, t["s"], len(t["drift"]), t["tau"]])
    check(f"{path}: degradation: p", drift.get("p"), t["kendall"], loose=True)


# --- tables ---


def commas(v):
    return "N/A" if v is None else f"{v:,.2f}"


def check_aiperf_table(path, figures, records, settings, ledger):
    """Rows of the box, its names joined where they have two lines."""
    with open(path, encoding="utf-8") as f:
        lines = f.read().splitlines()
    rows, head = {}, None
    last = None
    for line in lines:
        if line.startswith("┃"):
            head = [c.strip() for c in line.strip("┃").split("┃")]
        elif line.startswith("│"):
            cells = [c.strip() for c in line.strip("│").split("│")]
            if cells[1] == "":  # the unit of the row above
                rows[f"{last} {cells[0]}"] = rows.pop(last)
                continue
            last = cells[0]
            rows[last] = cells[1:]
    extra = [percentile_name(p) for p in settings["extra"] if p not in (50, 90, 99)]
    check(f"{path}: columns", head, ["Metric", "avg", "min", "max", "p99", "p90", "p50"] + extra + ["std"])
    streamed = ("time_to_first_token", "time_to_second_token", "inter_token_latency", "output_token_throughput_per_user")
    want = {}
    for tag in list(PER_REQUEST)[:7] + ["output_token_throughput", "request_throughput", "request_count", "goodput"]:
        f = figures.get(tag)
        if f is None and not (tag in streamed and not settings["streaming"]):
            continue
        f = f if isinstance(f, dict) else {"avg": f}
        want[NAMES[tag][0]] = [commas(f.get(k)) for k in head[1:]]
    check(f"{path}: rows", list(rows), list(want))
    for name in want:
        check(f"{path}: {name}", rows.get(name), want[name])
    text = dict(line.split(": ", 1) for line in lines if ": " in line)
    check(f"{path}: duration", text.get("Benchmark Duration"), "%.2f sec" % figures["benchmark_duration"])
    check_footer(path, text, figures, records, settings, ledger)


def whole(n):
    return f"{n:,}"


def cut_off(part, of):
    if of == 0:
        return "N/A"
    return "100%" if part == of else "%.2f%%" % (part * 10000 // of / 100)


def check_footer(path, text, figures, records, settings, ledger):
    said = {name: text[name] for name in ("Prompts", "Answers", "Exact lengths") if name in text}
    check(f"{path}: lengths", said, settings["said"])
    dropped = {}
    if ledger is None:
        check(f"{path}: attainment", text["Attainment"], "N/A (what was never sent is not in these files)")
    else:
        dropped = ledger["dropped"] | {"filtered": ledger["filtered"]}
        n, eligible, unsent, unjudged = ledger["good"], ledger["eligible"], sum(ledger["dropped"].values()), ledger.get("not_judged", 0)
        expected = ledger["expected"] - unjudged
        want = f"{cut_off(n, expected)} ({whole(n)} good of {whole(expected)} expected"
        if unjudged:
            want += f" and judged, {whole(unjudged)} not judged"
        check(f"{path}: attainment", text["Attainment"][: len(want)], want)
        if unsent:
            check(f"{path}: unsent", f", {whole(unsent)} dropped (" in text["Attainment"], True)
        check(f"{path}: service attainment", text["Service Attainment"], f"{cut_off(n, eligible)} ({whole(n)} good of {whole(eligible)} eligible)")
    ok, failed = figures["request_count"], figures["error_request_count"]
    refused = sum(outcome(r) == "failed" and 400 <= (r["error"].get("code") or 0) < 500 for r in records)
    counts = [whole(len(records)) + " sent", whole(ok) + " ok"]
    for n, what in [(refused, "refused"), (failed - refused, "failed"), (figures["cancelled_request_count"], "cancelled")]:
        if n:
            counts.append(f"{whole(n)} {what}")
    for why, n in ((why, n) for why, n in dropped.items() if n):
        counts.append(f"{whole(n)} filtered" if why == "filtered" else f"{whole(n)} dropped ({why})")
    said = text["Success Rate"]
    check(f"{path}: success", said[: said.index(" (")], cut_off(ok, ok + failed))
    numbers = said[said.index("(") + 1 :].rstrip(")").split(": ")[0]
    check(f"{path}: counts", sorted(re.sub(r"dropped \((\w+)\)?", r"dropped \1", c) for c in numbers.split(", ")),
          sorted(re.sub(r"dropped \((\w+)\)", r"dropped \1", c) for c in counts))
    reasons = re.findall(r"([\d,]+)×", said)
    others = 0 if "other reasons" in said else failed
    if failed and others:
        check(f"{path}: reasons", sum(int(n.replace(",", "")) for n in reasons), failed)
    if settings["goodput"]:
        n = figures["good_request_count"]
        check(f"{path}: goodput", text["Goodput"].split(" kept ")[0], f"{whole(n)} of {whole(ok + failed)} requests sent{' and not cancelled' if figures['cancelled_request_count'] else ''} ({cut_off(n, ok + failed)})")
    per_gpu = figures.get("output_token_throughput_per_gpu")
    said = text["Output Token Throughput Per GPU"]
    check(f"{path}: per GPU", said.split(" tokens")[0].split(" (")[0], commas(per_gpu))


def check_vllm_table(path, figures, records, settings, ledger):
    with open(path, encoding="utf-8") as f:
        lines = f.read().splitlines()
    block = {line[:40].rstrip(): line[40:].strip() for line in lines if len(line) == 51 and not line.startswith(("=", "-"))}
    ok = [r for r in records if outcome(r) == "ok"]
    sent = [start(r) for r in records if start(r)]
    span = (max(map(end, records)) - min(sent)) / 1e9
    total_in, total_out = figures["total_isl"], figures["total_osl"]
    want = {
        "Successful requests:": str(len(ok)),
        "Benchmark duration (s):": decimals(span),
        "Total input tokens:": str(total_in),
        "Total generated tokens:": str(total_out),
        "Request throughput (req/s):": decimals(len(ok) / span),
    }
    if settings["goodput"]:
        want["Request goodput (req/s):"] = decimals(figures["good_request_count"] / span)
    want["Output token throughput (tok/s):"] = decimals(total_out / span)
    want["Total Token throughput (tok/s):"] = decimals((total_in + total_out) / span)
    percentiles = sorted({25, 50, 75, 99, *settings["extra"]})
    for name, tag in [("TTFT", "time_to_first_token"), ("TPOT", "inter_token_latency"), ("ITL", "inter_chunk_latency"), ("E2EL", "request_latency")]:
        f = figures.get(tag)
        for what, key in [("Mean", "avg"), ("Median", "p50"), ("Std", "std")] + [(percentile_name(p).upper(), percentile_name(p)) for p in percentiles]:
            want[f"{what} {name} (ms):"] = "N/A" if f is None else decimals(f[key])
    check(f"{path}: lines", list(block), list(want))
    for name in want:
        check(f"{path}: {name}", block.get(name), want[name])
    check_footer(path, dict(line.split(": ", 1) for line in lines if ": " in line), figures, records, settings, ledger)


def check_slice_table(path, slices, figures, trend, settings):
    with open(path, encoding="utf-8") as f:
        lines = f.read().splitlines()
    rows = [re.split(r"\s*\|\s*", line.strip()) for line in lines if re.match(r"\s*\d+ \|", line)]

    def both(f):
        return "N/A ( N/A)" if f is None else "%.0f ( %.0f)" % (f["avg"], f["p90"])

    want = []
    for i, f in figures.items():
        at = [("%f" % (k * settings["slice"])).rstrip("0").rstrip(".") for k in (i, i + 1)]
        rate = f.get("output_token_throughput")
        want.append([str(i), "%s-%ss" % tuple(at), str(len(slices[i])), both(f.get("time_to_first_token")), both(f.get("request_latency")),
                     "N/A" if rate is None else "%.0f" % rate])
    check(f"{path}: slices", [[re.sub(r"\(\s*", "( ", c) for c in row] for row in rows], want)
    if trend is None:
        return
    text = [line.strip() for line in lines]
    name = "TTFT" if trend["metric"] == "time_to_first_token" else "Latency"
    means, rates = trend["means"], trend["rates"]
    low, high = min(means), max(means)
    expected = ["%s Range: %.0fms - %.0fms (variation: %.1f%%)" % (name, low, high, 100 * (high - low) / low)]
    if rates:
        expected.append("Throughput Range: %.0f - %.0f tokens/s" % (min(rates), max(rates)))
    expected.append("First slice %s: %.0fms vs. Last slice: %.0fms" % (name, means[0], means[-1]))
    for line in expected:
        check(f"{path}: trend", line if line in text else None, line)
    said = "\n".join(text)
    if trend["p"] is not None:
        part = "U=%g, n=%d and %d, one-sided %s, Cliff's delta=%+.2f" % (trend["u"], trend["n"], trend["m"], chance(trend["p"]), trend["delta"])
        check(f"{path}: warm-up", part if part in said else None, part)
        check(f"{path}: warm-up is said", "\nWarm-up detected" in said, trend["warm"])
    if trend["kendall"] is not None:
        part = "S=%d, n=%d, %s, tau=%+.2f" % (trend["s"], len(trend["drift"]), chance(trend["kendall"]), trend["tau"])
        check(f"{path}: degradation", part if part in said else None, part)


def chance(p):
    return "p<0.0001" if p < 0.0001 else "p=%.2g" % p


def main(directory, beside):
    def at(name):
        return os.path.join(directory, name)

    every = by_line(at("profile_export.jsonl"))
    with open(at("profile_export_aiperf.json"), encoding="utf-8") as f:
        summary = json.load(f)
    config = summary["input_config"]
    extra = config.get("percentiles") or []
    settings = {
        "goodput": config.get("input", {}).get("goodput") or {},
        "gpus": config.get("gpus") or 0,
        "slice": config.get("output", {}).get("slice_duration") or 0,
        "streaming": config["endpoint"]["streaming"],
        "extra": extra,
        "percentiles": sorted({1, 5, 10, 25, 50, 75, 90, 95, 99, *extra}),
    }
    for i, r in enumerate(every):
        check_record(f"profile_export.jsonl:{i + 1}", r)
    records = [r for r in every if r["metadata"]["benchmark_phase"] != "warmup"]
    figures = aggregate(records, settings)
    ledger = summary.get("ledger")
    if ledger is not None:
        figures |= check_ledger("profile_export_aiperf.json: ledger", ledger, records, settings)
    if beside["--records"]:
        check_records(beside["--records"], figures, ledger, settings)
    figures |= sessions(at("session_export.jsonl"), ledger or {}, records, config.get("session_makespan"), settings["percentiles"])
    check_stats("profile_export_aiperf.json", summary, figures, settings)
    if beside["--engine"]:
        check_engine(beside["--engine"], figures, records)
    errors = sum(e["count"] for e in summary["error_summary"])
    check("profile_export_aiperf.json: error_summary", errors, figures["error_request_count"] + figures["cancelled_request_count"])
    settings["said"] = check_lengths("profile_export_aiperf.json: lengths", summary["lengths"], records)
    check_csv(at("profile_export_aiperf.csv"), figures, settings)
    if settings["slice"] and records:
        check_slices(at("profile_export_aiperf_timeslices.json"), directory, records, settings)
    for name, compare in [("table_aiperf.txt", check_aiperf_table), ("table_vllm.txt", check_vllm_table)]:
        if os.path.exists(at(name)):
            compare(at(name), figures, records, settings, ledger)
    for fault in faults[:50]:
        print(fault)
    print(f"{len(every)} requests, {compared} comparisons, {len(faults)} differ")
    return 1 if faults else 0


if __name__ == "__main__":
    arguments, beside = sys.argv[1:], {"--records": None, "--engine": None}
    while len(arguments) > 2 and arguments[-2] in beside:
        beside[arguments[-2]] = arguments[-1]
        del arguments[-2:]
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(arguments[0], beside))
