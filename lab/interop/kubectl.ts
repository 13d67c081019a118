/**
 * kubectl as a program: to its end with bytes in and out, or as it goes on.
 *
 * @module
 */

import type { KubeCluster } from "../peers/kube_cluster.ts";
import { findPeer } from "../../tests/support/program/peers.ts";
import {
  type Ended,
  type RunOptions,
  runToEnd,
} from "../../tests/support/program/run.ts";
import { patience } from "../../tests/support/watch/patience.ts";

/** One that takes longer is killed: its output says what is missing. */
const TIMEOUT_MS = 60_000;

async function commandOf(
  cluster: KubeCluster,
  args: readonly string[],
): Promise<[string, ...string[]]> {
  const kubeconfig = `--kubeconfig=${cluster.adminKubeconfig}`;
  return [await findPeer("kubectl"), kubeconfig, ...args];
}

/** Runs it to its end; the input is written while the output is read. */
export async function ran(
  cluster: KubeCluster,
  args: readonly string[],
  options: RunOptions = {},
): Promise<Ended> {
  const signal = AbortSignal.timeout(patience(TIMEOUT_MS));
  return await runToEnd(await commandOf(cluster, args), { ...options, signal });
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
    env: Readonly<Record<string, string>> = {},
  ): Promise<Running> {
    const [program, ...words] = await commandOf(cluster, args);
    return new Running(
      new Deno.Command(program, {
        ...{ args: words, env },
        ...{ stdin: "piped", stdout: "piped", stderr: "piped" },
        signal: AbortSignal.timeout(patience(TIMEOUT_MS)),
      }).spawn(),
    );
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

  /** Reads what it prints until it is so much. */
  async take(length: number): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = new Uint8Array(length);
    for (let at = 0; at < length;) {
      const { value, done } = await this.#output.read();
      if (done) throw new Error(`ended after ${at} of ${length} bytes`);
      bytes.set(value, at);
      at += value.length;
    }
    return bytes;
  }

  async type(text: string): Promise<void> {
    await this.send(new TextEncoder().encode(text));
  }

  async send(bytes: Uint8Array): Promise<void> {
    await this.#input.write(bytes);
  }

  /** Ends its input. @returns Its exit code. */
  async end(): Promise<number> {
    await this.#input.close();
    return (await this.child.status).code;
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
