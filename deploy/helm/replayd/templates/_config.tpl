{{/* What the schema cannot say: keys that need or exclude each other. */}}
{{- define "replayd.check" -}}
{{- $v := .Values -}}
{{- $outside := or $v.existingConfigMap $v.existingSecret -}}
{{- if and $v.existingConfigMap $v.existingSecret -}}
  {{- fail "existingSecret: want only one of existingConfigMap and existingSecret" -}}
{{- end -}}
{{- if and $outside (or $v.target.url $v.config.targets $v.config.workloads $v.config.comparisons $v.config.gpus) -}}
  {{- fail "existingConfigMap, existingSecret: want neither target.url nor config beside it: they would not be used" -}}
{{- end -}}
{{- if and $outside (eq $v.mode "job") -}}
  {{- fail "existingConfigMap, existingSecret: want another mode than job: replayd run takes flags, give them in job.args" -}}
{{- end -}}
{{- if and $outside (kindIs "invalid" $v.terminationGracePeriodSeconds) -}}
  {{- fail "terminationGracePeriodSeconds: want a number above the drain in the existing configuration, which the chart cannot see" -}}
{{- end -}}
{{- if and (not (kindIs "invalid" $v.terminationGracePeriodSeconds)) (not $outside) -}}
  {{- if le (int $v.terminationGracePeriodSeconds) (int (include "replayd.drainSeconds" .)) -}}
    {{- fail (printf "terminationGracePeriodSeconds: want more than config.drain (%s), got %v" $v.config.drain $v.terminationGracePeriodSeconds) -}}
  {{- end -}}
{{- end -}}
{{- if and (eq $v.mode "job") (or $v.config.targets $v.config.workloads $v.config.comparisons $v.config.gpus) -}}
  {{- fail "config: want target.url, trace and job.args in mode job: replayd run reads no configuration file" -}}
{{- end -}}
{{- if and (eq $v.mode "job") (gt (int $v.job.shards) 1) (not $v.job.start) -}}
  {{- fail (printf "job.start: want an instant some minutes ahead, at which all %d shards begin, such as --set job.start=$(date -u -d '+5 min' +%%Y-%%m-%%dT%%H:%%M:00Z), got none" (int $v.job.shards)) -}}
{{- end -}}
{{- if and $v.target.url $v.config.targets -}}
  {{- fail "config.targets: want only one of target.url and config.targets" -}}
{{- end -}}
{{- with $v.config.web -}}
  {{- if .listen -}}{{- fail "config.web.listen: want the value port instead, which the probes and the monitor use too" -}}{{- end -}}
{{- end -}}
{{- if gt (len (compact (list $v.trace.existingConfigMap $v.trace.existingClaim $v.trace.path))) 1 -}}
  {{- fail "trace: want only one of existingConfigMap, existingClaim and path" -}}
{{- end -}}
{{- if and (or $v.trace.existingConfigMap $v.trace.existingClaim) (not $v.trace.file) -}}
  {{- fail "trace.file: want the name of the trace in trace.existingConfigMap or trace.existingClaim, got none" -}}
{{- end -}}
{{- if and $v.trace.file (not (or $v.trace.existingConfigMap $v.trace.existingClaim)) -}}
  {{- fail "trace.file: want trace.existingConfigMap or trace.existingClaim beside it" -}}
{{- end -}}
{{- if gt (len (compact (list $v.records.volume $v.records.existingClaim $v.records.claim.enabled))) 1 -}}
  {{- fail "records: want only one of volume, existingClaim and claim.enabled" -}}
{{- end -}}
{{- range $key := list "records" "state" -}}
  {{- $path := (get $v.config $key | default dict).path | default "" -}}
  {{- if and (hasPrefix "/records/" $path) (not (include "replayd.records" $)) -}}
    {{- fail (printf "records: want a volume, an existingClaim or claim.enabled for config.%s.path: the root file system is read-only" $key) -}}
  {{- end -}}
{{- end -}}
{{- with $v.service -}}
  {{- if and (ne $v.mode "deployment") (or (ne .type "ClusterIP") .port .nodePort) -}}
    {{- fail "service: want type, port and nodePort in mode deployment only: the Service of shards is headless, the other modes have none" -}}
  {{- end -}}
  {{- if and .nodePort (eq .type "ClusterIP") -}}{{- fail "service.nodePort: want the type NodePort or LoadBalancer" -}}{{- end -}}
{{- end -}}
{{- if eq $v.mode "sidecar-example" -}}
  {{- if $v.networkPolicy.enabled -}}{{- fail "networkPolicy.enabled: want another mode than sidecar-example: it would hold the engine's traffic too" -}}{{- end -}}
  {{- if $v.records.claim.enabled -}}{{- fail "records.claim.enabled: want another mode than sidecar-example: its pods would share one claim" -}}{{- end -}}
  {{- if $v.podDisruptionBudget.enabled -}}{{- fail "podDisruptionBudget.enabled: want another mode than sidecar-example: it is the engine's business" -}}{{- end -}}
{{- else -}}
  {{- if $v.dcgmService.enabled -}}{{- fail "dcgmService.enabled: want mode sidecar-example: elsewhere the GPUs of replayd's node are not the target's; name the exporter in config.gpus" -}}{{- end -}}
{{- end -}}
{{- if and $v.monitor.enabled (eq $v.monitor.kind "ServiceMonitor") (not (has $v.mode (list "deployment" "shards"))) -}}
  {{- fail (printf "monitor.kind: want PodMonitor in mode %s, which has no Service" $v.mode) -}}
{{- end -}}
{{- if and $v.networkPolicy.enabled (not $v.networkPolicy.target.to) -}}
  {{- fail "networkPolicy.target.to: want the peers that are the engine, such as [{podSelector: {matchLabels: {app: vllm}}}]" -}}
{{- end -}}
{{- if and $v.networkPolicy.enabled $v.monitor.enabled (not $v.networkPolicy.metricsFrom) -}}
  {{- fail "networkPolicy.metricsFrom: want who scrapes, such as [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]: with monitor.enabled and nobody let in each scrape would fail" -}}
{{- end -}}
{{- include "replayd.noSecrets" (dict "at" "config" "value" $v.config) -}}
{{- include "replayd.noSecrets" (dict "at" "canary" "value" $v.canary) -}}
{{- end -}}

