local latency = {
  classic: importstr '../alerts/latency.yaml',
  native: importstr '../native/latency.yaml',
};

{
  local form = $._config.histograms,

  prometheusRules+:: {
    assert std.objectHas(latency, form) : "histograms: want 'classic' or 'native', got '%s'" % form,
    groups+: (import 'groups.libsonnet')(latency[form]).rules,
  },
}
