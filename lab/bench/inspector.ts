/**
 * The profiler of a Deno process that was started with `--inspect`, spoken to
 * through the inspector's WebSocket (Chrome DevTools Protocol, domain
 * Profiler).
 *
 * @module
 */

import type { CpuProfile } from "./profile_summary.ts";

/** Finer than V8's 1 ms: what is looked for takes microseconds. */
const SAMPLING_INTERVAL_US = 250;

/** What the inspector lists under `/json/list`. */
interface Debuggee {
  readonly webSocketDebuggerUrl: string;
}

interface Answer {
  readonly id?: number;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

/** See the module description. */
export class Inspector {
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #lastId = 0;

  private constructor(private readonly socket: WebSocket) {
    socket.onmessage = (event) => this.#onAnswer(JSON.parse(event.data));
    socket.onclose = () => {
      for (const { reject } of this.#waiting.values()) {
        reject(new Error("Cannot profile: the inspector hung up"));
      }
      this.#waiting.clear();
    };
  }

  /** @param port Where the process lets itself be inspected, on loopback. */
  static async open(port: number): Promise<Inspector> {
    const response = await fetch(`http://127.0.0.1:${port}/json/list`);
    const [debuggee] = await response.json() as readonly Debuggee[];
    if (debuggee === undefined) {
      throw new Error(`Cannot profile: nothing to inspect on port ${port}`);
    }
    const socket = new WebSocket(debuggee.webSocketDebuggerUrl);
    await new Promise<void>((resolve, reject) => {
      socket.onopen = () => resolve();
      socket.onerror = () =>
        reject(new Error(`Cannot profile: port ${port} takes no WebSocket`));
    });
    return new Inspector(socket);
  }

  /** The profile of what happens on the main thread during `act`. */
  async profile<Value>(
    act: () => Promise<Value>,
  ): Promise<{ readonly profile: CpuProfile; readonly value: Value }> {
    await this.#ask("Profiler.enable");
    const interval = SAMPLING_INTERVAL_US;
    await this.#ask("Profiler.setSamplingInterval", { interval });
    await this.#ask("Profiler.start");
    const value = await act();
    const { profile } = await this.#ask("Profiler.stop") as {
      profile: CpuProfile;
    };
    return { profile, value };
  }

  close(): void {
    this.socket.close();
  }

  #ask(method: string, params: Record<string, unknown> = {}): Promise<unknown> {
    const id = ++this.#lastId;
    const answer = Promise.withResolvers<unknown>();
    this.#waiting.set(id, answer);
    this.socket.send(JSON.stringify({ id, method, params }));
    return answer.promise;
  }

  #onAnswer({ id, result, error }: Answer): void {
    if (id === undefined) return; // An event; nobody waits for it.
    const answer = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) answer?.resolve(result);
    else answer?.reject(new Error(`Cannot profile: ${error.message}`));
  }
}
