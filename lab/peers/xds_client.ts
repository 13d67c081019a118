/**
 * gRPC applications that find their backends by xDS, in three implementations;
 * `xds/clients/README.md` says what they do and print.
 *
 * @module
 */

import { Child } from "../../tests/support/program/child.ts";
import {
  findGrpcio,
  findGrpcJs,
} from "../../tests/support/program/peer_packages.ts";
import { findPeer } from "../../tests/support/program/peers.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import { patience } from "../../tests/support/watch/patience.ts";

export const XDS_CLIENTS = ["grpc-go", "grpc-js", "C-core"] as const;

export type XdsClientName = typeof XDS_CLIENTS[number];

/** How one is started. */
export interface XdsClientConfig {
  readonly name: XdsClientName;
  /** Where ADS is on 127.0.0.1. */
  readonly port: number;
  /** Where it is when the first one has nothing to say. */
  readonly fallbackPort?: number;
  /** Of the service. */
  readonly service: string;
  /** In place of `xds:///SERVICE`, to go without discovery. */
  readonly target?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
}

/** What it says at its end. */
export interface XdsCalls {
  readonly calls: number;
  readonly failed: number;
  /** The first of them. */
  readonly errors: readonly string[];
}

const TIMEOUT_MS = 30_000;
const POLL_MS = 20;
const ERRORS_KEPT = 5;
const CLIENTS = new URL("xds/clients/", import.meta.url).pathname;

/** See the module description. */
export class XdsClient implements AsyncDisposable {
  private constructor(readonly child: Child) {}

  /** Starts one; nobody waits for its first answer. */
  static async start(
    workspace: Workspace,
    config: XdsClientConfig,
  ): Promise<XdsClient> {
    const { command, env } = await PROGRAMS[config.name]();
    const { name } = config;
    const child = new Child({
      name,
      command: [...command, config.target ?? `xds:///${config.service}`],
      logFile: workspace.path(`${name}.log`),
      env: {
        ...env,
        ...config.env,
        GRPC_XDS_BOOTSTRAP_CONFIG: JSON.stringify({
          xds_servers: [config.port, config.fallbackPort ?? []].flat()
            .map((port) => ({
              server_uri: `127.0.0.1:${port}`,
              channel_creds: [{ type: "insecure" }],
              server_features: ["xds_v3"],
            })),
          node: {
            id: `${name}-1`,
            // grpc-js cannot do without.
            locality: {},
            metadata: config.metadata ?? {},
          },
        }),
      },
    });
    return new XdsClient(child);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.child.stop("SIGKILL");
  }

  /** Waits until exactly these have answered its last calls. */
  async untilAnsweredBy(...backends: readonly string[]): Promise<void> {
    const wanted = backends.toSorted().join(" ");
    await this.#until(
      (lines) => lines.findLast(isAnswer)?.slice("backends ".length) === wanted,
      `${wanted} did not answer`,
    );
  }

  /** Waits until anybody has answered. */
  async untilAnswered(): Promise<void> {
    const isNamed = (line: string) => /^backends \S/.test(line);
    await this.#until((lines) => lines.some(isNamed), "nobody answered");
  }

  /** Sets of those who answered, one after the other. */
  async answers(): Promise<readonly string[]> {
    return (await this.#lines()).filter(isAnswer)
      .map((line) => line.slice("backends ".length));
  }

  /** Waits until a call has failed. */
  async untilFailed(): Promise<void> {
    await this.#until(
      (lines) => lines.some((line) => line.startsWith("error ")),
      "no call failed",
    );
  }

  /** Ends it. @returns What it counted. */
  async finish(): Promise<XdsCalls> {
    await this.child.stop();
    const lines = await this.#lines();
    const [, calls, failed] = lines.findLast((line) => line.startsWith("done "))
      ?.split(" ") ?? [];
    if (failed === undefined) {
      throw new Error(`${this.child.name}: ${await this.child.logTail()}`);
    }
    const errors = lines.filter((line) => line.startsWith("error "));
    return {
      calls: Number(calls),
      failed: Number(failed),
      errors: errors.slice(0, ERRORS_KEPT),
    };
  }

  async #until(
    isSo: (lines: readonly string[]) => boolean,
    otherwise: string,
  ): Promise<void> {
    const deadline = Date.now() + patience(TIMEOUT_MS);
    while (!isSo(await this.#lines())) {
      if (this.child.hasEnded || Date.now() > deadline) {
        const tail = await this.child.logTail();
        throw new Error(`${this.child.name}: ${otherwise}:\n${tail}`);
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  async #lines(): Promise<readonly string[]> {
    const log = await Deno.readTextFile(this.child.logFile).catch(() => "");
    return log.split("\n");
  }
}

function isAnswer(line: string): boolean {
  return line.startsWith("backends ");
}

interface Program {
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const PROGRAMS: Readonly<Record<XdsClientName, () => Promise<Program>>> = {
  "grpc-go": async () => ({ command: [await findPeer("xds-goclient")] }),
  "grpc-js": async () => ({
    command: ["node", `${CLIENTS}client.cjs`],
    env: { NODE_PATH: `${await findGrpcJs()}/node_modules` },
  }),
  "C-core": async () => ({
    command: ["python3", `${CLIENTS}client.py`],
    env: { PYTHONPATH: await findGrpcio() },
  }),
};
