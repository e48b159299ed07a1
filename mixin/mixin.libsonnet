// The alerts, recording rules and dashboards of this repository as a monitoring mixin: monitoring.mixins.dev. README.md has examples.
(import 'config.libsonnet') +
(import 'alerts.libsonnet') +
(import 'rules.libsonnet') +
(import 'dashboards.libsonnet')
