/**
 * `tunnel doctor node` and `tunnel doctor target`: a running server's knowledge
 * of a node, and the path of a dial.
 *
 * @module
 */

import type { GivenValues } from "../flags/read_flags.ts";
import { AdminClient, AdminError } from "../../admin/ask/admin_client.ts";
import {
  failed,
  type Finding,
  fine,
  type Hop,
  skipped,
  walk,
  warned,
} from "../../admin/doctor/walk/path_walk.ts";
import {
  ADMIN_ACTIONS,
  ADMIN_API,
  ADMIN_PATHS,
} from "../../proto/admin/api.ts";
import { type Code, knownCode } from "../../proto/codes/codes.ts";
import type { NodeDetail } from "../../proto/admin/node_answer.ts";
import type {
  PathStep,
  PingAnswer,
  TraceAnswer,
  TraceQuestion,
} from "../../proto/admin/path_check.ts";
import type { StatusAnswer } from "../../proto/admin/status_answer.ts";
import { defaultStateDirectory } from "../flags/state_directory.ts";
import {
  type NodeRecord,
  NodeStore,
} from "../../server/identity/node_store.ts";
import { DirectoryStore } from "../../neighbours/store/directory_store.ts";
import { StoreError } from "../../neighbours/store/store_error.ts";
import {
  type ASKED_SERVER_FLAGS,
  askedProgram,
  withWorkers,
} from "../flags/admin_flags.ts";
import type { FlagValues } from "../flags/flag.ts";
import { answersOf } from "../ask/asked.ts";
import type { CommandContext } from "../program/command.ts";
import {
  joined,
  nodeHop,
  online,
  warnings,
} from "../../admin/doctor/node_findings.ts";

/** What the flags say. */
type AskedReading = GivenValues<
  & FlagValues<typeof ASKED_SERVER_FLAGS>
  & Readonly<Record<"node" | "as", string>>
>;

type Context = Pick<CommandContext, "environment" | "readFile">;

/** A slower answer is reported, though nothing is broken. */
const SLOW_MS = 1_000;

/** One node, as its server sees it. */
export async function examineNode(
  name: string,
  reading: AskedReading,
  context: Context,
): Promise<readonly PathStep[]> {
  return await asking(reading, context, async (clients) => {
    const [client, ...workers] = clients as [AdminClient, ...AdminClient[]];
    let node: NodeDetail | undefined;
    const path = ADMIN_PATHS.node + encodeURIComponent(name);
    const known = () => node!;
    const others = workers.map((one, at): Hop => ({
      ...serverHop(one),
      name: `server worker ${at + 1}`,
    }));
    const before = await walk([serverHop(client)]);
    if (before.some(({ outcome }) => outcome === "failed")) {
      const record = await walk([{
        name: "record",
        look: () => recordOf(name, reading, context),
      }]);
      return [...before, ...record];
    }
    return [
      ...before,
      ...await walk([
        ...others,
        {
          name: "joined",
          look: async () => {
            try {
              node = await client.get<NodeDetail>(path);
              return joined(node);
            } catch (error) {
              if (error instanceof AdminError && error.status === 404) {
                return failed(
                  "TUN312",
                  error.message,
                  "see `tunnel node list`; a node joins with the line that " +
                    "`tunnel token create` prints",
                );
              }
              throw error;
            }
          },
        },
        { name: "online", look: () => online(node!) },
        nodeHop("identity", known),
        nodeHop("version", known),
        {
          name: "links",
          deadlineMs: 2_700,
          look: () => links(clients, name),
          late: silentLinks(name, "no answer in time"),
        },
        nodeHop("certificate", known),
        { name: "warnings", look: () => warnings(node!) },
        // Last, so that the rest is said although this fails.
        nodeHop("descriptors", known),
      ]),
    ];
  });
}

