import { assert, assertEquals } from "@std/assert";
import { FakeEtcd } from "../../tests/support/peers/fake_etcd.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { recordedLog } from "../../tests/support/watch/recorded_log.ts";
import { RecordedSink } from "../../tests/support/watch/recorded_sink.ts";
import { DIRECT, type Endpoint } from "./model/model.ts";
import { Registration, type RegistrationOptions } from "./registration.ts";
import { EtcdSource } from "./sources/etcd/etcd.ts";
import { tunnelLayout } from "./sources/etcd/etcd_tunnel_layout.ts";

const WEB: Endpoint = {
  address: "10.0.0.7",
  ports: [{ name: "", port: 8080 }],
  state: "ready",
  weight: 1,
  via: DIRECT,
};

const API: Endpoint = {
  address: "fd00::7",
  ports: [{ name: "api", port: 1 }],
  state: "ready",
  weight: 7,
  node: "edge-7",
  zone: "north",
  via: { kind: "agent", agent: { key: "host", value: "edge-7" } },
};

type Registered = Pick<RegistrationOptions, "endpoints" | "servicePort">;

/** A registration that is held, and a client of the same cluster. */
async function registered(wanted: Registered) {
  const timers = new FakeTimers();
  const etcd = new FakeEtcd(timers);
  const random = () => 0;
  const client = etcd.client();
  const held = Promise.withResolvers<void>();
  const registration = new Registration({
    ...wanted,
    client,
    prefix: "/tunnel/",
    service: "default/web",
    ttlSeconds: 15,
    timers,
    random,
    onHeld: () => held.resolve(),
    onLost: () => {},
    onProblem: (error) => held.reject(error),
  });
  registration.start();
  await held.promise;
  return {
    etcd,
    timers,
    registration,
    async [Symbol.asyncDispose]() {
      await registration.stop();
      client[Symbol.dispose]();
    },
  };
}

Deno.test("what is registered is what a catalog finds", async () => {
  await using at = await registered({ endpoints: [WEB, API] });
  assertEquals(at.etcd.keys, [
    "/tunnel/endpoints/default/web/10.0.0.7:8080",
    "/tunnel/endpoints/default/web/[fd00::7]:1:api",
  ]);
  const sink = new RecordedSink();
  const { log, lines } = recordedLog();
  const source = new EtcdSource({
    client: at.etcd.client(),
    layout: tunnelLayout(),
    timers: at.timers,
    random: () => 0,
    log,
  });
  const synced = sink.next(/^synced$/);
  source.start(sink);
  await synced;
  assertEquals(sink.entries.endpoints.get("default/web"), [WEB, API]);
  assertEquals(lines, []);
  await source.stop();
});

Deno.test("endpoints come and go at once, the service stays", async () => {
  const servicePort = { name: "", port: 80, protocol: "udp" } as const;
  await using at = await registered({ endpoints: [WEB, API], servicePort });
  assertEquals(at.etcd.revision, 3, "one change for each");
  await at.registration.stop();
  assertEquals(at.etcd.keys, ["/tunnel/services/default/web"]);
});

Deno.test("a service that is there is left as it is", async () => {
  const servicePort = { name: "", port: 80, protocol: "tcp" } as const;
  await using first = await registered({ endpoints: [WEB], servicePort });
  const key = "/tunnel/services/default/web";
  using client = first.etcd.client();
  const before = await client.get(key);
  await using _second = await (async () => {
    const held = Promise.withResolvers<void>();
    const registration = new Registration({
      client: first.etcd.client(),
      prefix: "/tunnel/",
      service: "default/web",
      endpoints: [API],
      servicePort: { ...servicePort, port: 81 },
      ttlSeconds: 15,
      timers: first.timers,
      random: () => 0,
      onHeld: () => held.resolve(),
      onLost: () => {},
      onProblem: (error) => held.reject(error),
    });
    registration.start();
    await held.promise;
    return { [Symbol.asyncDispose]: () => registration.stop() };
  })();
  assertEquals(await client.get(key), before);
  assert(before !== undefined);
});
