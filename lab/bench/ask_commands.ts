// deno-lint-ignore-file no-console -- it prints what it measures.
/**
 * How long people wait for `tunnel status`, `node list` and the first screen of
 * `top`: processes of ours, their start included, that ask over a real socket.
 *
 * @module
 */

import { HttpPort } from "../../net/admin/http_port.ts";
import { listenUnix } from "../../net/listen/listeners.ts";
import { grade, quantile } from "./bars.ts";
import type { Tally } from "../../tests/support/watch/tally.ts";
import { ourCommand } from "../../tests/support/program/tunnel.ts";
import type { AdminRig } from "../../tests/support/rigs/admin_rig.ts";

/**
 * Of the processor, start included: what is left of 200 ms by the clock when the
 * server has taken its part of them. The clock itself says what else runs here.
 */
const BAR_MS = 160;

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
  const cpu: number[] = [];
  let bytes = 0;
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    const startMs = performance.now();
    const { success, stdout, stderr } = await new Deno.Command("sh", {
      args: ["-c", '"$@" && times', "sh", program!, ...args],
    }).output();
    const tookMs = performance.now() - startMs;
    if (!success) throw new Error(new TextDecoder().decode(stderr));
    bytes = stdout.length;
    if (round < 0) continue;
    times.push(tookMs);
    cpu.push(cpuMsOf(new TextDecoder().decode(stdout.slice(-100))));
  }
  const name = `tunnel ${words.join(" ")}`;
  console.log(
    `     ${name}: ${Math.round(bytes / 1024)} KiB, by the clock best ` +
      `${Math.round(Math.min(...times))} ms, median ` +
      `${Math.round(quantile(times, 0.5))} ms`,
  );
  grade(tally, {
    ...{ name: `${name}, of the processor`, unit: "ms" },
    ...{ seen: quantile(cpu, 0.5), most: BAR_MS },
  });
}

/** User and system of its children, as a shell's `times` says them last. */
function cpuMsOf(text: string): number {
  const found = /(\d+)m([\d.]+)s (\d+)m([\d.]+)s\n$/.exec(text);
  if (found === null) throw new Error("sh knows no times");
  const [, userMinutes, user, systemMinutes, system] = found.map(Number);
  return (userMinutes! + systemMinutes!) * 60_000 + (user! + system!) * 1_000;
}
