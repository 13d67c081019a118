// deno-lint-ignore-file no-console -- a program that answers with a number.
/**
 * By how many bytes a process grows that makes and ends many sessions, for
 * `net/tls/openssl/secure_memory_slow_test.ts`: a process of its own, since other
 * tests beside it would be weighed, too.
 *
 * Usage: `deno run … tests/support/memory/secure_memory.ts CASE`
 *
 * @module
 */

import { assert } from "@std/assert";
import type { SecureContext } from "../../../net/tls/openssl/secure_context.ts";
import { SecureSession } from "../../../net/tls/openssl/secure_session.ts";
import { certificates } from "../certificates/certificates.ts";
import { clientContext, SecurePair, serverContext } from "./secure_pair.ts";
import { nextTurn } from "../watch/event_loop.ts";

/** So many times something that must leave nothing behind. */
interface MemoryCase {
  readonly rounds: number;
  once(): void;
}

const all = await certificates();
const material = { ...all.server, ca: all.ca };
const trusting = { material: { cert: "", key: "", ca: all.ca } };
const bytes = new Uint8Array(30_000);

function shake(client: SecureContext, server: SecureContext): SecurePair {
  const pair = new SecurePair(
    new SecureSession(client, { serverName: "localhost" }),
    new SecureSession(server),
  );
  pair.doHandshake();
  return pair;
}

function cases(): Readonly<Record<string, MemoryCase>> {
  const server = serverContext({ material });
  const good = clientContext(trusting);
  const asking = serverContext({
    material,
    role: { kind: "server", clientCertificate: "required" },
  });
  return {
    freed: {
      rounds: 4_000,
      once: () => {
        using pair = shake(good, server).connect();
        pair.client.session.write(bytes);
        pair.server.receive(pair.client);
      },
    },
    failed: {
      rounds: 2_000,
      once: () => {
        using pair = shake(good, asking);
        assert(pair.server.outcome instanceof Error);
      },
    },
    refused: {
      rounds: 4_000,
      once: () => {
        try {
          new SecureSession(good, { serverName: "x".repeat(300) });
          throw new TypeError("It began");
        } catch (error) {
          if (error instanceof TypeError) throw error;
        }
      },
    },
    contexts: {
      rounds: 2_000,
      once: () => void serverContext({ material }),
    },
  };
}

/** The collector tells of what is gone between turns of the event loop. */
async function repeat(rounds: number, once: () => void): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    once();
    if (round % 50 !== 0) continue;
    (globalThis as { gc?: () => void }).gc!();
    await nextTurn();
  }
}

async function growth({ rounds, once }: MemoryCase): Promise<number> {
  // What is kept for good is there after a third of them.
  await repeat(rounds / 3, once);
  const before = Deno.memoryUsage().rss;
  await repeat(rounds, once);
  return Deno.memoryUsage().rss - before;
}

if (import.meta.main) console.log(await growth(cases()[Deno.args[0]!]!));
