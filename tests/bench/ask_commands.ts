// deno-lint-ignore-file no-console -- it prints what it measures.
/**
 * How long people wait for `tunnel status`, `node list` and the first screen of
 * `top`: processes of ours, their start included, that ask over a real socket.
 *
 * @module
 */

import { HttpPort } from "../../net/admin/http_port.ts";
import { listenUnix } from "../../net/listen/listeners.ts";
import { grade, quantile } from "../ha/bars.ts";
import type { Tally } from "../interop/tally.ts";
import { ourCommand } from "../peers/tunnel.ts";
import type { AdminRig } from "../support/rigs/admin_rig.ts";

/** By the clock, the best of all rounds: others use this machine, too. */
const BAR_MS = 200;

const ROUNDS = 15;

/** Code is compiled and kept at the first run. */
const WARM_UP = 2;

const COMMANDS = [
  ["status"],
  ["node", "list"],
  ["node", "list", "-o", "json"],
  ["conn", "list"],
  ["top", "--count", "1"],
] as const;

/** Answers at a socket in `folder` while commands ask. */
export async function measureCommands(
  rig: AdminRig,
  folder: string,
  tally: Tally,
): Promise<void> {
  const path = `${folder}/ask.sock`;
  const port = new HttpPort((request) => {
    const { pathname, search } = new URL(request.url);
    return rig.ask(pathname + search);
  });
  const listener = await listenUnix(
    path,
    {
      use: "administration",
      onConnection: (stream) => void port.accept(stream).catch(() => {}),
      onProblem: () => {},
    },
    true,
    0o600,
  );
  try {
    for (const words of COMMANDS) await measure(words, path, tally);
  } finally {
    listener.close();
    port.close();
  }
}

async function measure(
  words: readonly string[],
  path: string,
  tally: Tally,
): Promise<void> {
  const [program, ...args] = [
    ...ourCommand(...words),
    `--server=unix:${path}`,
  ];
  const times: number[] = [];
  let bytes = 0;
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    const startMs = performance.now();
    const { success, stdout, stderr } = await new Deno.Command(program!, {
      args,
    }).output();
    const tookMs = performance.now() - startMs;
    if (!success) throw new Error(new TextDecoder().decode(stderr));
    bytes = stdout.length;
    if (round >= 0) times.push(tookMs);
  }
  const name = `tunnel ${words.join(" ")}`;
  console.log(
    `     ${name}: ${Math.round(bytes / 1024)} KiB, median ` +
      `${Math.round(quantile(times, 0.5))} ms, worst ` +
      `${Math.round(Math.max(...times))} ms`,
  );
  grade(tally, {
    ...{ name: `${name}, start included`, unit: "ms" },
    ...{ seen: Math.min(...times), most: BAR_MS },
  });
}
