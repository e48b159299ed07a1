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
app.kubernetes.io/name: {{ include "replayd.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "replayd.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace -}}
{{- end -}}

{{/* The metadata of an object, from a list of the context and what differs from the usual: name, namespace, labels, annotations. A label
or annotation that comes twice is written once: the chart's own, or else that of the object, or else the one of all objects. */}}
{{- define "replayd.metadata" -}}
{{- $ := index . 0 -}}
{{- $object := index . 1 -}}
{{- $own := include "replayd.selectorLabels" $ | fromYaml -}}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" $.Chart.Name $.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") -}}
{{- $_ := set $own "app.kubernetes.io/version" $.Chart.AppVersion -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" $.Release.Service -}}
{{- $_ := set $own "app.kubernetes.io/component" $.Values.mode -}}
name: {{ $object.name | default (include "replayd.fullname" $) }}
namespace: {{ $object.namespace | default (include "replayd.namespace" $) }}
labels: {{- merge $own ($object.labels | default dict) ($.Values.commonLabels | default dict) | toYaml | nindent 2 }}
{{- with merge (dict) ($object.annotations | default dict) ($.Values.commonAnnotations | default dict) }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Labels of the pods: those that the selectors want, and the user's. */}}
{{- define "replayd.podLabels" -}}
{{- $own := include "replayd.selectorLabels" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/component" .Values.mode -}}
{{- merge $own (.Values.podLabels | default dict) (.Values.commonLabels | default dict) | toYaml -}}
{{- end -}}

{{/* A name of its own for the headless one: a Service cannot become headless when the mode changes. */}}
{{- define "replayd.service" -}}
{{ include "replayd.fullname" . }}{{ ternary "-shards" "" (eq .Values.mode "shards") }}
{{- end -}}

{{- define "replayd.servicePort" -}}
{{- .Values.service.port | default .Values.port -}}
{{- end -}}

{{- define "replayd.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "replayd.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* A registry takes the place of the repository's own, which has a dot or a colon. */}}
{{- define "replayd.image" -}}
{{- with .Values.image -}}
{{- $repository := required "image.repository: want the image that you built and pushed, such as registry.example.com/replayd" .repository -}}
{{- with $.Values.global.imageRegistry | default .registry -}}
{{- $repository = regexReplaceAll "^([^/]*[.:][^/]*/|localhost/)?" $repository (printf "%s/" .) -}}
{{- end -}}
{{- if .digest -}}
{{ $repository }}@{{ .digest }}
{{- else -}}
{{ $repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* N of a mode whose pods share the trace. */}}
{{- define "replayd.shards" -}}
{{- ternary .Values.job.shards .Values.shards.count (eq .Values.mode "job") | int -}}
{{- end -}}

{{- /* replayd.ofHistograms: a file of rules or a dashboard, by a list of the root and the path; the native one where that is wanted and there is one */}}
{{- define "replayd.ofHistograms" }}
{{- $root := first . }}{{- $path := last . }}
{{- $native := replace "files/" "files/native/" $path }}
{{- $root.Files.Get (ternary $native $path (and (eq $root.Values.histograms "native") (not (empty ($root.Files.Get $native))))) }}
{{- end }}
