/**
 * Runs the programs that are clients, with bytes for their standard input, and
 * keeps what they print.
 *
 * @module
 */

import { patience } from "../../tests/support/watch/patience.ts";

/** A program has ended badly. */
export class ProgramError extends Error {
  override readonly name = "ProgramError";

  /**
   * @param said What it said last, on standard error if anything was there.
   * @param stdout All that came before its end.
   */
  constructor(
    program: string,
    readonly code: number,
    readonly said: string,
    readonly stdout: Uint8Array<ArrayBuffer>,
  ) {
    super(`${program} ended with ${code}: ${said}`);
  }
}

const RUN_TIMEOUT_MS = 90_000;

const ENVIRONMENT: Readonly<Record<string, string>> = {
  // Nothing here is to go through a proxy of the surroundings.
  http_proxy: "",
  https_proxy: "",
  HTTPS_PROXY: "",
  ALL_PROXY: "",
  // Upstream's test client closes its connection at any signal, also at the
  // SIGURG by which Go's runtime interrupts a busy goroutine.
  GODEBUG: "asyncpreemptoff=1",
};

/**
 * Runs a program to its end and gives what it printed.
 *
 * @param answerBytes Standard input ends only when so much was printed: its
 * end is half of an end, which Konnectivity takes for a whole one.
 * @throws {ProgramError} When it ends with anything but 0.
 */
export async function run(
  program: string,
  args: readonly string[],
  input: readonly Uint8Array<ArrayBuffer>[] = [],
  answerBytes = 0,
): Promise<Uint8Array<ArrayBuffer>> {
  const child = new Deno.Command(program, {
    args: [...args],
    stdin: input.length > 0 ? "piped" : "null",
    stdout: "piped",
    stderr: "piped",
    env: ENVIRONMENT,
  }).spawn();
  const timer = setTimeout(
    () => child.kill("SIGKILL"),
    patience(RUN_TIMEOUT_MS),
  );
  const answered = Promise.withResolvers<void>();
  const fed = input.length > 0
    ? feed(child.stdin, input, answered.promise)
    : undefined;
  const errors = new Response(child.stderr).text();
  const stdout = await collect(child.stdout, answerBytes, answered.resolve);
  answered.resolve();
  const { success, code } = await child.status;
  clearTimeout(timer);
  await fed;
  if (success) return stdout;
  const said = (await errors).trim() || new TextDecoder().decode(stdout).trim();
  const name = program.slice(program.lastIndexOf("/") + 1);
  throw new ProgramError(name, code, said.slice(-600), stdout);
}

async function collect(
  stdout: ReadableStream<Uint8Array<ArrayBuffer>>,
  bytes: number,
  onReached: () => void,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  for await (const chunk of stdout) {
    chunks.push(chunk);
    length += chunk.length;
    if (length >= bytes) onReached();
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

async function feed(
  stdin: WritableStream<Uint8Array>,
  input: readonly Uint8Array[],
  answered: Promise<void>,
): Promise<void> {
  const writer = stdin.getWriter();
  try {
    for (const bytes of input) await writer.write(bytes);
    await answered;
    await writer.close();
  } catch {
    // The program ended first; its exit status and output say what happened.
  }
}
