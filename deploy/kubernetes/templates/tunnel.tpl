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
{{- range $text | replace "tunnel-state" $.Release.Namespace | splitList "\n---\n" }}
{{- /* Helm makes the namespace. */ -}}
{{- if not (contains "kind: Namespace\n" .) }}
---
{{ . }}
{{- end }}
{{- end }}
{{- end }}
