import { assertEquals } from "@std/assert";
import {
  type DiscoveryAttack,
  DiscoveryScene,
  HEARING_ATTACKS,
  REACHING_ATTACKS,
  tryToDial,
  tryToHear,
} from "../attacks/discovery_impersonation.ts";

// No node learns of, or reaches, what is another's: the whole table, by sockets.

/** TLS 1.3 tells a client that its certificate is none when it has gone on. */
const EXPLAINED =
  /^(?:default\/web:80|(?:The stream ended: [A-Z_]+ )?(?:Cannot |tls|the peer ))/;

async function attempt({ name, run }: DiscoveryAttack): Promise<void> {
  await using scene = await DiscoveryScene.open();
  const { gotIn, reported } = await run(scene);
  assertEquals(gotIn, false, `${name}: ${reported}`);
  // What is not explained is a bug of another kind.
  assertEquals(EXPLAINED.test(reported), true, `${name}: ${reported}`);
}

for (const attack of HEARING_ATTACKS) {
  Deno.test(`nobody learns of a hidden service by ${attack.name}`, () =>
    attempt(attack));
}

for (const attack of REACHING_ATTACKS) {
  Deno.test(`nobody reaches ${attack.name}`, () => attempt(attack));
}

Deno.test("an honest node learns of and reaches what the tables close to others", async () => {
  await using scene = await DiscoveryScene.open();
  const { thief, victim, ports } = scene;
  const hear = async (id: string, fields = {}) =>
    await tryToHear(scene, { id, fields, pair: await thief.pair() });
  for (const id of ["thief", "thief/envoy", "thief~envoy"]) {
    assertEquals((await hear(id)).reported, "default/web:80");
  }
  const relayed = await hear("victim", { "tunnel-relay": "1" });
  assertEquals(relayed.reported, "default/web:80");
  const dial = { address: `127.0.0.1:${ports.web}`, node: "id=victim" };
  assertEquals(await tryToDial(scene, thief, dial), {
    gotIn: true,
    reported: "connected",
  });
  const secret = { ...dial, address: `127.0.0.1:${ports.secret}` };
  assertEquals((await tryToDial(scene, victim, secret)).gotIn, true);
});
