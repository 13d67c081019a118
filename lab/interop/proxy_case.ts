/**
 * What cases of `proxy_real.ts` share: a service whose endpoints come and go
 * for as long as a client is at work.
 *
 * @module
 */

import { Child } from "../../tests/support/program/child.ts";
import {
  debianCommand,
  type DebianName,
} from "../../tests/support/program/debian.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { FileProxy } from "../peers/service_proxy.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import { sleep } from "../../tests/support/watch/event_loop.ts";

/** Mean time between two changes; the proxy's watch joins what is closer. */
const FLAP_EVERY_MS = 200;

/** Cases by their sentences. */
export type ProxyCases = Readonly<
  Record<string, (workspace: Workspace) => Promise<void>>
>;

/** How a service flaps. */
export interface FlapConfig {
  readonly protocol?: "tcp" | "udp";
  /** `ip:port` each. */
  readonly endpoints: readonly string[];
  /** Those of them that never go. */
  readonly steady?: readonly string[];
}

/** `tunnel proxy` and one service; see the module description. */
export class FlappingService implements AsyncDisposable {
  /** Times that the file was rewritten. */
  changes = 0;
  readonly #over = Promise.withResolvers<void>();
  readonly #flapping: Promise<void>;
  #isOver = false;

  private constructor(
    private readonly config: FlapConfig,
    readonly port: number,
    private readonly proxy: FileProxy,
  ) {
    this.#flapping = this.#flap();
  }

  static async start(
    workspace: Workspace,
    config: FlapConfig,
  ): Promise<FlappingService> {
    const port = freePort();
    const proxy = await FileProxy.serving(workspace, [
      serviceOf(config, port, config.endpoints),
    ]);
    return new FlappingService(config, port, proxy);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    this.#over.resolve();
    await this.#flapping;
    await this.proxy[Symbol.asyncDispose]();
  }

  /** Another subset each time, and never nothing. */
  async #flap(): Promise<void> {
    const { endpoints, steady = [] } = this.config;
    while (!this.#isOver) {
      const keep = Math.floor(Math.random() * endpoints.length);
      const some = endpoints
        .filter((each, at) =>
          at === keep || steady.includes(each) || Math.random() < 0.4
        );
      await this.proxy.rewrite([serviceOf(this.config, this.port, some)]);
      this.changes++;
      const wait = 2 * FLAP_EVERY_MS * Math.random();
      await Promise.race([this.#over.promise, sleep(wait)]);
    }
  }
}

function serviceOf(
  { protocol = "tcp" }: FlapConfig,
  listen: number,
  endpoints: readonly string[],
) {
  return { name: "flapping", protocol, listen, endpoints };
}

/** A program of Debian's that runs until the case is over. */
export async function startDebian(
  workspace: Workspace,
  program: DebianName,
  ...args: readonly string[]
): Promise<Child & AsyncDisposable> {
  const child = new Child({
    name: program,
    command: [...await debianCommand(program), ...args],
    logFile: workspace.path(`${program}.log`),
  });
  return Object.assign(child, {
    [Symbol.asyncDispose]: () => child.stop("SIGKILL"),
  });
}
