/**
 * `tunnel xds`: how clients of a server's discovery are.
 *
 * @module
 */

import { type AdminClient, AdminError } from "../admin/ask/admin_client.ts";
import {
  type ClientDiff,
  type ClientSummary,
  discoveryPath,
  type KindSummary,
} from "../services/discovery/status/client_answers.ts";
import {
  ANSWER_FLAGS,
  ASKED_SERVER_FLAGS,
  askedProgram,
  withWorkers,
} from "./flags/admin_flags.ts";
import { askAll, printEach } from "./ask/asked.ts";
import { flag } from "./flags/flag.ts";
import { printAnswer } from "./program/answer_output.ts";
import { defineCommand } from "./program/command.ts";
import { ExitCode, failure } from "./program/exit_codes.ts";
import { ofOthers, textTable } from "../admin/ask/text_table.ts";
import { readVerb } from "./program/verbs.ts";

const FLAGS = {
  ...ASKED_SERVER_FLAGS,
  ...ANSWER_FLAGS,
  "all": flag.boolean(false, {
    group: "tunnel xds diff",
    help: "Also show what is in sync.",
  }),
} as const;

const VERBS = {
  status: {},
  diff: { operand: "NODE", flags: ["all"] },
} as const;

/** What the server answers about all clients. */
export interface SyncAnswer {
  readonly ready: boolean;
  readonly sources: readonly {
    readonly name: string;
    readonly synced: boolean;
    readonly problem?: string;
  }[];
  readonly clients: readonly ClientSummary[];
}

/** See the module description. */
export const XDS_COMMAND = defineCommand({
  name: "xds",
  operands: "status | diff NODE [flags]",
  about: [
    "Asks a running tunnel server with --discovery. status has a line for each " +
    "client and kind of resource: what was sent, what was acknowledged or " +
    "refused and why, and for how long an answer is awaited.",
    "diff compares what the clients of a node have with what they should have, " +
    "and says which services cannot be served to them, and why. It fails when " +
    "there is a difference.",
  ],
  examples: ["tunnel xds status", "tunnel xds diff edge-7"],
  rights: "network",
  flags: FLAGS,
  async run(reading, context) {
    const { values, given } = reading;
    const { verb, operand } = readVerb("xds", VERBS, reading);
    const asked = withWorkers(askedProgram(values, given, context));
    if (verb === "status") {
      return await printEach(
        values,
        asked,
        context,
        (client) => query<SyncAnswer>(client, discoveryPath("sync")),
        (_page, answer) => statusText(answer),
      );
    }
    const path = `${discoveryPath("diff")}?node=${encodeURIComponent(operand)}`;
    return await printAnswer({
      form: values.output,
      intervalMs: values["watch"] ? values["interval"] : undefined,
      ask: async () => {
        const answers = await askAll(
          asked,
          context,
          (client) =>
            query<{ readonly clients: readonly ClientDiff[] }>(client, path),
        );
        const clients = answers.flatMap(({ answer }) => answer.clients);
        if (clients.length > 0) return clients;
        throw failure(
          `No client of ${operand} is connected; \`tunnel xds status\` has all`,
          "TUN123",
        );
      },
      table: (clients) => diffText(clients, values["all"]),
      exitCode: (clients) =>
        clients.every(isSame) ? ExitCode.OK : ExitCode.FAILURE,
    }, context);
  },
});

/** For people. */
export function statusText({ ready, sources, clients }: SyncAnswer): string {
  const rows = clients.flatMap((client) =>
    client.kinds.map((kind) => [
      client.client,
      `${client.form}/${client.mode}`,
      kind.kind,
      kind.wildcard ? "*" : String(kind.names),
      kind.state,
      short(kind.sent?.version),
      short(kind.acked?.version),
      kind.lagMs > 0 ? secondsText(kind.lagMs) : "-",
      `${kind.responses}/${kind.acks}/${kind.nacks}`,
      refusalText(kind),
    ])
  );
  const table = textTable(
    "CLIENT | FORM | KIND | NAMES | STATE | SENT | ACKED | LAG | SENT/ACKED/NACKED | LAST NACK",
    rows,
  );
  const notes = [
    ...clients.flatMap(notesOf),
    ...sources
      .filter(({ problem }) => problem !== undefined)
      .map(({ name, problem }) => `source ${name}: ${problem}\n`),
  ];
  if (!ready) {
    const late = sources.filter(({ synced }) => !synced)
      .map(({ name }) => name);
    notes.push(
      `no client is answered yet: ${late.join(", ")} has not said all it has\n`,
    );
  }
  return table + notes.join("");
}

