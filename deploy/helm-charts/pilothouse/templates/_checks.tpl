{{/* What no schema can say of the values, and what only the cluster knows. Renders nothing: it fails, or not. */}}
{{- define "pilothouse.checks" -}}
{{- include "pilothouse.checkElection" . -}}
{{- include "pilothouse.checkLabels" . -}}
{{- include "pilothouse.checkArguments" . -}}
{{- include "pilothouse.checkSelector" . -}}
{{- include "pilothouse.checkPlugins" . -}}
{{- include "pilothouse.checkOnlyHost" . -}}
{{- include "pilothouse.checkTakenOut" . -}}
{{- end }}

{{- define "pilothouse.checkElection" -}}
{{- if and (not .Values.leaderElection) (gt (int .Values.replicas) 1) -}}
{{- fail "several replicas need an election: set leaderElection to true or per-plugin, or replicas to 1" -}}
{{- end -}}
{{- end }}

{{/* The chart's own labels: a Pod with another one is found by no selector. */}}
{{- define "pilothouse.checkLabels" -}}
{{- $own := keys (include "pilothouse.labels" . | fromYaml) -}}
{{- $given := dict "podLabels" .Values.podLabels -}}
{{- range $name := list "serviceMonitor" "prometheusRule" "dashboard" -}}
{{- $_ := set $given (printf "%s.labels" $name) (get $.Values $name).labels -}}
{{- end -}}
{{- range $value, $labels := $given -}}
{{- range $label, $_ := $labels -}}
{{- if has $label $own -}}
{{- fail (printf "%s: the label %s is the chart's own" $value $label) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Arguments with which no host starts, and what the chart gives the host already, or relies on, with the value that says it. */}}
{{- define "pilothouse.checkArguments" -}}
{{- $own := dict
  "--plugins" "plugins" "--plugin-objects" "plugins" "--plugin-files" "pluginFiles"
  "--leader-elect" "leaderElection" "--leader-elect-lease-name" "fullnameOverride"
  "--cache-dir" "cache" "--concurrency" "concurrency" "--resync" "resync" "--call-memory" "callMemoryMebibytes"
  "--plugin-memory" "pluginMemoryMebibytes"
  "--log-level" "log.level" "--log-format" "log.format"
  "--watch-namespace" "watchNamespace" "--host-namespace" "the namespace of the release"
  "--health-address" "" "--metrics-address" "" -}}
{{- $others := list "--config" "--context" "--kubeconfig" "--leader-elect-lease-duration" "--leader-elect-renew-deadline"
  "--leader-elect-retry-period" "--request-timeout" "--watch-renewal" -}}
{{- $given := dict -}}
{{- $incomplete := "" -}}
{{- range .Values.extraArgs -}}
{{- if and $incomplete (not (hasPrefix "-" .)) -}}
{{- include "pilothouse.checkArgument" (list $incomplete .) -}}
{{- $_ := set $given $incomplete . -}}
{{- $incomplete = "" -}}
{{- else -}}
{{- with $incomplete -}}
{{- fail (printf "extraArgs: %s has no value" .) -}}
{{- end -}}
{{- $name := splitList "=" . | first -}}
{{- if hasKey $own $name -}}
{{- with get $own $name -}}
{{- fail (printf "extraArgs: the chart says %s to the host, by %s" $name .) -}}
{{- end -}}
{{- fail (printf "extraArgs: %s is the chart's own; probes and the Service go by it" $name) -}}
{{- end -}}
{{- if not (has $name $others) -}}
{{- fail (printf "extraArgs: with '%s' no host starts. More arguments can be %s" . (join ", " $others)) -}}
{{- end -}}
{{- if and (hasKey $given $name) (ne $name "--config") -}}
{{- fail (printf "extraArgs: %s is there twice" $name) -}}
{{- end -}}
{{- if eq . $name -}}
{{- $incomplete = $name -}}
{{- else -}}
{{- $value := trimPrefix (printf "%s=" $name) . -}}
{{- include "pilothouse.checkArgument" (list $name $value) -}}
{{- $_ := set $given $name $value -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with $incomplete -}}
{{- fail (printf "extraArgs: %s has no value" .) -}}
{{- end -}}
{{- $lease := get $given "--leader-elect-lease-duration" | default "15s" -}}
{{- $renew := get $given "--leader-elect-renew-deadline" | default "10s" -}}
{{- $retry := get $given "--leader-elect-retry-period" | default "2s" -}}
{{- $milliseconds := include "pilothouse.milliseconds" $renew | int64 -}}
{{- if ge $milliseconds (include "pilothouse.milliseconds" $lease | int64) -}}
{{- fail (printf "extraArgs: --leader-elect-renew-deadline, %s, has to be shorter than --leader-elect-lease-duration, %s" $renew $lease) -}}
{{- end -}}
{{- if gt (mul 2 (include "pilothouse.milliseconds" $retry | int64)) $milliseconds -}}
{{- fail (printf "extraArgs: --leader-elect-renew-deadline, %s, has to be at least twice --leader-elect-retry-period, %s" $renew $retry) -}}
{{- end -}}
{{- end }}

