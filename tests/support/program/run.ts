/**
 * Programs, ours and others, that are run to their end, and what they said.
 *
 * @module
 */

import { ourCommand } from "./tunnel.ts";

/** What a command said, and how it ended. */
export interface Ended {
  readonly code: number;
  /** Of standard output. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly stdout: string;
  readonly stderr: string;
}

/** What a command is given beside its words. */
export interface RunOptions {
  /** Its standard input, which ends with it. */
  readonly input?: string | Uint8Array<ArrayBuffer>;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Whether that is all of its environment. */
  readonly clearEnv?: boolean;
  /** Kills it. */
  readonly signal?: AbortSignal;
}

/** Runs `tunnel` with these words. */
export function runTunnel(
  words: readonly string[],
  options: RunOptions = {},
): Promise<Ended> {
  return runToEnd(ourCommand(...words), options);
}

/** The same for a command that must go well. @returns What it printed. */
export async function mustRun(...words: readonly string[]): Promise<string> {
  return await mustEnd(ourCommand(...words));
}

/**
 * Runs any program, which must go well.
 *
 * @returns What it printed.
 * @throws {Error} What it said, when it ends with anything but 0.
 */
export async function mustEnd(
  command: readonly string[],
  options: RunOptions = {},
): Promise<string> {
  const { code, stdout, stderr } = await runToEnd(command, options);
  if (code === 0) return stdout;
  const why = [stderr, stdout].map((text) => text.trim())
    .filter((text) => text !== "");
  throw new Error(
    `${command.join(" ")} ended with ${code}: ${why.join("\n")}`,
  );
}

/** Runs any program. */
export async function runToEnd(
  command: readonly string[],
  { input = "", ...surroundings }: RunOptions = {},
): Promise<Ended> {
  const [program, ...args] = command;
  const child = new Deno.Command(program!, {
    ...{ args, ...surroundings },
    ...{ stdin: "piped", stdout: "piped", stderr: "piped" },
  }).spawn();
  const feeding = feed(child.stdin, input);
  const { code, stdout, stderr } = await child.output();
  await feeding;
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, bytes: stdout, stdout: text(stdout), stderr: text(stderr) };
}

async function feed(
  stdin: WritableStream<Uint8Array>,
  input: string | Uint8Array<ArrayBuffer>,
): Promise<void> {
  try {
    await new Blob([input]).stream().pipeTo(stdin);
  } catch {
    // It ended before it was told everything: how, its exit code says.
  }
}

/**
 * The environment of a machine on which nothing is set, at a home of its own:
 * what is in `/var/lib/tunnel` must not answer in our place.
 */
export function plainEnvironment(
  home: string,
): Readonly<Record<string, string>> {
  const kept = ["PATH", "NPM_CONFIG_REGISTRY", "TMPDIR"].flatMap((name) => {
    const value = Deno.env.get(name);
    return value === undefined ? [] : [[name, value] as const];
  });
  const cache = Deno.env.get("XDG_CACHE_HOME") ??
    `${Deno.env.get("HOME")}/.cache`;
  return {
    ...Object.fromEntries(kept),
    // What is unpacked and compiled stays where it is, though HOME does not.
    XDG_CACHE_HOME: cache,
    DENO_DIR: Deno.env.get("DENO_DIR") ?? `${cache}/deno`,
    HOME: home,
    XDG_STATE_HOME: `${home}/state`,
  };
}
