/**
 * `tunnel dial`: one connection, joined to standard input and output until both
 * directions are over. Ends are passed on as they are: end of input becomes a
 * half-close, a reset is never reported as an end.
 *
 * @module
 */

import { dial } from "../client/dial.ts";
import {
  TunnelDialError,
  TunnelLostError,
  TunnelResetError,
} from "../client/dial_error.ts";
import type { TunnelConn } from "../client/tunnel_conn.ts";
import { defineCommand, onlyOperand } from "./program/command.ts";
import {
  asDialFailure,
  CommandFailure,
  dialWarnings,
  ExitCode,
  failure,
} from "./program/exit_codes.ts";
import { messageOf } from "../platform/errors/error_code.ts";
import { isLoopbackHost } from "../proto/peer/ip_address.ts";
import { formatHostPort, parseHostPort } from "./flags/addresses.ts";
import { ROUTE_FLAGS, routeOf, routeRules } from "./flags/route_flags.ts";

/** See the module description. */
export const DIAL_COMMAND = defineCommand({
  name: "dial",
  operands: "HOST:PORT [flags]",
  about: [
    "Connects to HOST:PORT as an agent sees it, or to NODE:PORT on a connected " +
    "node itself, and carries standard input " +
    "there and the answer to standard output. The end of input is passed on; " +
    "the answer may go on after it. The exit code tells a refusal, a reset " +
    "and a loss apart.",
  ],
  examples: [
    "tunnel dial node7:22 --server unix:/run/tunnel.sock",
    "tunnel dial db:5432 --egress-config egress.yaml --network cluster",
    "ssh -o ProxyCommand='tunnel dial %h:%p' node7",
  ],
  rights: "network",
  flags: ROUTE_FLAGS,
  rules: routeRules,
  async run(reading, context) {
    const operand = onlyOperand(
      reading.operands,
      `Cannot dial ${reading.operands.length} targets: wanted one HOST:PORT`,
    );
    const target = parseHostPort("the target", operand);
    const { values } = reading;
    const node = values["node"];
    const via = routeOf(reading, {
      ...context,
      log: () => dialWarnings("dial"),
      isBrief: true,
    });
    const conn = await orFailure(dial(formatHostPort(target), {
      via,
      timeoutMs: values["dial-timeout"],
      node: node || undefined,
      onNode: (line) => context.printError(`tunnel dial: ${line}\n`),
      // Each node has its own loopback, so the target is ambiguous.
      oneAgent: node === "" && isLoopbackHost(target.host),
    }));
    await netcat(conn, { input: Deno.stdin, output: Deno.stdout });
    if (via.kind === "node") await via.identity?.settled();
  },
});

async function orFailure(dialing: Promise<TunnelConn>): Promise<TunnelConn> {
  try {
    return await dialing;
  } catch (error) {
    if (!(error instanceof TunnelDialError)) throw error;
    throw asDialFailure(error);
  }
}

/** As much as one read of a pipe or a socket returns. */
const CHUNK_BYTES = 65_536;

/** The process's side. */
export interface StandardStreams {
  readonly input: {
    read(into: Uint8Array): Promise<number | null>;
    isTerminal(): boolean;
  };
  readonly output: { write(bytes: Uint8Array): Promise<number> };
}

/**
 * Copies bytes both ways until the connection is closed.
 *
 * A person at a terminal does not end the input when the other side is done, so
 * there the other side's end is enough. A program's input continues: it may be
 * half of a conversation.
 *
 * A pipe without a reader ends it like the other side's end.
 *
 * @throws {CommandFailure} When the connection was reset or lost.
 */
export async function netcat(
  conn: TunnelConn,
  streams: StandardStreams,
): Promise<void> {
  let inputError: unknown;
  const { input, output } = streams;
  carry(
    (into) => input.read(into),
    (bytes) => conn.write(bytes),
  ).then(() => conn.closeWrite()).catch((error) => {
    // Input that cannot be read ends the download too.
    inputError = error;
    conn.close();
  });
  try {
    await carry((into) => conn.read(into), async (bytes) => {
      for (let sent = 0; sent < bytes.length;) {
        sent += await output.write(bytes.subarray(sent)).catch(refuseOutput);
      }
    });
    if (input.isTerminal()) return conn.close();
    const end = await conn.closed;
    if (end.kind === "reset") throw new TunnelResetError(end.reason);
    if (end.kind === "lost") throw new TunnelLostError(end.reason);
  } catch (error) {
    // `tunnel dial … | head -1` has got its output, as with every command.
    if (error instanceof Deno.errors.BrokenPipe) return;
    throw asFailure(inputError ?? error);
  } finally {
    conn.close();
  }
}

/** One direction, to its end. */
async function carry(
  read: (into: Uint8Array) => Promise<number | null>,
  write: (bytes: Uint8Array) => Promise<void>,
): Promise<void> {
  const chunk = new Uint8Array(CHUNK_BYTES);
  for (;;) {
    const count = await read(chunk);
    if (count === null) return;
    await write(chunk.subarray(0, count));
  }
}

function refuseOutput(error: unknown): never {
  if (error instanceof Deno.errors.BrokenPipe) throw error;
  throw failure(`Cannot write to standard output: ${messageOf(error)}`);
}

function asFailure(error: unknown): unknown {
  if (error instanceof TunnelResetError) {
    const line = `The other end reset the connection: ${error.message}`;
    return new CommandFailure(ExitCode.RESET, line, error);
  }
  if (error instanceof TunnelLostError) {
    const line = `The connection was lost: ${error.message}`;
    return new CommandFailure(ExitCode.LOST, line, error);
  }
  return error;
}
