{{/* The name of all objects. A Service has to be named by it, too: a letter first, no dot, and no dash at the end. */}}
{{- define "pilothouse.name" -}}
{{- $name := .Release.Name | replace "." "-" -}}
{{- if .Values.fullnameOverride -}}
{{- $name = .Values.fullnameOverride -}}
{{- else if not (contains .Chart.Name .Release.Name) -}}
{{- $name = printf "%s-%s" $name .Chart.Name -}}
{{- end -}}
{{- if not (regexMatch "^[a-z]" $name) -}}
{{- $name = printf "%s-%s" .Chart.Name $name -}}
{{- end -}}
{{- $name | trunc 40 | trimAll "-" -}}
{{- end }}

{{/* The labels by which the host's Pods are selected. They never change. */}}
{{- define "pilothouse.selector" -}}
app.kubernetes.io/name: pilothouse
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* The labels of all objects. */}}
{{- define "pilothouse.labels" -}}
{{ include "pilothouse.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* The host's service account. */}}
{{- define "pilothouse.account" -}}
{{- .Values.serviceAccount.name | default (include "pilothouse.name" .) -}}
{{- end }}

{{/* The name of the preflight and of its account, which Helm deletes after it. */}}
{{- define "pilothouse.preflightName" -}}
{{- printf "%s-preflight" (include "pilothouse.name" .) -}}
{{- end }}

{{- define "pilothouse.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end }}

{{/* The Secrets that the host may read: a JSON list. */}}
{{- define "pilothouse.registrySecrets" -}}
{{- $names := .Values.registrySecrets | default list -}}
{{- range .Values.plugins -}}
{{- with .source.oci -}}{{- with .pullSecretName -}}{{- $names = append $names . -}}{{- end -}}{{- end -}}
{{- end -}}
{{- $names | uniq | toJson -}}
{{- end }}

{{/* The labels of what is made for a plugin: `pilothouse uninstall` finds it by the last one. */}}
{{- define "pilothouse.pluginLabels" -}}
{{ include "pilothouse.labels" .root }}
pilothouse.dev/component-of: {{ .plugin.name | quote }}
{{- end }}

{{/* The account of a plugin. */}}
{{- define "pilothouse.pluginAccount" -}}
{{- dig "account" "name" "" . | default (printf "pilothouse-plugin-%s" .name) -}}
{{- end }}

{{/* Whether the host may act as the accounts of plugins for the requests that they need alone. Kubernetes constrains that from 1.36 on, unless it
is told not to. */}}
{{- define "pilothouse.isConstrained" -}}
{{- $how := .Values.impersonation | default "Auto" -}}
{{- if eq $how "Auto" -}}
{{- semverCompare ">=1.36-0" .Capabilities.KubeVersion.Version -}}
{{- else -}}
{{- eq $how "Constrained" -}}
{{- end -}}
{{- end }}

{{/* What an account may do is asked in its own name, and that is a request about no namespace. */}}
{{- define "pilothouse.reviewRule" -}}
- apiGroups: [authorization.k8s.io]
  resources: [selfsubjectaccessreviews]
  verbs: ["impersonate-on:serviceaccount:create"]
{{- end }}

{{/* Which series are those of this release. */}}
{{- define "pilothouse.series" -}}
{{- if .Values.prometheusRule.selector -}}
{{- .Values.prometheusRule.selector -}}
{{- else -}}
{{- printf "namespace=%q,job=%q" .Release.Namespace (printf "%s-metrics" (include "pilothouse.name" .)) -}}
{{- end -}}
{{- end }}
