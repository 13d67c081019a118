{{- /* What the base says is said there alone; here it gets its values. */ -}}
{{- $files := list "state.yaml" "server.yaml" "agent/agent.yaml" -}}
{{- if .Values.monitoring }}{{ $files = append $files "monitoring/service_monitor.yaml" }}{{ end -}}
{{- range $name := $files }}
{{- $text := $.Files.Get $name
  | replace "image: tunnel\n" (printf "image: %s\n" $.Values.image)
  | replace "replicas: 2\n" (printf "replicas: %d\n" (int $.Values.replicas)) }}
{{- with $.Values.address }}
{{- $text = $text
  | replace "--server=tunnel-server.tunnel-state.svc:8091" (printf "--server=%s" .)
  | replace "--server-names=" (printf "--server-names=%s," (regexReplaceAll ":[0-9]+$" . "")) }}
{{- end }}
{{- /* The namespace; Secrets whose names begin so are called so everywhere. */ -}}
{{- $namespace := printf "%s${1}" $.Release.Namespace }}
{{- range regexReplaceAll "tunnel-state([^-])" $text $namespace | splitList "\n---\n" }}
{{- /* Helm makes the namespace. */ -}}
{{- if not (contains "kind: Namespace\n" .) }}
---
{{ . }}
{{- end }}
{{- end }}
{{- end }}
{{- /*
The key that encrypts the CA's: made once, and kept. One that is there already, and
not Helm's, is its reader's own. Nothing can replace it: all state would be lost.
*/ -}}
{{- $name := "tunnel-state-key" }}
{{- $key := lookup "v1" "Secret" .Release.Namespace $name }}
{{- $isOurs := or (not $key) (dig "metadata" "labels" "app.kubernetes.io/managed-by" "" $key) }}
{{- if and .Values.makeKey $isOurs }}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ $name }}
  namespace: {{ .Release.Namespace }}
  annotations: { helm.sh/resource-policy: keep }
immutable: true
data:
  state.key: {{ with $key }}{{ index .data "state.key" }}{{ else }}{{ randBytes 32 }}{{ end }}
{{- end }}
