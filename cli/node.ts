/**
 * `tunnel node`: the nodes that joined.
 *
 * @module
 */

import { nearest } from "../platform/text/nearest.ts";
import {
  type DuplicateRecord,
  DuplicateRecords,
  isNow,
} from "../server/identity/duplicate_records.ts";
import { type NodeRecord, NodeStore } from "../server/identity/node_store.ts";
import { TokenStore } from "../server/identity/token_store.ts";
import { defineCommand } from "./program/command.ts";
import { CommandFailure, ExitCode } from "./program/exit_codes.ts";
import { booleanFlag, textFlag } from "./flags/flag.ts";
import { grantsFlag } from "./flags/grant_flags.ts";
import { GENERAL_FLAGS } from "./flags/log_flags.ts";
import { stateCommandFlags } from "./flags/state_flags.ts";
import { withState } from "./program/server_state.ts";
import { textTable } from "./program/text_table.ts";
import { readVerb } from "./program/verbs.ts";

const WHERE = "Where";
/** An empty text counts as a flag that was not given. */
const NO_GRANTS = "-";

const FLAGS = {
  ...stateCommandFlags(WHERE),
  "json": booleanFlag(false, { group: WHERE, help: "Print JSON." }),
  "identifiers": grantsFlag({
    group: "tunnel node approve",
    help: "What the node may call itself besides its name from now on, such " +
      "as ipv4=10.0.0.7&default-route=true; none: --identifiers=-.",
  }, NO_GRANTS),
  "reason": textFlag("", {
    group: "tunnel node revoke",
    help: "Reason that is sent to the node.",
  }),
  ...GENERAL_FLAGS,
} as const;

const VERBS = {
  list: { flags: ["json"] },
  approve: { operand: "NAME", flags: ["identifiers"] },
  revoke: { operand: "NAME", flags: ["reason"] },
  forget: { operand: "NAME" },
} as const;

/** See the module description. */
export const NODE_COMMAND = defineCommand({
  name: "node",
  summary: "List, approve, revoke and forget nodes that joined",
  operands: "list | approve NAME | revoke NAME | forget NAME [flags]",
  about: [
    "Runs where the server runs, as its user; a running server notices at " +
    "once. A name is bound to the key that joined with it. Revoking a node " +
    "ends its links and keeps its name taken; approving takes that back. " +
    "Forgetting a node ends its links too, and lets another key join by " +
    "that name.",
  ],
  examples: [
    "tunnel node list",
    "tunnel node revoke edge-7 --reason stolen",
    "tunnel node approve edge-7 --identifiers 'cidr=10.1.0.0/16'",
  ],
  flags: FLAGS,
  async run({ values, operands, given }, context) {
    const { verb, operand } = readVerb("node", VERBS, operands, given);
    return await withState(values, context, async ({ engine: state }) => {
      const nodes = new NodeStore(state);
      const duplicates = new DuplicateRecords(state);
      const refuseUnknown = async () => {
        const known = (await nodes.list()).map(({ name }) => name);
        throw unknown(operand, known);
      };
      const change = async (
        to: (record: NodeRecord) => NodeRecord,
        say: (record: NodeRecord) => string,
      ) => {
        const changed = await nodes.change(operand, to);
        if (changed === undefined) return await refuseUnknown();
        if (changed.state === "approved") await duplicates.remove(operand);
        context.print(say(changed));
        return ExitCode.OK;
      };
      switch (verb) {
        case "list":
          context.print(listText(
            await nodes.list(),
            await duplicates.list(),
            values["json"],
          ));
          return ExitCode.OK;
        case "approve":
          return await change(
            approval(values["identifiers"]),
            ({ name, identifiers }) =>
              `Approved ${name}${
                identifiers ? ` (${identifiers})` : ""
              }: it may ` +
              "link now; a running server knows at once.\n",
          );
        case "revoke":
          return await change(
            (record) => ({
              ...record,
              state: "revoked",
              reason: values["reason"],
            }),
            ({ name }) =>
              `Revoked ${name}: a running server ends its links at once; the name ` +
              `stays taken (tunnel node approve ${name} takes this back).\n`,
          );
        case "forget":
          if (!await nodes.forget(operand, new TokenStore(state))) {
            return await refuseUnknown();
          }
          await duplicates.remove(operand);
          context.print(
            `Forgot ${operand}: a running server ends its links at once; another ` +
              "key may join by that name.\n",
          );
          return ExitCode.OK;
      }
    });
  },
});

/** @param identifiers Empty: unchanged; `-`: none. */
function approval(identifiers: string) {
  const granted = identifiers === NO_GRANTS ? "" : identifiers;
  return ({ reason: _, ...record }: NodeRecord): NodeRecord => ({
    ...record,
    state: "approved",
    ...(identifiers === "" ? {} : { identifiers: granted }),
  });
}

function unknown(node: string, known: readonly string[]): CommandFailure {
  const near = nearest(node, known);
  const next = near === undefined
    ? "; see tunnel node list"
    : `; did you mean ${near}?`;
  return new CommandFailure(
    ExitCode.FAILURE,
    `Cannot find node "${node}": none of that name joined${next}`,
    undefined,
    "TUN312",
  );
}

function listText(
  nodes: readonly NodeRecord[],
  duplicates: ReadonlyMap<string, DuplicateRecord>,
  asJson: boolean,
): string {
  const nowMs = Date.now();
  if (asJson) {
    const shown = nodes.map((node) => {
      const duplicate = duplicates.get(node.name);
      if (duplicate === undefined) return node;
      const { node: _, ...facts } = duplicate;
      return { ...node, duplicate: { ...facts, now: isNow(duplicate, nowMs) } };
    });
    return JSON.stringify(shown, null, 2) + "\n";
  }
  const isSeen = nodes.some(({ name }) => duplicates.has(name));
  const more = isSeen ? ["LINKED TWICE"] : [];
  return textTable(
    ["NAME", "STATE", "JOINED", "FROM", "CERTIFICATE UNTIL", "GRANTS", ...more],
    nodes.map((node) => [
      node.name,
      node.state + (node.reason ? ` (${node.reason})` : ""),
      node.joinedAt,
      node.joinedFrom,
      node.certificate?.expiresAt ?? "-",
      node.identifiers || "-",
      ...more.map(() => duplicateText(duplicates.get(node.name), nowMs)),
    ]),
  );
}

/** Whether a copy of the node's identity is about, and where. */
function duplicateText(
  duplicate: DuplicateRecord | undefined,
  nowMs: number,
): string {
  if (duplicate === undefined) return "-";
  const places = duplicate.instances.map(({ address }) => address);
  const when = isNow(duplicate, nowMs)
    ? `now, since ${duplicate.since}`
    : `until ${duplicate.lastSeen}`;
  return `${when}, from ${places.join(" and ")}`;
}
