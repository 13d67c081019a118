/**
 * `tunnel adsc`: a client of discovery, to see what a server sends and to wait for
 * it.
 *
 * @module
 */

import {
  AdscSubscriber,
  allThere,
  SubscriberRefusedError,
  wantsOf,
} from "../../services/ads/adsc/subscriber.ts";
import { canonicalJson } from "../../proto/xds/canonical_json.ts";
import type { AdsChange, Held } from "../../services/ads/held_resources.ts";
import type { DecodedResource } from "../../services/ads/read_resource.ts";
import { orAborted } from "../../platform/time/deadline.ts";
import { pause } from "../../platform/time/pause.ts";
import {
  RESOURCE_KINDS,
  type ResourceKind,
  TYPE_URLS,
} from "../../proto/xds/resource.ts";
import {
  CommandFailure,
  dialWarnings,
  ExitCode,
} from "../program/exit_codes.ts";
import {
  type Command,
  type CommandContext,
  defineCommand,
} from "../program/command.ts";
import { ADSC_FLAGS } from "./flags.ts";
import { type AdscOptions, adscOptions } from "./options.ts";
import { ENDS, onSignals, type SignalSource } from "../program/signals.ts";

/** See the module description. */
export const ADSC_COMMAND = adscCommand(Deno);

/** The command; tests give it their own signals. */
export function adscCommand(signals: SignalSource): Command {
  return defineCommand({
    name: "adsc",
    operands: "proxy | envoy | grpc NAME… | raw KIND[=NAME,…]… [flags]",
    about: [
      "Subscribes at a discovery server (xDS v3) as a node proxy, Envoy or a " +
      "gRPC client, acknowledges what it receives, and ends when everything " +
      "has arrived or, if there are any, every --wait and --expect holds: " +
      "exit code 0. After --timeout the exit code is 1; when the server " +
      "refuses the client it is 3.",
      "KIND is cluster, endpoints, listener or route. docs/discovery.md has " +
      "more.",
    ],
    examples: [
      "tunnel adsc proxy --server 127.0.0.1:15010",
      "tunnel adsc grpc echo --expect default/echo:80=10.0.0.1:8080",
      'tunnel adsc envoy --wait "clusters>=3" --print nothing',
      "tunnel adsc proxy --for 10s --print changes",
    ],
    rights: "network",
    flags: ADSC_FLAGS,
    async run(reading, context) {
      const options = adscOptions(reading, context, dialWarnings("adsc"));
      await subscribe(options, context, signals);
    },
  });
}

async function subscribe(
  options: AdscOptions,
  context: CommandContext,
  signals: SignalSource,
): Promise<void> {
  const { timeoutMs, stayMs, print } = options;
  const conditions = options.conditions.length > 0
    ? options.conditions
    : [allThere(wantsOf(options.subscriber.form))];
  const subscriber = new AdscSubscriber({
    ...options.subscriber,
    ...print === "changes" ? { onChanged: changePrinter(context) } : {},
  });
  const stopping = new AbortController();
  using _ends = onSignals(ENDS, () => stopping.abort(), signals);
  subscriber.start();
  try {
    await untilStopped(
      subscriber.until(conditions, timeoutMs),
      stopping.signal,
    );
    if (stayMs > 0) {
      const staying = pause(options.subscriber.timers, stayMs, stopping.signal);
      // A client that is refused meanwhile does not stay.
      await Promise.race([staying, subscriber.whenRefused]);
      if (!stopping.signal.aborted) await subscriber.until(conditions, 1);
    }
    if (print === "dump") context.print(`${dump(subscriber)}\n`);
  } catch (error) {
    if (!(error instanceof SubscriberRefusedError)) throw error;
    const line = `Cannot subscribe: ${error.message}`;
    throw new CommandFailure(ExitCode.REFUSED, line, error);
  } finally {
    stopping.abort();
    await subscriber.stop();
  }
}

/** A stop is no failure: the present content is shown. */
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

function dump({ client }: AdscSubscriber): string {
  const kinds = RESOURCE_KINDS.map((kind) => {
    const held = [...client.held(kind).values()]
      .sort((a, b) => a.name < b.name ? -1 : 1);
    return [
      kind,
      held.map((one) => resourceText(kind, one)),
    ];
  });
  const absent = RESOURCE_KINDS
    .map((kind) => [kind, [...client.absent(kind)].sort()] as const)
    .filter(([, names]) => names.length > 0);
  return JSON.stringify(
    {
      ...Object.fromEntries(kinds),
      absent: Object.fromEntries(absent),
      status: client.status,
    },
    null,
    2,
  );
}

function changePrinter({ print }: CommandContext) {
  return (changes: readonly AdsChange<DecodedResource>[]) => {
    for (const { kind, name, held } of changes) {
      const line = held === undefined
        ? { kind, name, gone: true }
        : { kind, ...resourceText(kind, held) };
      print(`${JSON.stringify(line)}\n`);
    }
  };
}

function resourceText(
  kind: ResourceKind,
  { name, version, value }: Held<DecodedResource>,
) {
  const typeUrl = TYPE_URLS[kind];
  return { name, version, resource: canonicalJson({ typeUrl, value }) };
}