{{/* The value of one argument: a list of its name and the value. */}}
{{- define "pilothouse.checkArgument" -}}
{{- $name := first . -}}
{{- $value := last . -}}
{{- if not $value -}}
{{- fail (printf "extraArgs: %s has no value" $name) -}}
{{- end -}}
{{- if eq $name "--config" -}}
{{- if not (regexMatch `^[^=]+=.+$` $value) -}}
{{- fail (printf "extraArgs: --config is NAME=FILE, and not %s" $value) -}}
{{- end -}}
{{- else if not (has $name (list "--context" "--kubeconfig")) -}}
{{- if or (not (regexMatch `^([0-9]{1,9}h)?([0-9]{1,9}m)?([0-9]{1,9}s)?([0-9]{1,9}ms)?$` $value)) (not (regexMatch `[1-9]` $value)) -}}
{{- fail (printf "extraArgs: %s is a duration such as 500ms, 15s or 1h30m, and not %s" $name $value) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* A duration in milliseconds. */}}
{{- define "pilothouse.milliseconds" -}}
{{- $units := dict "h" 3600000 "m" 60000 "s" 1000 "ms" 1 -}}
{{- $sum := 0 -}}
{{- range $part := regexFindAll `[0-9]+(?:ms|[hms])` . -1 -}}
{{- $unit := regexFind `[hms]+$` $part -}}
{{- $sum = add $sum (mul (trimSuffix $unit $part | int64) (get $units $unit)) -}}
{{- end -}}
{{- $sum -}}
{{- end }}

