import { assertEquals } from "@std/assert";
import {
  changeOf,
  endpointsOf,
  serviceOf,
} from "../../tests/support/watch/scripted_source.ts";
import { SourceEntries } from "./changes.ts";
import {
  CATALOG_ENDPOINTS_MAX,
  ENDPOINTS_PER_SERVICE_MAX,
  SERVICES_MAX,
} from "./model/validate.ts";

Deno.test("a source with too many services keeps those that it had first", () => {
  const entries = new SourceEntries();
  const services = Array.from(
    { length: SERVICES_MAX + 2 },
    (_, i) => serviceOf(`s${i}`),
  );
  const { refused } = entries.set({ services });
  assertEquals([entries.services.size, refused.length], [SERVICES_MAX, 2]);
  entries.change({ services: new Map([["default/s0", undefined]]) });
  assertEquals(
    entries.change(changeOf({ services: services.slice(-1) })).refused,
    [],
  );
});

Deno.test("a source with too many endpoints has none of the one too many", () => {
  const entries = new SourceEntries();
  const addresses = Array(ENDPOINTS_PER_SERVICE_MAX).fill("10.0.0.1:80");
  const { endpoints } = endpointsOf("a", ...addresses);
  const services = CATALOG_ENDPOINTS_MAX / ENDPOINTS_PER_SERVICE_MAX;
  for (let i = 0; i < services; i++) {
    const outcome = entries.change(changeOf({
      endpoints: [{ service: `default/s${i}`, endpoints }],
    }));
    assertEquals(outcome.refused, []);
  }
  const more = [endpointsOf("more", "10.0.0.1:80")];
  assertEquals(entries.change(changeOf({ endpoints: more })).refused.length, 1);
  entries.change(changeOf({ endpoints: [endpointsOf("s0")] }));
  assertEquals(entries.change(changeOf({ endpoints: more })).refused, []);
  assertEquals(
    entries.endpointCount,
    CATALOG_ENDPOINTS_MAX - ENDPOINTS_PER_SERVICE_MAX + 1,
  );
});
