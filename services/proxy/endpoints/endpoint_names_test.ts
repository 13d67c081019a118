import { assertEquals, assertRejects } from "@std/assert";
import {
  type FoundAddresses,
  type KeepingResolver,
  LookupError,
} from "../../../net/names/resolver.ts";
import { FakeTimers } from "../../../tests/support/memory/fake_timers.ts";
import {
  ask,
  endpoints,
  ProxyRig,
  service,
} from "../../../tests/support/rigs/proxy_rig.ts";
import {
  EndpointNames,
  FRESH_MS_MIN,
  NAMES_MAX,
  NEWER_WITHIN_MS,
} from "./endpoint_names.ts";
import { MachineDialer } from "./endpoint_dialer.ts";

/** Answers as the test says, and counts. */
class Script implements KeepingResolver {
  asked = 0;
  answer: () => Promise<FoundAddresses> = () => found("10.0.0.1");

  find(_host: string): Promise<FoundAddresses> {
    this.asked++;
    return this.answer();
  }

  async lookup(host: string): Promise<readonly string[]> {
    return (await this.find(host)).addresses;
  }
}

const found = (address: string, freshForMs = 0): Promise<FoundAddresses> =>
  Promise.resolve({ addresses: [address], freshForMs, isLastAnswer: false });

function rig() {
  const timers = new FakeTimers();
  const script = new Script();
  return { timers, script, names: new EndpointNames(script, timers) };
}

Deno.test("a name is asked for once for as long as its records say, a second at least", async () => {
  const { timers, script, names } = rig();
  await Promise.all([names.lookup("a"), names.lookup("a")]);
  timers.advance(FRESH_MS_MIN - 1);
  assertEquals(await names.lookup("a"), ["10.0.0.1"]);
  assertEquals(script.asked, 1);
  script.answer = () => found("10.0.0.2", 20_000);
  timers.advance(1);
  assertEquals(await names.lookup("a"), ["10.0.0.2"]);
  timers.advance(19_999);
  assertEquals(await names.lookup("a"), ["10.0.0.2"]);
  assertEquals(script.asked, 2);
});

Deno.test("who knows the way does not wait for a resolver that is silent", async () => {
  const { timers, script, names } = rig();
  await names.lookup("a");
  const late = Promise.withResolvers<FoundAddresses>();
  script.answer = () => late.promise;
  timers.advance(FRESH_MS_MIN);
  const looking = names.lookup("a");
  timers.advance(NEWER_WITHIN_MS);
  assertEquals(await looking, ["10.0.0.1"]);
  assertEquals(await names.lookup("a"), ["10.0.0.1"], "at once");
  assertEquals(script.asked, 2);
  late.resolve(await found("10.0.0.2"));
  await late.promise;
  await Promise.resolve();
  assertEquals(await names.lookup("a"), ["10.0.0.2"]);
});

Deno.test("a resolver that fails leaves the last answer, one that knows better does not", async () => {
  const { timers, script, names } = rig();
  await names.lookup("a");
  script.answer = () => Promise.reject(new LookupError("a", "", "timeout"));
  timers.advance(FRESH_MS_MIN);
  assertEquals(await names.lookup("a"), ["10.0.0.1"]);
  script.answer = () => Promise.reject(new LookupError("a"));
  timers.advance(FRESH_MS_MIN);
  await assertRejects(() => names.lookup("a"), LookupError);
  await assertRejects(() => names.lookup("a"), LookupError);
  assertEquals(timers.pendingCount, 0);
});

Deno.test("only so many names are kept", async () => {
  const { script, names } = rig();
  for (let count = 0; count <= NAMES_MAX; count++) {
    await names.lookup(`${count}`);
  }
  await names.lookup("1");
  assertEquals(script.asked, NAMES_MAX + 1);
  await names.lookup("0");
  assertEquals(script.asked, NAMES_MAX + 2);
});

Deno.test("sixty connections to an endpoint by name ask for it once", async () => {
  const script = new Script();
  script.answer = () => found("127.0.0.1", 20_000);
  const resolver = new EndpointNames(script, new FakeTimers());
  await using rig = new ProxyRig({ dialer: new MachineDialer({ resolver }) });
  rig.sink.set({
    services: [service("web")],
    endpoints: [endpoints("web", [rig.echo()], { address: "web.test" })],
  });
  for (let count = 0; count < 60; count++) {
    const conn = await rig.connect("default/web");
    assertEquals(await ask(conn, "x"), "x");
    conn.close();
  }
  assertEquals(script.asked, 1);
});