{{/* A ConfigMap is open to many: nothing in it may look like a secret. Every list, map and string of the configuration is looked at. */}}
{{- define "replayd.noSecrets" -}}
{{- $at := .at -}}
{{- if kindIs "map" .value -}}
  {{- range $key, $value := .value -}}
    {{- $here := printf "%s.%s" $at $key -}}
    {{- $name := $key | lower | replace "tokens" "" -}}
    {{- $known := regexMatch "[.](timeouts[.]first_token|oauth2[.]token_url)$" $here -}}{{/* a time and an address */}}
    {{- if and (regexMatch "key|token|secret|password|credential|authorization" $name) (not (hasSuffix "_file" $name)) (not $known) -}}
      {{- $words := ternary $value (list $value) (kindIs "slice" $value) -}}{{/* numbers, such as stop_token_ids, open no door */}}
      {{- $word := false -}}
      {{- range $words -}}{{- if and . (kindIs "string" .) -}}{{- $word = true -}}{{- end -}}{{- end -}}
      {{- if or $word (and (kindIs "map" $value) (hasKey $value "values")) -}}
        {{- fail (printf "%s: want no secret in a ConfigMap: name it in secrets, and its file here (credentials_file, password_file, key_file, files)" $here) -}}
      {{- end -}}
    {{- end -}}
    {{- include "replayd.noSecrets" (dict "at" $here "value" $value) -}}
  {{- end -}}
{{- else if kindIs "slice" .value -}}
  {{- range $i, $value := .value -}}
    {{- include "replayd.noSecrets" (dict "at" (printf "%s[%d]" $at $i) "value" $value) -}}
  {{- end -}}
{{- else if kindIs "string" .value -}}
  {{- if regexMatch "://[^/?#[:space:]]*@" .value -}}
    {{- fail (printf "%s: want an address without a user and a password" $at) -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* A duration in seconds. */}}
{{- define "replayd.seconds" -}}
{{- $units := dict "ms" 0.001 "s" 1 "m" 60 "h" 3600 "d" 86400 "w" 604800 "y" 31536000 -}}
{{- $sum := 0.0 -}}
{{- range regexFindAll "[0-9.]+[a-z]+" . -1 -}}
  {{- $sum = addf $sum (mulf (regexFind "[0-9.]+" . | float64) (get $units (regexFind "[a-z]+" .) | float64)) -}}
{{- end -}}
{{- $sum -}}
{{- end -}}

