// latency.yaml has no alerts, in either form.
local groups = (import 'groups.libsonnet')(importstr '../alerts/latency.yaml');
local known = std.set([rule.alert for group in groups.alerts for rule in group.rules]);

{
  local config = $._config,
  // What the link to a dashboard begins with in the shipped rules.
  local asked = '{{ with query "fleet:replayd_web_info:max{dashboards_url!=``}" }}{{ . | first | label "dashboards_url" }}',
  local unknown = std.setDiff(std.set(config.excludedAlerts), known),
  local change(rule) = rule {
    labels: config.alertLabels + super.labels,
    annotations+: (if config.runbookBase == '' then {} else {
                     runbook_url: '%s#%s' % [config.runbookBase, std.asciiLower(rule.alert)],
                   }) + (if config.dashboardsBase == '' then {} else {
                           dashboard: std.strReplace(super.dashboard, asked, '{{ with "%s" }}{{ . }}' % config.dashboardsBase),
                         }),
  },

  prometheusAlerts+:: {
    assert unknown == [] : 'excludedAlerts: want names of alerts, got %s' % std.join(', ', unknown),

    groups+: [
      group { rules: std.map(change, rules) }
      for group in groups.alerts
      for rules in [std.filter(function(rule) !std.member(config.excludedAlerts, rule.alert), group.rules)]
      if rules != []
    ],
  },
}
