import { assertStringIncludes } from "@std/assert";
import { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import {
  endpointsOf,
  ScriptedSource,
  serviceOf,
} from "../../tests/support/watch/scripted_source.ts";
import { Catalog } from "./catalog.ts";
import { registerCatalogMetrics } from "./catalog_metrics.ts";

Deno.test("a scrape shows what each source has, and what went wrong", () => {
  const source = new ScriptedSource("file");
  const catalog = new Catalog({
    sources: [source],
    log: new RecordedLog(),
    timers: new FakeTimers(),
    random: () => 0,
  });
  catalog.start();
  const registry = new MetricRegistry();
  registerCatalogMetrics(registry, catalog);
  source.sink.set({
    services: [serviceOf("a"), serviceOf("b", 0)],
    endpoints: [endpointsOf("a", "10.0.0.1:80", "10.0.0.2:80")],
  });
  source.sink.refused("/tunnel/x of etcd: it is no JSON");
  source.sink.synced();
  source.sink.repair({ services: [] });
  source.sink.failed("Cannot use it: gone");
  const text = registry.expose();
  const lines = [
    "tunnel_catalog_version 2",
    "tunnel_catalog_services 0",
    'tunnel_catalog_source_services{source="file"} 0',
    'tunnel_catalog_source_endpoints{source="file"} 2',
    'tunnel_catalog_source_up{source="file"} 0',
    'tunnel_catalog_source_changes_total{source="file"} 3',
    'tunnel_catalog_source_refused_total{source="file"} 2',
    'tunnel_catalog_source_failures_total{source="file"} 1',
    'tunnel_catalog_source_drift_repaired_total{source="file"} 1',
  ];
  for (const line of lines) assertStringIncludes(text, `\n${line}\n`);
  source.sink.synced();
  assertStringIncludes(registry.expose(), '_up{source="file"} 1\n');
});
