local classic = {
  'replayd-canary.json': import '../dashboards/canary.json',
  'replayd-comparison.json': import '../dashboards/comparison.json',
  'replayd-correlation.json': import '../dashboards/correlation.json',
  'replayd-fleet.json': import '../dashboards/fleet.json',
  'replayd-health.json': import '../dashboards/health.json',
  'replayd-overview.json': import '../dashboards/overview.json',
};
local native = classic {
  'replayd-canary.json': import '../native/canary.json',
  'replayd-correlation.json': import '../native/correlation.json',
  'replayd-health.json': import '../native/health.json',
};

{
  local config = $._config,
  local scrape(variable) = if variable.name != 'scrape' || config.scrapeInterval == '15s' then variable else variable {
    query: config.scrapeInterval,
    current: { text: config.scrapeInterval, value: config.scrapeInterval },
  },

  grafanaDashboards+:: std.mapWithKey(
    function(_, dashboard) dashboard {
      tags+: config.dashboardTags,
      templating+: { list: std.map(scrape, super.list) },
    },
    { classic: classic, native: native }[config.histograms],
  ),
}