/** Notes about a client, besides the rows of its kinds. */
function notesOf(
  { client, waitsFor, early, foreignTypes }: ClientSummary,
): readonly string[] {
  const name = ofOthers(client);
  const notes: string[] = [];
  if (foreignTypes.length > 0) {
    notes.push(
      `${name}: asks for types that are not served: ` +
        `${listText(foreignTypes)}\n`,
    );
  }
  if (waitsFor.length > 0) {
    notes.push(
      `${name}: its listeners and routes wait until it has acknowledged ` +
        `${listText(waitsFor)}\n`,
    );
  }
  if (early !== undefined) {
    notes.push(
      `${name}: was sent listeners and routes ${secondsText(early.agoMs)} ` +
        `ago before it had acknowledged ${listText(early.clusters)}\n`,
    );
  }
  return notes;
}

/** Names that a catalog chose. */
function listText(names: readonly string[]): string {
  return names.map(ofOthers).join(", ");
}

function secondsText(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

function refusalText({ nacked }: KindSummary): string {
  return nacked === undefined ? "" : oneLine(nacked.message);
}

/** A client's message may have several lines. */
function oneLine(message: string): string {
  return message.replaceAll(/\s+/g, " ");
}

/** For people. */
export function diffText(clients: readonly ClientDiff[], all: boolean): string {
  return clients.map((client) => {
    const { summary, kinds, unserved } = client;
    const rows = kinds.flatMap(({ kind, resources }) =>
      resources
        .filter(({ state }) => all || state !== "synced")
        .map(({ name, has, wants, state, reason }) => [
          kind,
          name,
          state,
          short(has),
          short(wants),
          reason === undefined ? "" : oneLine(reason),
        ])
    );
    const name = ofOthers(summary.client);
    const head = `${name} (${summary.form}, ${summary.mode}, ` +
      `from ${summary.from})`;
    const body = rows.length > 0
      ? textTable(DIFF_HEAD, rows)
      : summary.kinds.some(isRefused)
      ? ""
      : summary.foreignTypes.length > 0
      ? "has everything that is served as it should be\n"
      : "has everything as it should be\n";
    const refusals = summary.kinds
      .filter((kind) =>
        isRefused(kind) && rows.every(([of]) => of !== kind.kind)
      )
      .map((kind) => `refused: ${kind.kind}: ${ofOthers(refusalText(kind))}\n`);
    const foreign = summary.foreignTypes
      .map((type) =>
        `not served: ${ofOthers(type)}: there is nothing of that type\n`
      );
    const reasons = unserved.map(({ service, reason }) =>
      `not served: ${service}: ${reason}\n`
    );
    const notes = [...refusals, ...foreign, ...reasons];
    return `${head}\n${body}${notes.join("")}`;
  }).join("\n");
}

const DIFF_HEAD = "KIND | NAME | STATE | HAS | SHOULD HAVE | REFUSAL";

function isRefused({ state }: KindSummary): boolean {
  return state === "refused";
}

/** Enough of a version to distinguish it. */
function short(version: string | undefined): string {
  return version === undefined ? "-" : version.slice(0, 8);
}

/** An absent resource is no difference: no client has it. */
function isSame({ kinds, summary }: ClientDiff): boolean {
  return !summary.kinds.some(isRefused) &&
    kinds.every(({ resources }) =>
      resources.every(({ state }) => state === "synced" || state === "absent")
    );
}

/** @throws {CommandFailure | AdminError} */
async function query<T>(client: AdminClient, path: string): Promise<T> {
  try {
    return await client.get<T>(path);
  } catch (error) {
    if (!(error instanceof AdminError) || error.status !== 404) throw error;
    throw failure(
      `Cannot ask ${client.where}: it has no discovery (tunnel server ` +
        "--discovery)",
      "TUN123",
    );
  }
}
