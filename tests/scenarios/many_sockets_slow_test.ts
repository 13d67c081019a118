/**
 * Thousands of connections that come and go at random through an echo: each has
 * its bytes back, and nothing of any is left. In a program of its own, because
 * it counts the descriptors of the whole process.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { acceptLoop } from "../../net/bind/accept_loop.ts";
import { conduitOf } from "../../net/stream/stream_conduit.ts";
import { sharedPoller } from "../../net/poll/poller.ts";
import { connectToAddress } from "../../net/stream/socket_connect.ts";
import { listenOnAddress } from "../../net/bind/socket_listener.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import { ConduitProbe, settled } from "../support/memory/conduit_probe.ts";
import { Prng } from "../support/memory/prng.ts";
import { WAKEUPS } from "../support/memory/socket_kinds.ts";
import { mustEnd } from "../support/program/run.ts";
import { Trouble } from "../support/memory/trouble.ts";

const CONNECTIONS = 5_000;
/** At a time. Each has both its ends in this process. */
const AT_ONCE = 400;
/** Crowds of which one has to leave nothing. */
const ROUNDS = 3;
const NEVER = new AbortController().signal;
const LOOPBACK = { hostname: "127.0.0.1", port: 0 };

/** Gives back what it gets, until that ends. */
function echo(conduit: Conduit): void {
  const probe = new ConduitProbe(conduit);
  let answered = 0;
  const answer = () => {
    probe.send(probe.bytes.slice(answered));
    answered = probe.receivedBytes;
  };
  const next = () =>
    void probe.received(answered + 1).then(() => {
      answer();
      if (!probe.hasEnded) next();
    });
  next();
  void probe.ended.then(() => {
    if (probe.receivedBytes > answered) answer();
    probe.finish();
  });
}

/** One connection: some bytes, and an end of one kind or the other. */
async function visit(port: number, prng: Prng): Promise<void> {
  const to = { hostname: "127.0.0.1", port };
  const probe = new ConduitProbe(conduitOf(await connectToAddress(to, NEVER)));
  const bytes = prng.bytes(
    1 + prng.below(prng.below(20) === 0 ? 40_000 : 300),
  );
  probe.send(bytes);
  const isRude = prng.below(5) === 0;
  if (isRude && prng.below(2) === 0) await settled();
  else await probe.received(bytes.length);
  if (isRude) probe.reset("gone");
  else probe.finish();
  const end = await probe.closed;
  assertEquals(end.kind, isRude ? "reset" : "clean");
  if (!isRude) assert(probe.bytes.every((byte, at) => byte === bytes[at]));
}

async function crowd(seed: number): Promise<void> {
  const prng = new Prng(seed);
  const listener = listenOnAddress(LOOPBACK, 1_024);
  const trouble = new Trouble();
  const accepting = acceptLoop(listener, "the echo", {
    onConnection: (socket) => echo(conduitOf(socket)),
    onProblem: trouble.report,
  });
  let left = CONNECTIONS;
  const visitor = async () => {
    while (left-- > 0) await visit(listener.address.port, prng);
  };
  await trouble.instead(
    Promise.all(Array.from({ length: AT_ONCE }, visitor)),
  );
  listener.close();
  await accepting;
  // The other ends close in their own turns.
  while (sharedPoller()?.wakeupKind !== undefined) await settled();
  for (let turn = 0; turn < 10; turn++) await settled();
}

function descriptors(): number {
  return [...Deno.readDirSync("/proc/self/fd")].length;
}

/**
 * Whether a crowd leaves nothing. The platform opens a pair of sockets of its
 * own at some moment and keeps it, so one crowd that leaves something proves
 * nothing: what leaks grows with the next one too.
 */
async function report(seed: number): Promise<boolean> {
  await crowd(1); // What is opened once stays.
  for (let round = 0; round < ROUNDS; round++) {
    const before = descriptors();
    await crowd(seed + round);
    const after = descriptors();
    const said = `${before} descriptors before, ${after} after\n`;
    Deno.stdout.writeSync(new TextEncoder().encode(said));
    if (after <= before) return true;
  }
  return false;
}

if (import.meta.main && Deno.args.length === 1) {
  Deno.exit(await report(+Deno.args[0]!) ? 0 : 1);
}

for (const choice of Object.keys(WAKEUPS)) {
  Deno.test({
    name:
      `${CONNECTIONS} connections come and go over sockets of the kind "${choice}"`,
    fn: async () => {
      const { seed } = Prng.fromEnvironment();
      await mustEnd(
        [
          ...[Deno.execPath(), "run", "--quiet", "-A"],
          ...[import.meta.filename!, `${seed}`],
        ],
        { env: { TUNNEL_SOCKETS: choice } },
      );
    },
  });
}
