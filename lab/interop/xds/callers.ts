/**
 * Clients of a proxy: they come all the time, one after the other, remember who
 * answered, and every failure.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { patience } from "../../../tests/support/watch/patience.ts";
import { eventually } from "../kube_case.ts";
import { httpGet } from "./http_backends.ts";
import { sleep } from "../../../tests/support/watch/event_loop.ts";

const WINDOW = 8;
const PAUSE_MS = 5;
const TIMEOUT_MS = 3_000;
const ASK_AGAIN_MS = 500;
const ANSWER_BYTES_MAX = 64;
const FAILURES_KEPT = 5;

/** Each makes one call. @returns Who answered. */
const CALLS = {
  /** A backend that says its name first. */
  tcp: callTcp,
  /** One that puts its name before the echo. */
  udp: callUdp,
  /** One that answers with its name. */
  http: callHttp,
};

export type CallerProtocol = keyof typeof CALLS;

/** See the module description. */
export class Caller implements AsyncDisposable {
  calls = 0;
  failed = 0;
  readonly failures: string[] = [];
  readonly #last: string[] = [];
  readonly #over: Promise<void>;
  #isOver = false;

  constructor(protocol: CallerProtocol, port: number) {
    this.#over = this.#run(() => CALLS[protocol](port));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#over;
  }

  /** Waits until exactly these have answered the last calls. */
  async untilAnsweredBy(...backends: readonly string[]): Promise<void> {
    const wanted = backends.toSorted().join(" ");
    const now = () => [...new Set(this.#last)].sort().join(" ");
    await eventually(
      `${wanted} answer`,
      () => this.#last.length === WINDOW && now() === wanted,
    ).catch((error) => {
      const why = `answered by '${now()}', failures: ${this.failures}`;
      throw new Error(`${error.message}: ${why}`);
    });
  }

  /** Waits until one backend, whichever, has answered all of the last calls. */
  async untilAnsweredByOne(): Promise<void> {
    await eventually("one backend answers", () => {
      const [first] = this.#last;
      return this.#last.length === WINDOW && first !== "nobody" &&
        this.#last.every((who) => who === first);
    });
  }

  /** What went wrong before is forgotten: nobody served the port yet. */
  forgetFailures(): void {
    this.failed = 0;
    this.failures.length = 0;
  }

  assertAllWell(): void {
    assertEquals([this.failed, this.failures], [0, []]);
  }

  async #run(call: () => Promise<string>): Promise<void> {
    while (!this.#isOver) {
      this.calls++;
      try {
        this.#last.push(await call());
      } catch (error) {
        this.failed++;
        const why = error instanceof Error ? error.message : String(error);
        if (this.failures.length < FAILURES_KEPT) this.failures.push(why);
        this.#last.push("nobody");
      }
      if (this.#last.length > WINDOW) this.#last.shift();
      await sleep(PAUSE_MS);
    }
  }
}

async function callTcp(port: number): Promise<string> {
  using conn = await Deno.connect({ hostname: "127.0.0.1", port });
  const answer = new Uint8Array(ANSWER_BYTES_MAX);
  const count = await inTime(conn.read(answer), TIMEOUT_MS);
  if (count === null) throw new Error("closed before an answer");
  return new TextDecoder().decode(answer.subarray(0, count)).trimEnd();
}

async function callHttp(port: number): Promise<string> {
  const body = await inTime(httpGet(port, { path: "/" }), TIMEOUT_MS);
  if (/^\d*$/.test(body)) throw new Error(`answered ${body || "nothing"}`);
  return body;
}

/**
 * Asks again, as any client of UDP has to: an answer that is under way while
 * Envoy drops the session of a removed endpoint is lost, whoever configured it.
 */
async function callUdp(port: number): Promise<string> {
  try {
    return await callUdpOnce(port);
  } catch {
    return await callUdpOnce(port);
  }
}

async function callUdpOnce(port: number): Promise<string> {
  const to = { transport: "udp", hostname: "127.0.0.1", port } as const;
  // Another socket each time: Envoy keeps a session with its backend.
  const socket = Deno.listenDatagram({ ...to, port: 0 });
  try {
    await socket.send(new TextEncoder().encode("hello"), to);
    const [answer] = await inTime(socket.receive(), patience(ASK_AGAIN_MS));
    return new TextDecoder().decode(answer).split(" ")[0]!;
  } finally {
    socket.close();
  }
}

async function inTime<T>(work: Promise<T>, ms: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const why = new Error(`no answer in ${ms} ms`);
  const timer = setTimeout(() => reject(why), ms);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
