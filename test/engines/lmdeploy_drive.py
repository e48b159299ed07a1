#!/usr/bin/env python3
"""lmdeploy_drive.py FOLDER NAME: has LMDeploy's own metrics code write a page, and keeps it as FOLDER/NAME.txt and .om.txt.

LMDeploy's engines need a GPU, so what an engine would report is made up here: eight requests on an invented clock that
starts at BEGIN. What stands between an engine and the page is LMDeploy's: its MetricsProcessor, its statistics, its
Prometheus logger, set up as lmdeploy/serve/core/async_engine.py sets them up. So the page proves names, types, labels and
buckets; its figures prove only that they are read as they were meant.
"""

import asyncio
import sys

from lmdeploy.messages import EngineEvent, EngineOutput, EventType, RequestMetrics, ResponseType, ScheduleMetrics
from lmdeploy.metrics.loggers import LoggingStatLogger, PrometheusStatLogger
from lmdeploy.metrics.metrics_processor import metrics_processor
from lmdeploy.metrics.stats import IterationStats, RequestStats
from prometheus_client import REGISTRY, exposition
from prometheus_client.openmetrics import exposition as openmetrics

BEGIN = 1_700_000_000.0
REQUESTS, PROMPT, OUTPUT, CACHED = 8, 600, 32, 512


async def step(request, now, status, tokens, events=(), cached=0):
    """Hands the processor what an engine reports of one step of a request."""
    report = RequestMetrics(token_timestamp=now, engine_events=list(events), cached_tokens=cached)
    iteration = IterationStats()
    iteration.iteration_timestamp = now
    output = EngineOutput(status, token_ids=[7] * tokens, req_metrics=report)
    metrics_processor.queue_update((output, request, iteration, None))
    await metrics_processor.metrics_queue.join()


async def main(path):
    metrics_processor.stat_loggers = [
        LoggingStatLogger(dp_rank=0),
        PrometheusStatLogger(model_name="tiny-random", max_model_len=2048, dp_rank=0),
    ]
    metrics_processor.start_metrics_handler(enable_metrics=True)
    for i in range(REQUESTS):
        arrived = BEGIN + 0.5 * i
        metrics_processor.increase_total_requests()
        metrics_processor.increase_api_routed_requests()
        request = RequestStats(arrival_time=arrived, prompt_tokens=PROMPT)
        cached = CACHED if i > 0 else 0
        events = [
            EngineEvent.new_event(EventType.QUEUED, arrived + 0.001),
            EngineEvent.new_event(EventType.SCHEDULED, arrived + 0.011),
        ]
        await step(request, arrived + 0.2, ResponseType.SUCCESS, 1, events, cached)
        if i >= 5:  # three are still running
            continue
        for token in range(1, OUTPUT):
            last = token == OUTPUT - 1
            status = ResponseType.FINISH if last else ResponseType.SUCCESS
            await step(request, arrived + 0.2 + 0.02 * token, status, 1, cached=cached)
        metrics_processor.decrease_api_routed_requests()
        metrics_processor.increase_succeeded_requests()
    for failure in ("cancel", "abort"):
        metrics_processor.increase_total_requests()
        metrics_processor.increase_failed_requests(failure)
    schedule = ScheduleMetrics(active_seqs=2, waiting_seqs=1, cache_usage=0.375, prefix_cache_hit_rate=0.75)
    await metrics_processor.update_schedule_stats(schedule)
    await metrics_processor.stop_metrics_handler()
    # The server mounts prometheus_client's own app, which calls one of these two, as the client accepts.
    for write, ending in ((exposition.generate_latest, "txt"), (openmetrics.generate_latest, "om.txt")):
        with open(f"{path}.{ending}", "wb") as file:
            file.write(write(REGISTRY))


asyncio.run(main("/".join(sys.argv[1:])))
