{{- define "annals.name" -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "annals.selector" -}}
app.kubernetes.io/name: annals
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "annals.labels" -}}
{{ include "annals.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}
