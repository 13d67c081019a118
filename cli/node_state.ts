/**
 * Nodes as the state of servers keeps them: for `tunnel node`, where it changes
 * them, or no server answers. Loaded when it is wanted.
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
import type { Store } from "../neighbours/store/store.ts";
import type { CommandContext } from "./program/command.ts";
import { CommandFailure, failure } from "./program/exit_codes.ts";
import { NO_GRANTS } from "./flags/join_flags.ts";
import type { StateFlagValues } from "./flags/state_flags.ts";
import { withState } from "./program/server_state.ts";
import {
  approved,
  changeRecord,
  revoked,
} from "../admin/server/node_actions.ts";
import { textTable } from "../admin/ask/text_table.ts";

/** Flags that say where the state is. */
type StateValues = StateFlagValues & { readonly "state-dir": string };

/** `tunnel node list` without a server. */
export function listFromState(
  values: StateValues & { readonly json: boolean },
  { note }: { readonly note: string | undefined },
  context: CommandContext,
): Promise<void> {
  return withState(values, context, async ({ engine: state }) => {
    const nodes = await new NodeStore(state).list();
    const duplicates = await new DuplicateRecords(state).list();
    if (note !== undefined) context.printError(`tunnel node: ${note}\n`);
    context.print(listText(nodes, duplicates, values.json));
  });
}

/** What is said of a change. */
type ChangeValues = Readonly<Record<"identifiers" | "reason", string>>;

/** `tunnel node approve`, `revoke`, `forget`. */
export function changeNode(
  node: string,
  verb: "approve" | "revoke" | "forget",
  values: StateValues & ChangeValues,
  context: CommandContext,
): Promise<void> {
  return withState(values, context, async ({ engine: state }) => {
    const said = verb === "forget"
      ? await forget(node, state)
      : await changed(node, verb, values, state);
    if (said === undefined) {
      const known = (await new NodeStore(state).list()).map(({ name }) => name);
      throw unknown(node, known);
    }
    context.print(`${said}\n`);
  });
}

/** @returns What was done; `undefined`: there is no such node. */
async function changed(
  node: string,
  verb: "approve" | "revoke",
  { identifiers: granted, reason }: ChangeValues,
  state: Store,
): Promise<string | undefined> {
  const record = await changeRecord(
    state,
    node,
    verb === "approve" ? approval(granted) : revoked(reason),
  );
  if (record === undefined) return undefined;
  const { name, identifiers } = record;
  if (record.state === "approved") {
    const grants = identifiers ? ` (${identifiers})` : "";
    return `Approved ${name}${grants}: it may link now; a running server ` +
      "knows at once.";
  }
  return `Revoked ${name}: a running server ends its links at once; the name ` +
    `stays taken (tunnel node approve ${name} takes this back).`;
}

async function forget(
  node: string,
  state: Store,
): Promise<string | undefined> {
  if (!await new NodeStore(state).forget(node, new TokenStore(state))) {
    return undefined;
  }
  await new DuplicateRecords(state).remove(node);
  return `Forgot ${node}: a running server ends its links at once; another ` +
    "key may join by that name.";
}

/** @param identifiers Empty: unchanged; `-`: none. */
function approval(identifiers: string) {
  const granted = identifiers === NO_GRANTS ? "" : identifiers;
  return (record: NodeRecord): NodeRecord => ({
    ...approved(record),
    ...(identifiers === "" ? {} : { identifiers: granted }),
  });
}

function unknown(node: string, known: readonly string[]): CommandFailure {
  const near = nearest(node, known);
  const next = near === undefined
    ? "; see tunnel node list"
    : `; did you mean ${near}?`;
  return failure(
    `Cannot find node "${node}": none of that name joined${next}`,
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
    ["NAME | STATE | JOINED | FROM | CERTIFICATE UNTIL | GRANTS", ...more]
      .join(" | "),
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
