/**
 * `tunnel adsc`: simulated clients of discovery, to see what a server sends and how
 * much load it takes.
 *
 * @module
 */

import {
  Fleet,
  type FleetOptions,
  FleetRefusedError,
  FleetTimeoutError,
} from "../../client/adsc/fleet.ts";
import { allThere } from "../../client/adsc/conditions.ts";
import { wantsOf } from "../../client/adsc/subscriber_profile.ts";
import { resourceData } from "../../proto/xds/resource_data.ts";
import type { AdsChange } from "../../client/ads/received.ts";
import type { DecodedResource } from "../../client/ads/read_resource.ts";
import { orAborted } from "../../platform/time/deadline.ts";
import { pause } from "../../platform/time/pause.ts";
import { RESOURCE_KINDS } from "../../proto/xds/resource.ts";
import { CommandFailure, ExitCode } from "../program/exit_codes.ts";
import { type CommandContext, defineCommand } from "../program/command.ts";
import { ADSC_FLAGS } from "./flags.ts";
import { type AdscOptions, adscOptions } from "./options.ts";
import type { SignalSource } from "../program/until_stopped.ts";
import { warningsOf } from "../program/warnings.ts";

const SIGNALS: readonly Deno.Signal[] = ["SIGINT", "SIGTERM"];

/** See the module description. */
export const ADSC_COMMAND = adscCommand(Deno);

/** The command; tests give it signals of theirs. */
export function adscCommand(
  signals: SignalSource,
): ReturnType<typeof defineCommand> {
  return defineCommand({
    name: "adsc",
    summary: "Simulate clients of discovery: dump, wait, assert, misbehave",
    operands: "proxy | envoy | grpc NAME… | raw KIND[=NAME,…]… [flags]",
    about: [
      "Subscribes at a discovery server (xDS v3) as a node proxy, Envoy or a " +
      "gRPC client, acknowledges what it receives, and ends when everything " +
      "has arrived or, if there are any, every --wait and --expect holds: " +
      "exit code 0. After --timeout the exit code is 1; when the server " +
      "refuses the client it is 3.",
      "KIND is cluster, endpoints, listener or route. With --clients there " +
      "are many, and conditions hold for each of them. docs/discovery.md has " +
      "more.",
    ],
    examples: [
      "tunnel adsc proxy --server 127.0.0.1:15010",
      "tunnel adsc grpc echo --expect default/echo:80=10.0.0.1:8080",
      'tunnel adsc envoy --wait "clusters>=3" --print nothing',
      "tunnel adsc proxy --clients 1000 --for 30s --print figures",
      "tunnel adsc envoy --nack cluster --for 10s --print changes",
    ],
    flags: ADSC_FLAGS,
    async run(reading, context) {
      const options = adscOptions(reading, context, warningsOf("adsc"));
      await runFleet(options, context, signals);
      return ExitCode.OK;
    },
  });
}

async function runFleet(
  options: AdscOptions,
  context: CommandContext,
  signals: SignalSource,
): Promise<void> {
  const { timeoutMs, stayMs, print } = options;
  const conditions = options.conditions.length > 0
    ? options.conditions
    : [allThere(wantsOf(options.fleet.form))];
  const fleet = new Fleet({
    ...options.fleet,
    ...print === "changes"
      ? { onChanged: changePrinter(options.fleet, context) }
      : {},
  });
  const stopping = new AbortController();
  const onSignal = () => stopping.abort();
  for (const signal of SIGNALS) signals.addSignalListener(signal, onSignal);
  fleet.start();
  try {
    await untilStopped(fleet.until(conditions, timeoutMs), stopping.signal);
    if (stayMs > 0) {
      const staying = pause(options.fleet.timers, stayMs, stopping.signal);
      // A client that is refused meanwhile does not stay.
      await Promise.race([staying, fleet.whenRefused]);
      if (!stopping.signal.aborted) await fleet.until(conditions, 1);
    }
    if (print === "dump") context.print(`${dump(fleet)}\n`);
  } catch (error) {
    throw asFailure(error);
  } finally {
    if (print === "figures") {
      context.print(`${JSON.stringify(fleet.figures, null, 2)}\n`);
    }
    stopping.abort();
    for (const signal of SIGNALS) {
      signals.removeSignalListener(signal, onSignal);
    }
    await fleet.stop();
  }
}

/** To be stopped is no failure: what there is then is shown. */
async function untilStopped(
  work: Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  try {
    await orAborted(work, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

function asFailure(error: unknown): unknown {
  if (error instanceof FleetRefusedError) {
    const line = `Cannot subscribe: ${error.message}`;
    return new CommandFailure(ExitCode.REFUSED, line, error);
  }
  if (error instanceof FleetTimeoutError) {
    return new CommandFailure(ExitCode.FAILURE, error.message, error);
  }
  return error;
}

/** What the first client has; the others were sent the same. */
function dump(fleet: Fleet): string {
  const [client] = fleet.clients;
  const kinds = RESOURCE_KINDS.map((kind) => {
    const held = [...client!.held(kind).values()]
      .sort((a, b) => a.name < b.name ? -1 : 1);
    return [
      kind,
      held.map(({ name, version, content }) => ({
        ...{ name, version },
        resource: resourceData(content.message),
      })),
    ];
  });
  const absent = RESOURCE_KINDS
    .map((kind) => [kind, [...client!.absent(kind)].sort()] as const)
    .filter(([, names]) => names.length > 0);
  return JSON.stringify(
    {
      ...Object.fromEntries(kinds),
      absent: Object.fromEntries(absent),
      status: client!.status,
    },
    null,
    2,
  );
}

function changePrinter(
  { nodes }: FleetOptions,
  { print }: CommandContext,
) {
  return (changes: readonly AdsChange<DecodedResource>[], index: number) => {
    const client = nodes.length === 1 ? {} : { client: nodes[index]!.id };
    for (const { kind, name, held } of changes) {
      const line = held === undefined
        ? { ...client, kind, name, gone: true }
        : {
          ...client,
          ...{ kind, name, version: held.version },
          resource: resourceData(held.content.message),
        };
      print(`${JSON.stringify(line)}\n`);
    }
  };
}
