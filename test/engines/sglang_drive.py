#!/usr/bin/env python3
"""sglang_drive.py FOLDER NAME: has the metrics code of SGLang 0.4 write a page, and keeps it as FOLDER/NAME.txt and .om.txt.

That server does not start without a GPU, so what its scheduler and its tokenizer manager would report is made up here:
two data-parallel ranks and eight requests. The classes are SGLang's (sglang/srt/metrics/collector.py), their labels are
those that sglang/srt/managers/scheduler_metrics_mixin.py and tokenizer_manager.py give them, and the page is written in
prometheus_client's multiprocess mode, as the server does it. So the page proves names, types, labels and buckets, and
nothing about figures. A rank is a process there; here both are one, with two registries.
"""

import os
import sys
import tempfile

os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp()  # before prometheus_client is imported

import prometheus_client  # noqa: E402
from prometheus_client import CollectorRegistry, exposition, multiprocess  # noqa: E402
from prometheus_client.openmetrics import exposition as openmetrics  # noqa: E402
from sglang.srt.metrics.collector import (  # noqa: E402
    SchedulerMetricsCollector,
    SchedulerStats,
    TokenizerMetricsCollector,
)

MODEL = "tiny-random"


def scheduler(rank):
    labels = {"model_name": MODEL, "engine_type": "unified", "tp_rank": 0, "pp_rank": 0, "dp_rank": rank}
    collector = SchedulerMetricsCollector(labels=labels)
    collector.log_stats(
        SchedulerStats(
            num_running_reqs=4,
            num_used_tokens=2020 + rank,
            token_usage=0.39,
            gen_throughput=184.5,
            num_queue_reqs=2 + rank,
            cache_hit_rate=0.25,
        )
    )
    for collector_of_rank in list(prometheus_client.REGISTRY._collector_to_names):
        prometheus_client.REGISTRY.unregister(collector_of_rank)


scheduler(0)
scheduler(1)
tokenizer = TokenizerMetricsCollector(labels={"model_name": MODEL}, collect_tokens_histogram=True)
for i in range(8):
    tokenizer.observe_time_to_first_token(0.15 + 0.1 * i)
    for _ in range(31):
        tokenizer.observe_inter_token_latency(0.012, 1)
    tokenizer.observe_one_finished_request(
        prompt_tokens=600, generation_tokens=32, cached_tokens=512 if i else 0, e2e_latency=0.6 + 0.1 * i, has_grammar=False
    )
tokenizer.observe_one_aborted_request()

registry = CollectorRegistry()
multiprocess.MultiProcessCollector(registry)
path = "/".join(sys.argv[1:])
for write, ending in ((exposition.generate_latest, "txt"), (openmetrics.generate_latest, "om.txt")):
    with open(f"{path}.{ending}", "wb") as file:
        file.write(write(registry))
