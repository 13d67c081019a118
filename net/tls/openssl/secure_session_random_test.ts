/**
 * Two sessions in any order of what can be done with them, beside a model that
 * knows only what was written: what arrives is that, in order, once.
 */

import { assert, assertEquals } from "@std/assert";
import { certificates } from "../../../tests/support/certificates/certificates.ts";
import { forAll, Prng } from "../../../tests/support/memory/prng.ts";
import { rawSsl } from "../../../tests/support/peers/raw_ssl.ts";
import {
  clientContext,
  LIBSSL,
  type SecureEnd,
  serverContext,
} from "../../../tests/support/memory/secure_pair.ts";

const all = await certificates();
const script = new Uint8Array(new Prng(9).bytes(1 << 20));
const SIZES = [1, 2, 100, 16_383, 16_384, 16_385, 65_536, 200_000];
const STEPS = [1, 5, 21, 1_000, 16_406, 100_000];

/** One direction. */
interface Way {
  readonly from: SecureEnd;
  readonly to: SecureEnd;
  written: number;
  received: number;
  hasEnded: boolean;
  isEndReceived: boolean;
}

function way(from: SecureEnd, to: SecureEnd): Way {
  const counts = { written: 0, received: 0 };
  return { from, to, ...counts, hasEnded: false, isEndReceived: false };
}

Deno.test({
  name: "any order of reads, writes, new keys and goodbyes loses nothing",
  ignore: LIBSSL === undefined,
  fn: () =>
    forAll(60, (prng) => {
      const raw = rawSsl();
      const client = clientContext({
        material: { cert: "", key: "", ca: all.ca },
      }, raw.library);
      const isOld = prng.below(3) === 0;
      if (isOld) raw.limitVersion(client, 0x303);
      const server = serverContext({
        material: { ...all.server, ca: all.ca },
      }, raw.library);
      using pair = raw.pair(client, server).connect();
      const ways = [
        way(pair.client, pair.server),
        way(pair.server, pair.client),
      ];
      for (const { from } of ways) from.read(new Uint8Array(1));
      let updates = 0;
      for (let step = 0; step < 150; step++) {
        const one = prng.pick(ways);
        switch (prng.below(40)) {
          case 0:
            if (one.from.session.output.length > 0) break;
            one.hasEnded = true;
            assertEquals(one.from.session.end(), true);
            break;
          case 1:
            if (isOld || one.hasEnded || updates++ >= 8) break;
            raw.updateKeys(one.from.session);
            break;
          default:
            if (prng.below(2) === 0) write(one, prng);
            else hear(one, prng);
        }
      }
      finish(ways, prng);
    }),
});

function write(one: Way, prng: Prng): void {
  const { session } = one.from;
  // As its user must: behind a goodbye nothing, and nothing onto what waits.
  if (one.hasEnded || session.output.length > 0) return;
  const length = prng.pick(SIZES);
  const piece = script.subarray(one.written, one.written + length);
  if (piece.length === 0) return;
  const taken = session.write(piece);
  assert(taken > 0 && taken <= piece.length, `it took ${taken}`);
  one.written += taken;
}

/** @returns Whether anything moved. */
function hear(one: Way, prng: Prng): boolean {
  const moved = one.to.takeFrom(one.from, prng.pick(STEPS));
  const into = new Uint8Array(prng.pick(SIZES));
  for (let isFirst = true;; isFirst = false) {
    const count = one.to.read(into);
    if (count === 0) one.isEndReceived = true;
    if (count <= 0) return moved > 0 || !isFirst;
    const expected = script.slice(one.received, one.received + count);
    assertEquals(into.slice(0, count), expected);
    one.received += count;
  }
}

function finish(ways: readonly Way[], prng: Prng): void {
  for (let isMoving = true; isMoving;) {
    isMoving = false;
    for (const one of ways) isMoving = hear(one, prng) || isMoving;
  }
  for (const { written, received, hasEnded, isEndReceived } of ways) {
    assertEquals(received, written);
    assertEquals(isEndReceived, hasEnded);
  }
  assertEquals(LIBSSL!.ERR_peek_last_error(), 0n, "nothing is left behind");
}
