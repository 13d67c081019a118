import { assertEquals, assertMatch } from "@std/assert";
import { Program } from "../../../net/program/program.ts";
import { RecordedLog } from "../../../tests/support/watch/recorded_log.ts";
import { deadPort, service } from "../../../tests/support/rigs/proxy_rig.ts";
import { ScriptedSource } from "../../../tests/support/watch/scripted_source.ts";
import { PROXY_DEFAULTS } from "../defaults.ts";
import { ServiceProxy } from "../service_proxy.ts";

const at = (name: string, protocol: "tcp" | "udp", port: number) =>
  service(name, {
    ports: [{ name: "", port: 80, protocol, listen: { port } }],
  });

Deno.test("a proxy is ready when its sources are read and their ports open", async () => {
  const source = new ScriptedSource();
  const log = new RecordedLog();
  const proxy = new ServiceProxy({
    ...PROXY_DEFAULTS,
    addresses: { kind: "anywhere", host: "127.0.0.1" },
    sources: [source],
  }, new Program({ kind: "proxy", eventLines: [], access: undefined }, log));
  proxy.start();
  assertEquals(proxy.problem, "nothing is known yet of script");

  const port = deadPort();
  const taken = Deno.listen({ hostname: "127.0.0.1", port: deadPort() });
  source.sink.set({
    services: [
      at("dns", "udp", port),
      at("taken", "tcp", taken.addr.port),
      at("web", "tcp", port),
    ],
  });
  source.sink.synced();
  // A UDP socket takes a turn to open, and somebody else's port never does.
  assertEquals(proxy.problem, "not open yet: default/dns");
  await log.until(/^default\/dns is served on/);
  assertEquals(proxy.problem, undefined);
  assertEquals(proxy.notes.length, 1);
  assertMatch(
    proxy.notes[0]!,
    /^default\/taken: .*something listens there already/,
  );

  proxy.retire();
  source.sink.set({ services: [] });
  assertEquals(proxy.load, 0);
  taken.close();
  await proxy.stop(0);
});
