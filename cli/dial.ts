/**
 * `tunnel dial`: one connection, joined to standard input and output.
 *
 * @module
 */

import { dial } from "../client/dial.ts";
import { TunnelDialError } from "../client/dial_error.ts";
import type { TunnelConn } from "../client/tunnel_conn.ts";
import { defineCommand } from "./command.ts";
import { asDialFailure } from "./dial_failure.ts";
import { ExitCode } from "./exit_codes.ts";
import { isLoopbackHost } from "../proto/peer/ip_address.ts";
import { formatHostPort, parseHostPort } from "./flags/addresses.ts";
import { GENERAL_FLAGS } from "./flags/log_flags.ts";
import { warningsOf } from "./warnings.ts";
import { ROAD_FLAGS, roadOf } from "./flags/road_flags.ts";
import { netcat } from "./netcat.ts";
import { UsageError } from "./usage_error.ts";

/** See the module description. */
export const DIAL_COMMAND = defineCommand({
  name: "dial",
  summary: "Connect to a target through the tunnel (netcat, for ssh)",
  operands: "HOST:PORT [flags]",
  about: [
    "Connects to HOST:PORT as an agent sees it and carries standard input " +
    "there and the answer to standard output. The end of input is passed on; " +
    "the answer may go on after it. The exit code tells a refusal, a reset " +
    "and a loss apart.",
  ],
  examples: [
    "tunnel dial 127.0.0.1:22 --node node7 --server unix:/run/tunnel.sock",
    "tunnel dial db:5432 --egress-config egress.yaml --network cluster",
    "ssh -o ProxyCommand='tunnel dial %h:%p --server unix:/s.sock' node7",
  ],
  flags: { ...ROAD_FLAGS, ...GENERAL_FLAGS },
  async run(reading, context) {
    const [operand, ...others] = reading.operands;
    if (operand === undefined || others.length > 0) {
      throw new UsageError(
        `Cannot dial ${reading.operands.length} targets: wanted one HOST:PORT`,
      );
    }
    const target = parseHostPort("the target", operand);
    const { values } = reading;
    const node = values["node"];
    const via = roadOf(reading, {
      ...context,
      log: () => warningsOf("dial"),
      isBrief: true,
    });
    const conn = await orFailure(dial(formatHostPort(target), {
      via,
      timeoutMs: values["dial-timeout"],
      ...(node === "" ? {} : { node }),
      // Each node has a loopback of its own: whose is meant?
      oneAgent: node === "" && isLoopbackHost(target.host),
    }));
    await netcat(conn, { input: Deno.stdin, output: Deno.stdout });
    if (via.kind === "node") await via.identity?.settled();
    return ExitCode.OK;
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
