import { assertEquals } from "@std/assert";
import type { Entry } from "../../../../neighbours/etcd/keys.ts";
import { EtcdEntries, REFUSED_MAX } from "./etcd_entries.ts";
import { tunnelLayout } from "./etcd_tunnel_layout.ts";

function entry(key: string, value: string, modRevision = 1n): Entry {
  return {
    key,
    value: new TextEncoder().encode(value),
    modRevision,
    lease: "0",
  };
}

function endpoint(id: number): Entry {
  const value = `{"address": "10.0.0.${id}", "port": 1}`;
  return entry(`/tunnel/endpoints/default/web/${id}`, value);
}

/** The keys of a change. */
function touched(entries: EtcdEntries) {
  const { services, endpoints } = entries.takeChange();
  return { services: [...services!.keys()], endpoints: [...endpoints!.keys()] };
}

Deno.test("keys beyond the limit are refused, and taken when there is room", () => {
  const lines: string[] = [];
  const entries = new EtcdEntries(
    tunnelLayout(),
    (line) => lines.push(line),
    2,
  );
  for (const id of [1, 2, 3]) entries.put(endpoint(id));
  assertEquals(entries.endpointsOf("default/web")?.length, 2);
  assertEquals(lines.length, 1);
  // Those that are there may change.
  entries.put(endpoint(2));
  entries.remove("/tunnel/endpoints/default/web/1");
  entries.put(endpoint(3));
  assertEquals(
    entries.endpointsOf("default/web")?.map((it) => it.address),
    ["10.0.0.2", "10.0.0.3"],
  );
  assertEquals(lines.length, 1);
});

Deno.test("each bad value is named once, and not without end", () => {
  const lines: string[] = [];
  const entries = new EtcdEntries(tunnelLayout(), (line) => lines.push(line));
  const bad = (i: number, revision: bigint) =>
    entry(`/tunnel/services/default/s${i}`, "?", revision);
  for (const revision of [1n, 1n, 2n]) entries.put(bad(0, revision));
  assertEquals(lines.length, 2, "once for each value");
  for (let i = 0; i < 2 * REFUSED_MAX; i++) entries.put(bad(i, 2n));
  assertEquals(lines.length, REFUSED_MAX + 1);
});

Deno.test("only what was touched need be said again", () => {
  const lines: string[] = [];
  const entries = new EtcdEntries(tunnelLayout(), (line) => lines.push(line));
  const port = '{"ports": [{"port": 80}]}';
  entries.put(entry("/tunnel/services/default/web", port));
  entries.put(entry("/tunnel/services/default/db", port));
  entries.put(endpoint(1));
  assertEquals(touched(entries), {
    services: ["default/web", "default/db"],
    endpoints: ["default/web"],
  });
  entries.remove("/tunnel/services/default/web");
  entries.remove("/tunnel/services/default/never");
  entries.remove("/tunnel/nonsense");
  assertEquals(touched(entries), {
    services: ["default/web"],
    endpoints: ["default/web"],
  }, "its endpoints' ports may have other names now");
  assertEquals(touched(entries), { services: [], endpoints: [] });
});
