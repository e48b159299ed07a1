"""Reads a page in OpenMetrics' text format from stdin with client_python's strict parser, and prints its number of samples."""
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

print(sum(len(family.samples) for family in text_string_to_metric_families(sys.stdin.read())))
