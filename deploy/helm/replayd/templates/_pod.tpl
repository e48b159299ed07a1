{{/* What every pod of the chart has in common, at the level of a pod's spec. */}}
{{- define "replayd.podSpec" -}}
serviceAccountName: {{ include "replayd.serviceAccountName" . }}
automountServiceAccountToken: false
enableServiceLinks: false # they would put REPLAYD_PORT and the like into the environment, where replayd's own keys are
terminationGracePeriodSeconds: {{ include "replayd.gracePeriod" . }} # above the drain
{{- with .Values.podSecurityContext }}
securityContext: {{- toYaml . | nindent 2 }}
{{- end }}
{{- $as := list "imagePullSecrets" "priorityClassName" "runtimeClassName" "dnsPolicy" "dnsConfig" "hostAliases" }}
{{- range $key := concat $as (list "nodeSelector" "affinity" "tolerations" "topologySpreadConstraints") }}
{{- with get $.Values $key }}
{{ dict $key . | toYaml }}
{{- end }}
{{- end }}
volumes: {{- include "replayd.volumes" . | nindent 2 }}
{{- end -}}

{{- define "replayd.podMetadata" -}}
{{- $container := "replayd" -}}
{{- if eq .Values.mode "sidecar-example" -}}{{- $container = .Values.sidecarExample.engine.name | default "engine" -}}{{- end -}}
{{- $own := dict "kubectl.kubernetes.io/default-container" $container -}}
{{- if has .Values.mode (list "deployment" "shards") -}}{{/* the one section that takes effect at a restart only */}}
  {{- $_ := set $own "checksum/web" (.Values.config.web | toJson | sha256sum) -}}
{{- end -}}
labels: {{- include "replayd.podLabels" . | nindent 2 }}
annotations: {{- merge $own (.Values.podAnnotations | default dict) | toYaml | nindent 2 }}
{{- end -}}

{{/* replayd's container, less its args. */}}
{{- define "replayd.container" -}}
name: replayd
image: {{ include "replayd.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
ports:
  - {name: http-replayd, containerPort: {{ .Values.port }}, protocol: TCP}
{{- with (include "replayd.env" . | fromYamlArray) }}
env: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.extraEnvFrom }}
envFrom: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.resources }}
resources: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.lifecycle }}
lifecycle: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.securityContext }}
securityContext: {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts: {{- include "replayd.mounts" . | nindent 2 }}
{{- end -}}

{{/* A daemon's args and probes. Neither probe waits for the target: /-/ready says that replayd itself is up. The chart has no
startupProbe of its own: the page is there before the trace is read, and in a sidecar it would hold the engine's start back. */}}
{{- define "replayd.serve" -}}
args:
  - serve
  - --config=/etc/replayd/config/replayd.yaml
  - --config.watch
  - --web.listen-address=:{{ .Values.port }}
  {{- with .Values.extraArgs }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
livenessProbe:
  {{- with .Values.livenessProbe }}
  {{- toYaml . | nindent 2 }}
  {{- else }}
  httpGet: {path: /-/healthy, port: http-replayd, scheme: {{ .Values.scheme }}}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
  {{- end }}
readinessProbe:
  {{- with .Values.readinessProbe }}
  {{- toYaml . | nindent 2 }}
  {{- else }}
  httpGet: {path: /-/ready, port: http-replayd, scheme: {{ .Values.scheme }}}
  periodSeconds: 5
  timeoutSeconds: 5
  {{- end }}
{{- with .Values.startupProbe }}
startupProbe: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* A list in which each name or path comes once, from a list of the chart's items as text, the user's items, which come first where both
have one, and the key of the name or path. */}}
{{- define "replayd.once" -}}
{{- $user := index . 1 | default list -}}
{{- $key := index . 2 -}}
{{- $taken := list -}}
{{- range $user -}}{{- $taken = append $taken (get . $key) -}}{{- end -}}
{{- $all := list -}}
{{- range index . 0 | fromYamlArray -}}{{- if not (has (get . $key) $taken) -}}{{- $all = append $all . -}}{{- end -}}{{- end -}}
{{- with concat $all $user -}}{{- toYaml . -}}{{- end -}}
{{- end -}}

