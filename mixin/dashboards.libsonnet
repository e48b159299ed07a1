local dashboards = {
  'replayd-canary.json': import '../dashboards/canary.json',
  'replayd-comparison.json': import '../dashboards/comparison.json',
  'replayd-correlation.json': import '../dashboards/correlation.json',
  'replayd-fleet.json': import '../dashboards/fleet.json',
  'replayd-health.json': import '../dashboards/health.json',
  'replayd-overview.json': import '../dashboards/overview.json',
};

{
  grafanaDashboards+:: std.mapWithKey(
    function(_, dashboard) dashboard { tags+: $._config.dashboardTags },
    dashboards,
  ),
}
