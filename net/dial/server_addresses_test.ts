import { FAILED_MS, REFUSED_MS } from "./attempt_order.ts";
import { assertEquals, assertRejects } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { ConnectError } from "./server_connect.ts";
import { LookupError } from "../names/resolver.ts";
import {
  ADDRESSES_PER_NAME_MAX,
  NoServerError,
  type ResolvedServer,
  type ServerAddress,
  ServerAddresses,
} from "./server_addresses.ts";

const A = { host: "a", port: 1 };
const B = { host: "b", port: 2 };

/** Names that the test may change, and places that do not answer. */
class World {
  readonly timers = new FakeTimers();
  readonly names = new Map<string, readonly string[]>([
    ["a", ["10.0.0.1"]],
    ["b", ["10.0.0.2"]],
  ]);
  readonly down = new Set<string>();
  readonly tried: string[] = [];
  lookups = 0;

  servers(
    addresses: readonly ServerAddress[],
    isProxied = false,
  ): ServerAddresses {
    return new ServerAddresses({
      addresses,
      clock: this.timers,
      isProxied: () => isProxied,
      resolver: {
        lookup: (host) => {
          this.lookups++;
          const found = this.names.get(host);
          return found === undefined
            ? Promise.reject(new LookupError(host))
            : Promise.resolve(found);
        },
      },
    });
  }

  /** One attempt. @returns Who was tried, in order. */
  async attempt(servers: ServerAddresses): Promise<string> {
    this.tried.length = 0;
    await servers.connect(this.connect).catch((error) => {
      if (!(error instanceof NoServerError)) throw error;
    });
    return this.tried.join(" ");
  }

  readonly connect = ({ host, ip }: ResolvedServer): Promise<void> => {
    const place = ip ?? host;
    this.tried.push(place);
    return this.down.has(place)
      ? Promise.reject(new ConnectError(`no answer of ${place}`))
      : Promise.resolve();
  };
}

Deno.test("each attempt begins with the server whose turn it is", async () => {
  const world = new World();
  const servers = world.servers([A, B]);
  assertEquals(await world.attempt(servers), "10.0.0.1");
  assertEquals(await world.attempt(servers), "10.0.0.2");
  assertEquals(await world.attempt(servers), "10.0.0.1");
});

Deno.test("a server that is down costs one try, and gets another chance", async () => {
  const world = new World();
  const servers = world.servers([A, B]);
  world.down.add("10.0.0.1");
  assertEquals(await world.attempt(servers), "10.0.0.1 10.0.0.2");
  assertEquals(await world.attempt(servers), "10.0.0.2");
  assertEquals(await world.attempt(servers), "10.0.0.2");
  world.down.delete("10.0.0.1");
  world.timers.advance(FAILED_MS);
  assertEquals(await world.attempt(servers), "10.0.0.1");
});

Deno.test("a name is resolved for each attempt", async () => {
  const world = new World();
  const servers = world.servers([A]);
  assertEquals(await world.attempt(servers), "10.0.0.1");
  world.names.set("a", ["10.9.9.9"]);
  assertEquals(await world.attempt(servers), "10.9.9.9");
});

Deno.test("machines behind one name take turns, families too", async () => {
  const world = new World();
  world.names.set("a", ["10.0.0.1", "10.0.0.2", "fd00::1"]);
  const servers = world.servers([A]);
  world.down.add("10.0.0.1").add("fd00::1").add("10.0.0.2");
  assertEquals(await world.attempt(servers), "10.0.0.1 fd00::1 10.0.0.2");
  world.names.set("a", Array.from({ length: 99 }, (_, i) => `10.1.0.${i}`));
  await world.attempt(servers);
  assertEquals(world.tried.length, 1);
  for (let i = 0; i < 99; i++) world.down.add(`10.1.0.${i}`);
  await world.attempt(servers);
  assertEquals(world.tried.length, ADDRESSES_PER_NAME_MAX);
});

Deno.test("a name that nobody knows does not keep from the others", async () => {
  const world = new World();
  const servers = world.servers([{ host: "gone", port: 1 }, B]);
  assertEquals(await world.attempt(servers), "10.0.0.2");
});

Deno.test("a proxy resolves names itself", async () => {
  const world = new World();
  const servers = world.servers([A], true);
  assertEquals(await world.attempt(servers), "a");
  assertEquals(world.lookups, 0);
});

Deno.test("when nobody answers, every reason is reported once", async () => {
  const world = new World();
  world.down.add("10.0.0.1").add("10.0.0.2");
  const servers = world.servers([A, B, A]);
  const error = await assertRejects(
    () => servers.connect(world.connect),
    NoServerError,
  );
  assertEquals(error.message, "no answer of 10.0.0.1; no answer of 10.0.0.2");
});

Deno.test("an answer that is a refusal is not taken elsewhere", async () => {
  const world = new World();
  const servers = world.servers([A, B]);
  let tries = 0;
  await assertRejects(
    () =>
      servers.connect(() => {
        tries++;
        return Promise.reject(new RangeError("refused"));
      }),
    RangeError,
  );
  assertEquals(tries, 1);
});

Deno.test("what is so at several addresses is said once, and each address once", () => {
  const errors = [
    "Cannot connect to a:1 (10.0.0.1): connection refused; is it there?",
    "Cannot connect to a:1 (10.0.0.2): connection refused; is it there?",
    "Cannot connect to b:2: connection refused; is it there?",
    "Cannot connect to a:1 (10.0.0.1): connection refused; is it there?",
    "Cannot connect to c:3: no route to host",
    "Cannot connect to c:3 with TLS: the server's certificate has expired",
  ].map((message) => new ConnectError(message));
  assertEquals(
    new NoServerError(errors).message,
    "Cannot connect to a:1 (10.0.0.1, 10.0.0.2), b:2: connection refused; is " +
      "it there?; Cannot connect to c:3: no route to host; Cannot connect to " +
      "c:3 with TLS: the server's certificate has expired",
  );
});

Deno.test("a server that was just started again is no longer the last", async () => {
  const world = new World();
  const servers = world.servers([A, B]);
  const refused = Object.assign(new Error(), { code: "ECONNREFUSED" });
  await servers.connect(({ ip }) =>
    ip === "10.0.0.1"
      ? Promise.reject(new ConnectError("refused", { cause: refused }))
      : Promise.resolve()
  );
  assertEquals(await world.attempt(servers), "10.0.0.2");
  world.timers.advance(REFUSED_MS);
  // The other one is going, and turns us away: it is not asked again first.
  assertEquals(await world.attempt(servers), "10.0.0.1");
});