{{/* Label matchers as in PromQL, each with a text in quotes. Anything else would make every alert unreadable to Prometheus, which then has none. */}}
{{- define "pilothouse.checkSelector" -}}
{{- $selector := .Values.prometheusRule.selector | default "" -}}
{{- $text := `(?:"(?:[^"\\[:cntrl:]]|\\[abfnrtv\\"])*"|'(?:[^'\\[:cntrl:]]|\\[abfnrtv\\'])*'|\x60[^\x60[:cntrl:]]*\x60)` -}}
{{- $matcher := printf ` *[a-zA-Z_][a-zA-Z0-9_]* *(?:=~|!~|!=|=) *%s *` $text -}}
{{- if and $selector (not (regexMatch (printf `^%s(?:,%s)*$` $matcher $matcher) $selector)) -}}
{{- fail (printf "prometheusRule.selector: label matchers are expected, such as job=\"pilothouse-metrics\",namespace=~\"operators|pilothouse\", and not %s" $selector) -}}
{{- end -}}
{{- range $given := regexFindAll $matcher $selector -1 -}}
{{- $given = trim $given -}}
{{- if regexMatch `^__name__\b` $given -}}
{{- fail "prometheusRule.selector: of which metric a series is each alert says itself, so no matcher can be about __name__" -}}
{{- end -}}
{{- if regexMatch `^\w+ *[=!]~` $given -}}
{{- $quoted := regexReplaceAll `^\w+ *[=!]~ *` $given "" -}}
{{- $expression := substr 1 (int (sub (len $quoted) 1)) $quoted -}}
{{- if not (hasPrefix "\x60" $quoted) -}}
{{- $expression = regexReplaceAll `\\(["'\\])` $expression "${1}" -}}
{{- end -}}
{{- $_ := mustRegexMatch $expression "" -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Each plugin has a name and an account of its own: by its name `pilothouse uninstall` finds what to delete, the account, too. */}}
{{- define "pilothouse.checkPlugins" -}}
{{- $accounts := dict (include "pilothouse.account" .) "" -}}
{{- $names := list -}}
{{- $preflight := "" -}}
{{- if .Values.preflight.enabled -}}
{{- $preflight = include "pilothouse.preflightName" . -}}
{{- if hasKey $accounts $preflight -}}
{{- fail (printf "serviceAccount.name: '%s' is the account of the preflight, which Helm deletes after it. Choose another one" $preflight) -}}
{{- end -}}
{{- end -}}
{{- range .Values.plugins -}}
{{- if has .name $names -}}
{{- fail (printf "plugins: '%s' is there twice" .name) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- if eq (printf "pilothouse-plugin-%s" .name) (include "pilothouse.name" $) -}}
{{- fail (printf "fullnameOverride: '%s' is the name of the rights of the plugin '%s'" (include "pilothouse.name" $) .name) -}}
{{- end -}}
{{- if eq (printf "pilothouse-plugin-%s" .name) $preflight -}}
{{- fail (printf "fullnameOverride: '%s' would be the name of the preflight and of the rights of the plugin '%s'" $preflight .name) -}}
{{- end -}}
{{- if and .source.directory (not $.Values.pluginFiles) -}}
{{- fail (printf "plugins: '%s' is a file, and the host has none. Say in pluginFiles which volume has it" .name) -}}
{{- end -}}
{{- if and .decorates (eq (dig "rollout" "strategy" "Immediate" .) "Canary") -}}
{{- fail (printf "plugins: '%s' decorates, and there is no canary of such a plugin: its objects have no conditions of its own. Leave rollout.strategy out" .name) -}}
{{- end -}}
{{- if ne (dig "account" "namespace" "Host" .) "Object" -}}
{{- $account := include "pilothouse.pluginAccount" . -}}
{{- if eq $account $preflight -}}
{{- fail (printf "plugins: '%s' is the account of the preflight, which Helm deletes after it. Choose another one for '%s'" $preflight .name) -}}
{{- end -}}
{{- if hasKey $accounts $account -}}
{{- $other := get $accounts $account -}}
{{- if $other -}}
{{- fail (printf "plugins: '%s' and '%s' have one account, '%s': it would have the rights of both, and go with the first that is uninstalled. Give each its own" $other .name $account) -}}
{{- end -}}
{{- fail (printf "plugins: the account '%s' of '%s' is the host's own" $account .name) -}}
{{- end -}}
{{- $_ := set $accounts $account .name -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* A Plugin is of the whole cluster, and so is its status: two hosts would write it in turn, without end. `lookup` finds nothing where no
cluster is asked, as by `helm template`. */}}
{{- define "pilothouse.checkOnlyHost" -}}
{{- if .Release.IsInstall -}}
{{- range (lookup "rbac.authorization.k8s.io/v1" "ClusterRoleBinding" "" "").items -}}
{{- $labels := .metadata.labels | default dict -}}
{{- if and (eq (get $labels "app.kubernetes.io/name") "pilothouse") (not (hasKey $labels "pilothouse.dev/component-of")) -}}
{{- $instance := get $labels "app.kubernetes.io/instance" -}}
{{- $namespace := (first (.subjects | default (list (dict)))).namespace | default "" -}}
{{- if or (ne $instance $.Release.Name) (ne $namespace $.Release.Namespace) -}}
{{- fail (printf "the release '%s' in the namespace '%s' is in this cluster already, and a cluster takes one host: Plugins are in no namespace, and two hosts would work on each of them. Add plugins to that release; a Plugin's namespaces says where it works. If that host is gone, delete what it left, such as the ClusterRoleBinding '%s'" $instance $namespace .metadata.name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* With a plugin that is not in the values any more Helm deletes its account and its rights at once. What only that account may take off the
plugin's objects would stay on them: finalizers, and what a decorator has set. */}}
{{- define "pilothouse.checkTakenOut" -}}
{{- if and .Release.IsUpgrade (.Capabilities.APIVersions.Has "pilothouse.dev/v1alpha1/Plugin") -}}
{{- $names := list -}}
{{- range .Values.plugins -}}{{- $names = append $names .name -}}{{- end -}}
{{- $takenOut := list -}}
{{- range (lookup "pilothouse.dev/v1alpha1" "Plugin" "" "").items -}}
{{- $annotations := .metadata.annotations | default dict -}}
{{- $release := printf "%s/%s" (get $annotations "meta.helm.sh/release-namespace") (get $annotations "meta.helm.sh/release-name") -}}
{{- $status := .status | default dict -}}
{{- if and (eq $release (printf "%s/%s" $.Release.Namespace $.Release.Name)) (not (has .metadata.name $names)) -}}
{{- $takenOut = append $takenOut .metadata.name -}}
{{- if or $status.decorates $status.finalizers -}}
{{- fail (printf "the plugin '%s' is not in the values any more. What it has set on its objects stays on them when its rights go: run `pilothouse uninstall %s` first, then this again" .metadata.name .metadata.name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- /* Asked only where it matters: who upgrades need not be allowed to read CRDs. */ -}}
{{- if $takenOut -}}
{{- $definition := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "plugins.pilothouse.dev" -}}
{{- range $version := dig "spec" "versions" list $definition -}}
{{- if eq $version.name "v1alpha1" -}}
{{- $declared := dig "schema" "openAPIV3Schema" "properties" "status" "properties" dict $version -}}
{{- range $field := list "decorates" "finalizers" -}}
{{- if not (hasKey $declared $field) -}}
{{- fail (printf "the plugin '%s' is not in the values any more, and whether it has set anything on its objects that stays there when its rights go cannot be known: the CRD of Plugin in this cluster, of another version, has no status.%s. Apply the CRD of this version first, then this again: `pilothouse crd | kubectl apply --server-side -f -`" (first $takenOut) $field) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}
