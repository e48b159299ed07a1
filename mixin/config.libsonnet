{
  _config+:: {
    // The address of the runbook. Where it is set, each alert's runbook_url is this address with #NAME, NAME in lower case; where it
    // is empty, each alert finds it in the series replayd_web_info, as the shipped rules do.
    runbookBase: '',

    // The address of the Grafana that has the dashboards. Where it is empty, each alert finds it in the series replayd_web_info.
    dashboardsBase: '',

    // The histograms that rules and dashboards read: 'classic', or 'native' for a Prometheus that scrapes native ones.
    histograms: 'classic',

    // The interval at which replayd is scraped, 5s to 1m: the least step of the dashboards' queries.
    scrapeInterval: '15s',

    // Labels for each alert, such as { team: 'inference' }. A label that a rule sets itself stays as it is.
    alertLabels: {},

    // Alerts to leave out, by name. A name that no alert has is an error.
    excludedAlerts: [],

    // Tags for each dashboard, beside `replayd`, by which the dashboards find each other.
    dashboardTags: [],
  },
}
