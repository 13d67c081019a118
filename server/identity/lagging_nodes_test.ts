import { assert, assertEquals } from "@std/assert";
import { certificateFacts } from "../../platform/pki/certificate.ts";
import { generateKeyPair } from "../../platform/pki/key_pair.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { NO_IDENTIFIERS } from "../../proto/peer/identifiers.ts";
import type { LinkPeer } from "../../proto/link/link.ts";
import {
  MemoryPlace,
  MemoryStore,
} from "../../tests/support/memory/memory_store.ts";
import { createState } from "../state/open_state.ts";
import { RemoteStore } from "../../neighbours/store/remote_store.ts";
import { createAuthorities, loadAuthorities } from "./authorities.ts";
import { nodeAuthorizer } from "./node_authorizer.ts";
import { issueNodeCertificate } from "./leaf_certificates.ts";
import { NodeStore } from "./node_store.ts";

// A node may be faster at a second server than the word of it.

async function rig() {
  const place = new MemoryPlace();
  const engine = await RemoteStore.open({
    store: new MemoryStore(place),
    timers: systemTimers,
    wallClock: Date.now,
    random: () => 0,
    warn: () => {},
  });
  await createState(engine, createAuthorities);
  const authorities = await loadAuthorities(engine);
  const { publicKey } = await generateKeyPair();
  const { pem } = await issueNodeCertificate(
    authorities,
    "gw",
    publicKey,
    Date.now(),
    3600_000,
  );
  const { x509, publicKeySha256 } = certificateFacts(pem);
  const identity = {
    kind: "certificate",
    commonName: "node:gw",
    certificate: { der: new Uint8Array(x509.raw), publicKeySha256 },
  };
  const subject = /CN=(.*)/.exec(x509.subject)![1]!;
  const peer = {
    identity: { ...identity, commonName: subject },
    agentId: "gw",
    identifiers: NO_IDENTIFIERS,
  } as unknown as LinkPeer;
  const nodes = new NodeStore(engine);
  const authorizer = nodeAuthorizer({
    nodes,
    authorities: () => authorities,
    trustsOthers: false,
    log: { error: () => {} },
    grants: () => NO_IDENTIFIERS,
    admitted: new WeakMap(),
  });
  const decide = () => authorizer({ peer, token: "" });
  /** Another server writes it, and nobody has told this one. */
  const write = (state: string) =>
    place.records.set("nodes/gw.json", {
      version: `${++place.version}`,
      text: JSON.stringify({
        ...{ name: "gw", state, publicKeySha256, identifiers: "" },
        ...{ joinedAt: "2030", tokenId: "t", joinedFrom: "10.0.0.1" },
      }),
    });
  return { place, engine, decide, write };
}

Deno.test("a node that joined or was approved elsewhere just now is asked about", async () => {
  const { place, engine, decide, write } = await rig();
  const unknown = await decide();
  assert(unknown?.admitted === false, JSON.stringify(unknown));
  write("pending");
  const pending = await decide();
  assert(pending?.admitted === false, JSON.stringify(pending));
  write("approved");
  assertEquals(await decide(), { admitted: true });
  // Who is known is not asked about: the answer comes at once.
  const known = decide();
  assert(!(known instanceof Promise));
  assertEquals(known, { admitted: true });
  place.leave();
  assertEquals(decide(), { admitted: true });
  await engine.close();
});

Deno.test("who is unknown while the state is away is refused, and not forgotten for it", async () => {
  const { place, engine, decide, write } = await rig();
  write("approved");
  place.leave();
  const refused = await decide();
  assert(refused?.admitted === false, JSON.stringify(refused));
  place.comeBack();
  assertEquals(await decide(), { admitted: true });
  await engine.close();
});
