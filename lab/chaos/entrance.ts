/**
 * Ways into the tunnel, as callers have them: CONNECT by hand and gRPC by our
 * library at the socket of one server, and the ports of a `tunnel forward` and
 * of a `tunnel proxy` that choose their server themselves.
 *
 * @module
 */

import { dial } from "../../client/mod.ts";
import { connectThrough } from "../interop/connect_client.ts";

/** A connection, whatever it is made of. */
export interface Wire {
  read(buffer: Uint8Array): Promise<number | null>;
  write(bytes: Uint8Array): Promise<number>;
  /** Half-close. */
  closeWrite(): Promise<void>;
  close(): void;
}

export type Protocol =
  | "connect"
  | "grpc"
  | "forward"
  /** As TLS and HTTP clients do: what they say first leaves with the dial. */
  | "forward, said first"
  | "proxy, said first";

/** Those that ask a program of ours, which chooses its server itself. */
export const SAID_FIRST: readonly Protocol[] = [
  "forward, said first",
  "proxy, said first",
];
export const OF_OUR_CALLERS: readonly Protocol[] = ["forward", ...SAID_FIRST];

/** See the module description. */
export interface Entrance {
  readonly protocol: Protocol;
  /** Whose it is; absent: whichever it chooses. */
  readonly server?: string;
  /** Said at once; the target echoes it behind its greeting. */
  readonly saysFirst?: Uint8Array;
  /** Connects to a target, known by the name of what serves it. */
  open(target: string, signal: AbortSignal): Promise<Wire>;
}

/** Where all targets listen. */
export const TARGET_PORT = 7000;

export function connectEntrance(server: string, path: string): Entrance {
  return {
    protocol: "connect",
    server,
    async open(target, signal) {
      const conn = await Deno.connect({ transport: "unix", path });
      const giveUp = () => close(conn);
      signal.addEventListener("abort", giveUp);
      try {
        await connectThrough(conn, `${target}:${TARGET_PORT}`);
        return wireOf(conn);
      } catch (error) {
        close(conn);
        signal.throwIfAborted();
        throw error;
      } finally {
        signal.removeEventListener("abort", giveUp);
      }
    },
  };
}

export function grpcEntrance(server: string, path: string): Entrance {
  const address = { kind: "unix", path } as const;
  const via = { kind: "tunnel", protocol: "grpc", address } as const;
  return {
    protocol: "grpc",
    server,
    async open(target, signal) {
      const conn = await dial(`${target}:${TARGET_PORT}`, { via, signal });
      conn.closed.catch(() => {}); // Reads and writes tell how it ended.
      return {
        read: (buffer) => conn.read(buffer),
        async write(bytes) {
          await conn.write(bytes);
          return bytes.length;
        },
        // deno-lint-ignore require-await -- it throws by its promise.
        closeWrite: async () => conn.closeWrite(),
        close: () => conn.close(),
      };
    },
  };
}

/** As long as a ClientHello that offers many things. */
const FIRST_WORDS = new Uint8Array(1_200).map((_, index) => index % 251);

/** @param ports Of a `tunnel forward` or a `tunnel proxy`, by target. */
export function portEntrance(
  protocol: Exclude<Protocol, "connect" | "grpc">,
  ports: ReadonlyMap<string, number>,
): Entrance {
  return {
    protocol,
    ...protocol === "forward" ? {} : { saysFirst: FIRST_WORDS },
    async open(target, signal) {
      signal.throwIfAborted();
      const port = ports.get(target)!;
      return wireOf(await Deno.connect({ hostname: "127.0.0.1", port }));
    },
  };
}

function wireOf(conn: Deno.Conn): Wire {
  return {
    read: (buffer) => conn.read(buffer),
    write: (bytes) => conn.write(bytes),
    closeWrite: () => conn.closeWrite(),
    close: () => close(conn),
  };
}

function close(conn: Deno.Conn): void {
  try {
    conn.close();
  } catch (error) {
    if (!(error instanceof Deno.errors.BadResource)) throw error;
  }
}
