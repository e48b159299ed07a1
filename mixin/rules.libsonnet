{
  prometheusRules+:: {
    groups+: (import 'groups.libsonnet').rules,
  },
}
