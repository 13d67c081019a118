/**
 * kubectl as a program: to its end with bytes in and out, or as it goes on.
 *
 * @module
 */

import type { KubeCluster } from "../peers/kube_cluster.ts";
import { findPeer } from "../../tests/support/program/peers.ts";
import { patience } from "../../tests/support/watch/patience.ts";

/** One that takes longer is killed: its output says what is missing. */
const TIMEOUT_MS = 60_000;

/** What a run is given beside its words. */
export interface Options {
  /** Its standard input, which ends with it; empty if not given. */
  readonly input?: string | Uint8Array;
  readonly env?: Readonly<Record<string, string>>;
}

/** What came of a run. */
export interface Ran {
  readonly code: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs it to its end; the input is written while the output is read. */
export async function ran(
  cluster: KubeCluster,
  args: readonly string[],
  options: Options = {},
): Promise<Ran> {
  const child = await spawn(cluster, args, options.env);
  const [{ code, stdout, stderr }] = await Promise.all([
    child.output(),
    feed(child.stdin, options.input),
  ]);
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, bytes: stdout, stdout: text(stdout), stderr: text(stderr) };
}

/** Starts one that does not end by itself. */
async function spawn(
  cluster: KubeCluster,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Deno.ChildProcess> {
  return new Deno.Command(await findPeer("kubectl"), {
    args: [`--kubeconfig=${cluster.adminKubeconfig}`, ...args],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
    env,
    signal: AbortSignal.timeout(patience(TIMEOUT_MS)),
  }).spawn();
}

/** A kubectl that goes on, with what it prints. */
export class Running implements AsyncDisposable {
  readonly #output: ReadableStreamDefaultReader<Uint8Array>;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  #text = "";

  private constructor(private readonly child: Deno.ChildProcess) {
    this.#output = child.stdout.getReader();
    this.#input = child.stdin.getWriter();
  }

  static async start(
    cluster: KubeCluster,
    args: readonly string[],
  ): Promise<Running> {
    return new Running(await spawn(cluster, args));
  }

  /** Reads on until all that was printed fits. */
  async until(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.#text);
      if (found !== null) return found;
      const { value, done } = await this.#output.read();
      if (done) {
        const said = await new Response(this.child.stderr).text();
        throw new Error(`ended with ${JSON.stringify(this.#text)}: ${said}`);
      }
      this.#text += new TextDecoder().decode(value);
    }
  }

  async type(text: string): Promise<void> {
    await this.#input.write(new TextEncoder().encode(text));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.child.kill("SIGINT");
    } catch {
      // It has ended by itself; its status is there all the same.
    }
    await this.child.status;
    await this.#output.cancel();
    await this.#input.close().catch(() => {}); // Nobody reads it any more.
    if (!this.child.stderr.locked) await this.child.stderr.cancel();
  }
}

async function feed(
  stdin: WritableStream<Uint8Array>,
  input: string | Uint8Array = "",
): Promise<void> {
  const writer = stdin.getWriter();
  try {
    const bytes = typeof input === "string"
      ? new TextEncoder().encode(input)
      : input;
    await writer.write(bytes);
    await writer.close();
  } catch {
    // It ended first; its exit status and output say what happened.
  }
}
