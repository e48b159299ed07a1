{{- define "replayd.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{/* 52 leave room for a revision and an index: a pod's name is a host's, of at most 63. */}}
{{- define "replayd.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "replayd.selectorLabels" -}}
app.kubernetes.io/name: {{ include "replayd.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "replayd.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "replayd.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/component: {{ .Values.mode }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Labels of the pods: those that the selectors want, and the user's. */}}
{{- define "replayd.podLabels" -}}
{{ include "replayd.selectorLabels" . }}
app.kubernetes.io/component: {{ .Values.mode }}
{{- with merge (dict) .Values.podLabels .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* A name of its own for the headless one: a Service cannot become headless when the mode changes. */}}
{{- define "replayd.service" -}}
{{ include "replayd.fullname" . }}{{ ternary "-shards" "" (eq .Values.mode "shards") }}
{{- end -}}

{{- define "replayd.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "replayd.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "replayd.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* N of a mode whose pods share the trace. */}}
{{- define "replayd.shards" -}}
{{- ternary .Values.job.shards .Values.shards.count (eq .Values.mode "job") | int -}}
{{- end -}}