{{/* What is mounted at /records: "volume", one that is there; "claim", one that the chart makes; "claims", one of each shard; or nothing. */}}
{{- define "replayd.records" -}}
{{- $r := .Values.records -}}
{{- if or $r.volume $r.existingClaim -}}
volume
{{- else if or $r.claim.enabled (eq .Values.mode "job") -}}
{{ ternary "claims" "claim" (eq .Values.mode "shards") }}
{{- end -}}
{{- end -}}

{{- define "replayd.claim" -}}
{{- with .Values.records.claim -}}
accessModes: {{- .accessModes | default (list (ternary "ReadWriteMany" "ReadWriteOnce" (eq $.Values.mode "job"))) | toYaml | nindent 2 }}
{{- with .storageClassName }}
storageClassName: {{ . }}
{{- end }}
resources:
  requests: {storage: {{ .size }}}
{{- end -}}
{{- end -}}

{{- define "replayd.env" -}}
{{- $own := "" -}}
{{- if or (eq .Values.mode "job") (and (eq .Values.mode "shards") (eq (include "replayd.records" .) "volume")) -}}
{{- $own = "[{name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]" -}}
{{- end -}}
{{- include "replayd.once" (list $own .Values.extraEnv "name") -}}
{{- end -}}

{{- define "replayd.volumes" -}}
{{- include "replayd.once" (list (include "replayd.ownVolumes" .) .Values.extraVolumes "name") -}}
{{- end -}}

{{- define "replayd.ownVolumes" -}}
{{- $v := .Values -}}
{{- if ne $v.mode "job" }}
- name: config
  {{- if $v.existingSecret }}
  secret: {secretName: {{ $v.existingSecret }}}
  {{- else }}
  configMap: {name: {{ $v.existingConfigMap | default (include "replayd.fullname" .) }}}
  {{- end }}
{{- end }}
{{- if include "replayd.sample" . }}
- name: trace
  configMap: {name: {{ include "replayd.fullname" . }}-sample}
{{- else if $v.trace.existingConfigMap }}
- name: trace
  configMap: {name: {{ $v.trace.existingConfigMap }}}
{{- else if $v.trace.existingClaim }}
- name: trace
  persistentVolumeClaim: {claimName: {{ $v.trace.existingClaim }}, readOnly: true}
{{- end }}
{{- range $v.secrets }}
- name: secret-{{ .name }}
  secret: {secretName: {{ .secretName }}}
{{- end }}
- name: tmp
  emptyDir: {}
{{- if $v.records.volume }}
- name: records
  {{- toYaml $v.records.volume | nindent 2 }}
{{- else if or $v.records.existingClaim (eq (include "replayd.records" .) "claim") }}
- name: records
  persistentVolumeClaim: {claimName: {{ $v.records.existingClaim | default (printf "%s-records" (include "replayd.fullname" .)) }}}
{{- end }}
{{- end -}}

{{- define "replayd.mounts" -}}
{{- include "replayd.once" (list (include "replayd.ownMounts" .) .Values.extraVolumeMounts "mountPath") -}}
{{- end -}}

{{- define "replayd.ownMounts" -}}
{{- $v := .Values -}}
{{- if ne $v.mode "job" }}
- {name: config, mountPath: /etc/replayd/config, readOnly: true} # the whole folder: a file mounted by subPath would never change
{{- end }}
{{- if or (include "replayd.sample" .) $v.trace.existingConfigMap $v.trace.existingClaim }}
- {name: trace, mountPath: /traces, readOnly: true}
{{- end }}
{{- range $v.secrets }}
- {name: secret-{{ .name }}, mountPath: /etc/replayd/secrets/{{ .name }}, readOnly: true}
{{- end }}
- {name: tmp, mountPath: /tmp} # a compressed trace is unpacked there
{{- with include "replayd.records" . }}
- name: records
  mountPath: /records
  {{- if and (eq $v.mode "shards") (eq . "volume") }}
  subPathExpr: $(POD_NAME)
  {{- end }}
{{- end }}
{{- end -}}