{{/* The drain in whole seconds, rounded up. */}}
{{- define "replayd.drainSeconds" -}}
{{- include "replayd.seconds" .Values.config.drain | float64 | ceil | int -}}
{{- end -}}

{{- define "replayd.gracePeriod" -}}
{{- if kindIs "invalid" .Values.terminationGracePeriodSeconds -}}
{{- add (include "replayd.drainSeconds" .) 15 -}}
{{- else -}}
{{- int .Values.terminationGracePeriodSeconds -}}
{{- end -}}
{{- end -}}

{{/* The trace's path in the container. */}}
{{- define "replayd.trace" -}}
{{- .Values.trace.path | default (printf "/traces/%s" (.Values.trace.file | default "sample.jsonl")) -}}
{{- end -}}

{{/* replayd.yaml: the user's, completed. */}}
{{- define "replayd.config" -}}
{{- $c := deepCopy .Values.config -}}
{{- $sidecar := eq .Values.mode "sidecar-example" -}}
{{- if not $c.targets -}}
  {{- $url := .Values.target.url | default (ternary "http://127.0.0.1:8000" "" $sidecar) -}}
  {{- $_ := set $c "targets" (list (dict "name" .Values.target.name "url" (required "target.url: want the address of the engine, such as http://vllm:8000, or config.targets" $url))) -}}
{{- end -}}
{{- if not $c.workloads -}}
  {{- $w := deepCopy .Values.canary -}}
  {{- if gt (len $c.targets) 1 -}}{{- fail "config.workloads: want workloads beside several config.targets" -}}{{- end -}}
  {{- if and $sidecar (not $w.guard) -}}{{- $_ := set $w "guard" (dict "waiting" 4 "error_ratio" 0.2) -}}{{- end -}}
  {{- $_ := set $c "workloads" (list $w) -}}
{{- end -}}
{{- range $i, $w := $c.workloads -}}
  {{- $trace := $w.trace | default dict -}}
  {{- if not $trace.path -}}{{- $_ := set $trace "path" (include "replayd.trace" $) -}}{{- end -}}
  {{- $_ := set $w "trace" $trace -}}
  {{- if eq $.Values.mode "shards" -}}
    {{- if $w.shard -}}{{- fail (printf "config.workloads[%d].shard: want shards.count instead, the chart writes it" $i) -}}{{- end -}}
    {{- $_ := set $w "shard" (dict "index" "auto" "of" (int (include "replayd.shards" $))) -}}
  {{- end -}}
{{- end -}}
{{- if and .Values.dcgmService.enabled (not $c.gpus) -}}
  {{- $select := dict "namespace" (include "replayd.namespace" .) "pod" (printf "%s-*" (include "replayd.fullname" .)) -}}
  {{- $exporter := printf "http://%s.%s:%v/metrics" (include "replayd.dcgmService" .) .Values.dcgmService.namespace .Values.dcgmService.port -}}
  {{- $_ := set $c "gpus" (list (dict "target" (index $c.targets 0).name "dcgm_exporter" $exporter "select" $select)) -}}
{{- end -}}
{{- if not $c.gpus -}}{{- $_ := unset $c "gpus" -}}{{- end -}}
{{- toYaml $c -}}
{{- end -}}

{{- define "replayd.dcgmService" -}}
{{ include "replayd.fullname" . }}-dcgm
{{- end -}}

{{/* "true" where the chart brings the trace: nothing else is named. */}}
{{- define "replayd.sample" -}}
{{- $t := .Values.trace -}}
{{- if not (or $t.existingConfigMap $t.existingClaim $t.path .Values.existingConfigMap .Values.existingSecret) -}}
  {{- $wanted := or (eq .Values.mode "job") (not .Values.config.workloads) -}}
  {{- range .Values.config.workloads -}}
    {{- if not (.trace | default dict).path -}}{{- $wanted = true -}}{{- end -}}
  {{- end -}}
  {{- if $wanted -}}true{{- end -}}
{{- end -}}
{{- end -}}
