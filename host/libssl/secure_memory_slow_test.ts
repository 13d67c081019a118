/**
 * What sessions and contexts take of the library's memory is given back, however
 * they end. The collector does not see that memory, so only the process's size
 * tells.
 */

import { assert } from "@std/assert";
import { certificates } from "../../tests/support/certificates.ts";
import {
  clientContext,
  LIBSSL,
  SecurePair,
  serverContext,
} from "../../tests/support/secure_pair.ts";
import type { SecureContext } from "./secure_context.ts";
import { SecureSession } from "./secure_session.ts";

const all = await certificates();
const material = { ...all.server, ca: all.ca };
const trusting = { material: { cert: "", key: "", ca: all.ca } };

/**
 * The collector's own heap moves by some 10 MiB. A session is 130 KiB and a
 * context 60: two thousand of the smaller are 120 MiB.
 */
const GROWTH_OCTETS_MAX = 32 << 20;

function test(name: string, rounds: number, once: () => void): void {
  Deno.test({
    name,
    ignore: LIBSSL === undefined,
    fn: async () => {
      // What is kept for good is there after a third of them.
      await repeat(rounds / 3, once);
      const before = await residentOctets();
      await repeat(rounds, once);
      const grown = await residentOctets() - before;
      assert(grown < GROWTH_OCTETS_MAX, `${grown} octets more`);
    },
  });
}

/** The collector tells of what is gone between turns of the event loop. */
async function repeat(rounds: number, once: () => void): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    once();
    if (round % 50 === 0) await new Promise((resolve) => setTimeout(resolve));
  }
}

/** After what makes the collector look, as nobody may ask it to. */
async function residentOctets(): Promise<number> {
  await repeat(500, () => void new ArrayBuffer(4 << 20));
  return Deno.memoryUsage().rss;
}

const octets = new Uint8Array(30_000);

function shake(client: SecureContext, server: SecureContext): SecurePair {
  const pair = new SecurePair(
    new SecureSession(client, { serverName: "localhost" }),
    new SecureSession(server),
  );
  pair.shakeHands();
  return pair;
}

if (LIBSSL !== undefined) {
  const server = serverContext({ material });
  const good = clientContext(trusting);
  const asking = serverContext({
    material,
    role: { kind: "server", clientCertificate: "required" },
  });
  test("sessions are given back when they are freed", 4_000, () => {
    using pair = shake(good, server).connect();
    pair.client.session.write(octets);
    pair.server.receive(pair.client);
  });
  test("so are those whose handshake failed", 2_000, () => {
    using pair = shake(good, asking);
    assert(pair.server.outcome instanceof Error);
  });
  test("and those that were not to begin", 4_000, () => {
    try {
      new SecureSession(good, { serverName: "x".repeat(300) });
      throw new TypeError("It began");
    } catch (error) {
      if (error instanceof TypeError) throw error;
    }
  });
  test("contexts go with the last who knows them", 2_000, () => {
    serverContext({ material });
    // Each is a hundred octets to the collector, which would wait for more.
    void new ArrayBuffer(1 << 20);
  });
}
