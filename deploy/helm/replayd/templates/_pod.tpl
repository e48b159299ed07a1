{{/* What every pod of the chart has in common, at the level of a pod's spec. */}}
{{- define "replayd.podSpec" -}}
serviceAccountName: {{ include "replayd.serviceAccountName" . }}
automountServiceAccountToken: false
enableServiceLinks: false # they would put REPLAYD_PORT and the like into the environment, where replayd's own keys are
terminationGracePeriodSeconds: {{ include "replayd.gracePeriod" . }} # above the drain
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.podSecurityContext }}
securityContext: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.topologySpreadConstraints }}
topologySpreadConstraints: {{- toYaml . | nindent 2 }}
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
{{- with .Values.resources }}
resources: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.securityContext }}
securityContext: {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts: {{- include "replayd.mounts" . | nindent 2 }}
{{- end -}}

{{/* A daemon's args and probes. Neither probe waits for the target: /-/ready says that replayd itself is up. There is no
startupProbe: the page is there before the trace is read, and in a sidecar it would hold the engine's start back. */}}
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
{{- end -}}

{{- define "replayd.env" -}}
{{- if or (eq .Values.mode "job") (and (eq .Values.mode "shards") .Values.records.volume) }}
- {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "replayd.volumes" -}}
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
{{- else if eq $v.mode "job" }}
- name: records
  persistentVolumeClaim: {claimName: {{ include "replayd.fullname" . }}-records}
{{- end }}
{{- with $v.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "replayd.mounts" -}}
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
{{- if or $v.records.volume (eq $v.mode "job") }}
- name: records
  mountPath: /records
  {{- if eq $v.mode "shards" }}
  subPathExpr: $(POD_NAME)
  {{- end }}
{{- end }}
{{- with $v.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}
