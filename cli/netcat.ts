/**
 * Joins standard input and output to a tunneled connection, until both
 * directions are over. Ends are passed on as they are: end of input becomes a
 * half-close, a reset is never reported as an end.
 *
 * @module
 */

import { TunnelLostError, TunnelResetError } from "../client/conn_errors.ts";
import type { TunnelConn } from "../client/tunnel_conn.ts";
import { CommandFailure } from "./command_failure.ts";
import { ExitCode } from "./exit_codes.ts";

/** As much as one read of a pipe or a socket gives. */
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
 * Carries bytes both ways until the connection is over.
 *
 * A person at a terminal will not end their input because the other side is
 * done, so there the other side's end is enough. A program's input is carried
 * on: it may be half of a conversation.
 *
 * @throws {CommandFailure} When the connection was reset or lost, or nobody
 *   reads the output any more.
 */
export async function netcat(
  conn: TunnelConn,
  streams: StandardStreams,
): Promise<void> {
  let failure: unknown;
  sendInput(conn, streams.input).catch((error) => {
    // Input that cannot be read ends the download too.
    failure = error;
    conn.close();
  });
  try {
    await receiveOutput(conn, streams.output);
    if (streams.input.isTerminal()) return conn.close();
    const end = await conn.closed;
    if (end.kind === "reset") throw new TunnelResetError(end.reason);
    if (end.kind === "lost") throw new TunnelLostError(end.reason);
  } catch (error) {
    throw asFailure(failure ?? error);
  } finally {
    conn.close();
  }
}

async function sendInput(
  conn: TunnelConn,
  input: StandardStreams["input"],
): Promise<void> {
  const chunk = new Uint8Array(CHUNK_BYTES);
  for (;;) {
    const count = await input.read(chunk);
    if (count === null) return conn.closeWrite();
    await conn.write(chunk.subarray(0, count));
  }
}

async function receiveOutput(
  conn: TunnelConn,
  output: StandardStreams["output"],
): Promise<void> {
  const chunk = new Uint8Array(CHUNK_BYTES);
  for (;;) {
    const count = await conn.read(chunk);
    if (count === null) return;
    for (let sent = 0; sent < count;) {
      sent += await output.write(chunk.subarray(sent, count));
    }
  }
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
  if (error instanceof Deno.errors.BrokenPipe) {
    const line = "Cannot write: nobody reads the output any more";
    return new CommandFailure(ExitCode.FAILURE, line, error);
  }
  return error;
}
