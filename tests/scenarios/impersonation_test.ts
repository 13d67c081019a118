import { assertEquals } from "@std/assert";
import {
  type Attack,
  JOIN_ATTACKS,
  LINK_ATTACKS,
  Scene,
} from "../attacks/impersonation.ts";
import { IdentityNode } from "../support/rigs/identity_node.ts";
import { IdentityRig } from "../support/rigs/identity_rig.ts";

// Nobody speaks for a node that they are not: the whole table, by sockets.

async function attempt(attack: Attack, carrier: "streams" | "packets") {
  await using scene = await Scene.open();
  const { gotIn, reported } = await attack.run(scene, carrier);
  assertEquals(gotIn, false, attack.name);
  // What is not explained is a bug of another kind.
  assertEquals(/^Cannot |^tls|^the server/.test(reported), true, reported);
}

for (const carrier of ["streams", "packets"] as const) {
  for (const attack of LINK_ATTACKS) {
    Deno.test(`nobody links by ${attack.name} (${carrier})`, () =>
      attempt(attack, carrier));
  }
}

for (const attack of JOIN_ATTACKS) {
  Deno.test(`nobody gets in by ${attack.name}`, () =>
    attempt(attack, "streams"));
}

Deno.test("a name goes to one of many keys that ask for it at once", async () => {
  await using rig = await IdentityRig.open();
  const [place, token] = [await rig.place(), await rig.token({ uses: 8 })];
  const nodes = await Promise.all(
    Array.from({ length: 8 }, () => IdentityNode.make("same")),
  );
  await Promise.all(
    nodes.map((node) => node.join(place, token).catch(() => {})),
  );
  assertEquals(nodes.filter(({ cert }) => cert !== "").length, 1);
});

Deno.test("an honest node gets in by every way that the table closes to others", async () => {
  await using scene = await Scene.open();
  const { rig, victim } = scene;
  for (const carrier of ["streams", "packets"] as const) {
    await rig.link(victim, {
      carrier,
      identifiers: {
        host: ["victim", "10.9.9.9"],
        uid: ["victim"],
        ipv4: ["10.9.9.9"],
        ipv6: ["fd00::9"],
      },
    });
  }
  await victim.renew(await rig.place());
  await victim.renewByProof(await rig.place());
});
