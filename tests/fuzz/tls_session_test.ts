/**
 * Garbage and changed records into sessions of either kind: they fail with an
 * error of TLS or want more, and the process lives on. In memory, because the
 * fuzzers beside this may open no library.
 */

import { assert } from "@std/assert";
import { certificates } from "../support/certificates/certificates.ts";
import { mutateBytes } from "./mutators.ts";
import { forAll, type Prng } from "../support/memory/prng.ts";
import { rawSsl } from "../support/peers/raw_ssl.ts";
import {
  clientContext,
  LIBSSL,
  type SecureEnd,
  type SecurePair,
  serverContext,
} from "../support/memory/secure_pair.ts";
import type { SecureContext } from "../../net/tls/openssl/secure_context.ts";
import { WANT_READ } from "../../net/tls/openssl/secure_session.ts";
import { SslError } from "../../net/tls/trust/ssl_error.ts";

const RUNS = 1_500;

const all = await certificates();
const raw = rawSsl();

/** What means something to TLS: records, messages, extensions, lengths. */
const DICTIONARY = [
  [0x16, 3, 1, 0, 0],
  [0x16, 3, 3, 0x40, 0],
  [0x17, 3, 3, 0xff, 0xff],
  [0x15, 3, 3, 0, 2, 1, 0],
  [0x15, 3, 3, 0, 2, 2, 0x28],
  [0x14, 3, 3, 0, 1, 1],
  [0, 0x10, 0, 5, 0, 3, 2, 0x68, 0x32],
  [0, 0, 0, 6, 0, 4, 0, 0, 1, 0xff],
  [0, 0x2b, 0, 3, 2, 3, 4],
  [0x18, 0, 0, 1, 0],
  [0x80, 0x2e, 1, 0, 2],
].map((bytes) => Uint8Array.from(bytes));

function contexts(): [SecureContext, SecureContext] {
  const material = { ...all.server, ca: all.ca };
  return [
    clientContext({
      material: { ...all.client, ca: all.ca },
      alpn: ["h2", "tunnel/1"],
    }, raw.library),
    serverContext({
      material,
      role: { kind: "server", clientCertificate: "required" },
      alpn: ["tunnel/1", "h2"],
    }, raw.library),
  ];
}

/** Feeds all of `input` in pieces, as far as the end goes along. */
function feed(end: SecureEnd, input: Uint8Array, prng: Prng): string {
  const into = new Uint8Array(20_000);
  let at = 0;
  try {
    for (;;) {
      if (end.outcome !== "complete" && end.shake()) {
        if (end.outcome instanceof Error) throw end.outcome;
      }
      const wantsRead = end.outcome === "complete"
        ? end.read(into) === WANT_READ
        : end.outcome === WANT_READ;
      if (!wantsRead || at === input.length) return "more";
      end.drain();
      const piece = input.subarray(at, at + 1 + prng.below(input.length));
      at += end.put(piece);
    }
  } catch (error) {
    if (!(error instanceof SslError)) throw error;
    end.drain();
    return error.code;
  }
}

function test(
  name: string,
  outcomesMin: number,
  once: (prng: Prng, pair: SecurePair) => string,
): void {
  Deno.test({
    name,
    ignore: LIBSSL === undefined,
    fn: async () => {
      const [client, server] = contexts();
      const outcomes = new Set<string>();
      await forAll(RUNS, (prng) => {
        raw.limitVersion(client, prng.below(2) === 0 ? 0x303 : 0x304);
        using pair = raw.pair(client, server);
        outcomes.add(once(prng, pair));
        assert(LIBSSL!.ERR_peek_last_error() === 0n, "an error is left behind");
      });
      // Else the changes lead nowhere.
      assert(outcomes.size >= outcomesMin, [...outcomes].join());
    },
  });
}

function changed(bytes: Uint8Array, prng: Prng): Uint8Array {
  const times = 1 + prng.below(4);
  let now = bytes;
  for (let time = 0; time < times; time++) {
    now = mutateBytes(now, DICTIONARY, prng);
  }
  return now.subarray(0, 60_000);
}

test("a server withstands changed hellos", 8, (prng, { client, server }) => {
  client.shake();
  server.shake();
  return feed(server, changed(client.drain(), prng), prng);
});

test(
  "a client withstands a server's changed first flight",
  8,
  (prng, { client, server }) => {
    client.shake();
    server.shake();
    server.takeFrom(client);
    server.shake();
    return feed(client, changed(server.drain(), prng), prng);
  },
);

test("a server withstands bytes of no kind", 3, (prng, { server }) => {
  const garbage = prng.bytes(5 + prng.below(2_000));
  if (prng.below(2) === 0) garbage.set([0x16, 3, 1, 0, 0x80]);
  server.shake();
  return feed(server, garbage, prng);
});

test("both withstand changed records behind the handshake", 3, (prng, pair) => {
  const [from, to] = prng.below(2) === 0
    ? [pair.client, pair.server]
    : [pair.server, pair.client];
  pair.connect();
  to.read(new Uint8Array(1));
  from.session.write(new Uint8Array(1 + prng.below(40_000)));
  return feed(to, changed(from.drain(), prng), prng);
});
