// The groups of alerts/*.yaml, split by the kind of rule. latency is the text of latency.yaml in one of its forms.
function(latency)
  local groups = std.flatMap(
    function(text) std.parseYaml(text).groups,
    [
      importstr '../alerts/comparison.yaml',
      importstr '../alerts/gpu.yaml',
      latency,
      importstr '../alerts/measurement.yaml',
      importstr '../alerts/recording.yaml',
      importstr '../alerts/service.yaml',
      importstr '../alerts/workloads.yaml',
    ],
  );

  // Some alerts have two rules, and some groups both kinds.
  local of(kind) = [
    group { rules: rules }
    for group in groups
    for rules in [std.filter(function(rule) std.objectHas(rule, kind), group.rules)]
    if rules != []
  ];

  local alerts = of('alert');
  local alerting = std.set([group.name for group in alerts]);

  {
    alerts: alerts,
    // kube-prometheus writes both kinds into one file, where the name of a group must be unique.
    rules: [
      group { name: group.name + if std.setMember(group.name, alerting) then '_rules' else '' }
      for group in of('record')
    ],
  }
