local latency = {
  classic: importstr '../alerts/latency.yaml',
  native: importstr '../native/latency.yaml',
};

{
  prometheusRules+:: {
    groups+: (import 'groups.libsonnet')(latency[$._config.histograms]).rules,
  },
}