/** What the state on this machine says of it, also where no server runs. */
async function recordOf(
  name: string,
  { values }: AskedReading,
  { environment }: Context,
): Promise<Finding | undefined> {
  const root = values["state-dir"] ||
    defaultStateDirectory("server", environment);
  let record: NodeRecord | undefined;
  try {
    const state = await DirectoryStore.open(root);
    record = new NodeStore(state).read(name);
  } catch (error) {
    // It is kept elsewhere, or another user's: the server says it.
    if (error instanceof StoreError) return undefined;
    throw error;
  }
  if (record === undefined) {
    return failed(
      "TUN312",
      `no node ${name} has joined with the state in ${root}`,
      "`tunnel node list` shows those that have; a node joins with the line " +
        "that `tunnel token create` prints",
    );
  }
  const { state, reason, joinedAt } = record;
  return joined({ name, state, reason, isJoined: true, joinedAt });
}

/** A dial, and the report of each hop. */
export async function examineTarget(
  target: string,
  reading: AskedReading,
  context: Context,
): Promise<readonly PathStep[]> {
  return await asking(reading, context, async ([client]) => {
    const before = await walk([serverHop(client!)]);
    if (before.some(({ outcome }) => outcome === "failed")) return before;
    const { node, as } = reading.values;
    return [...before, ...await traced(client!, { target, node, as })];
  });
}

/** A dial that carries nothing, as the server sees it. */
export async function traced(
  client: AdminClient,
  { target, node, as }: TraceQuestion,
): Promise<readonly PathStep[]> {
  const { steps } = await client.post<TraceAnswer>(
    `${ADMIN_API}/${ADMIN_ACTIONS.trace}`,
    { target, node: node || undefined, as: as || undefined },
  );
  return steps;
}

async function asking<Result>(
  { values, given }: AskedReading,
  context: Context,
  act: (workers: readonly AdminClient[]) => Promise<Result>,
): Promise<Result> {
  const clients = withWorkers(askedProgram(values, given, context))
    .map(({ program, address }) => new AdminClient(program, address));
  try {
    return await act(clients);
  } finally {
    for (const client of clients) client.close();
  }
}

function serverHop(client: AdminClient): Hop {
  return {
    name: "server",
    look: async () => {
      try {
        const { program } = await client.get<StatusAnswer>(ADMIN_PATHS.status);
        return fine(`${client.where} answers, version ${program.version}`);
      } catch (error) {
        if (!(error instanceof AdminError)) throw error;
        // One that has no such path is older, and answers the rest.
        if (error.status === 404) return fine(`${client.where} answers`);
        return failed(
          codeOf(error),
          error.message,
          "run `tunnel doctor server` where the server runs; --server says " +
            "where that is",
        );
      }
    },
  };
}

function codeOf({ code = "" }: AdminError): Code {
  return knownCode(code) ?? "TUN121";
}

function silentLinks(name: string, why: string): Finding {
  return failed(
    "TUN507",
    `no link of ${name} answers: ${why}`,
    "on the node: the agent or the machine hangs (ps -o stat, dmesg); " +
      "restart the agent",
  );
}

/** Pings each link of the node. Each worker of the server has links of its own. */
export async function pongsOf(
  clients: readonly AdminClient[],
  node: string,
): Promise<PingAnswer["links"]> {
  const path = `${ADMIN_PATHS.node}${encodeURIComponent(node)}/` +
    ADMIN_ACTIONS.ping;
  const answers = await answersOf(
    clients,
    (client) => client.post<PingAnswer>(path),
  );
  return answers.flatMap(({ links }) => links);
}

async function links(
  clients: readonly AdminClient[],
  name: string,
): Promise<Finding> {
  const links = await pongsOf(clients, name);
  const silent = links.filter(({ problem }) => problem !== undefined);
  const times = links.flatMap(({ roundTripMs }) => roundTripMs ?? []);
  if (times.length === 0) {
    const why = silent[0]?.problem;
    return silent.length === 0
      ? skipped("it is linked to another server: ping it there")
      : silentLinks(name, why ?? "they are silent");
  }
  const best = Math.min(...times);
  const message = `${times.length} of ${links.length} links answer, ` +
    `the fastest in ${best.toFixed(1)} ms`;
  if (silent.length > 0) {
    return warned(
      "TUN403",
      `${message}; ${silent[0]!.address}: ${silent[0]!.problem}`,
      "it is closed and made again by itself; if not, restart the agent",
    );
  }
  return best > SLOW_MS
    ? warned("TUN403", message, "the way to the node is slow: ping its address")
    : fine(message);
}
