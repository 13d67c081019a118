/**
 * The actions on a node: revoke, approve, drain. They change the same records
 * as `tunnel node`; the followers of records do the rest.
 *
 * @module
 */

import { AdminFailure } from "../../net/admin/admin_api.ts";
import type { Store } from "../../neighbours/store/store.ts";
import type { ActionAnswer } from "../../proto/admin/api.ts";
import { DuplicateRecords } from "../../server/identity/duplicate_records.ts";
import {
  type NodeRecord,
  NodeStore,
} from "../../server/identity/node_store.ts";
import {
  StoreAwayError,
  StoreError,
} from "../../neighbours/store/store_error.ts";
import { counted } from "../../platform/text/quantities.ts";
import type { ServerParts } from "../../server/assembly/server_admin_port.ts";
import { nameOf } from "./node_view.ts";

/** Longest reason that is kept and sent. */
const REASON_LENGTH_MAX = 300;

/** Its links end, and its name stays taken. @throws {AdminFailure} */
export async function revokeNode(
  facts: ServerParts,
  name: string,
  body: unknown,
  by: string,
): Promise<ActionAnswer> {
  const reason = reasonIn(body);
  await change(facts, name, revoked(reason));
  const why = reason === "" ? "" : `: ${reason}`;
  facts.events.note("revoked", `revoked by ${by}${why}`, { node: name });
  return {
    message: `Revoked ${name}: its links end at once; the name stays taken ` +
      `(tunnel node approve ${name} takes this back)`,
  };
}

/** It may link from now on. @throws {AdminFailure} */
export async function approveNode(
  facts: ServerParts,
  name: string,
  by: string,
): Promise<ActionAnswer> {
  await change(facts, name, approved);
  facts.events.note("approved", `approved by ${by}`, { node: name });
  return { message: `Approved ${name}: it may link now` };
}

/**
 * Its agents are asked to link elsewhere, and other agents are preferred from
 * now on. What runs goes on.
 *
 * @throws {AdminFailure}
 */
export function drainNode(
  facts: ServerParts,
  name: string,
  by: string,
): ActionAnswer {
  const links = [...facts.registry.links]
    .filter(({ peer }) => nameOf(facts, peer) === name);
  if (links.length === 0) {
    const message = `No agent of node ${name} is linked here`;
    throw new AdminFailure(404, { code: "TUN501", message });
  }
  let asked = 0;
  for (const link of links) {
    facts.registry.preferOthers(link);
    if (facts.drain(link)) asked++;
  }
  facts.events.note("drain", `drained by ${by}`, { node: name });
  const carried = links.reduce((sum, { load }) => sum + load, 0);
  const rest = asked === links.length
    ? ""
    : `; ${links.length - asked} of them are of Konnectivity's protocol, ` +
      "which has no word for that: they only get no new connections that " +
      "other agents can serve";
  const next = facts.peers.all.length > 0
    ? "its agent links to the other servers"
    : "this server knows of no other: its agent makes new links here, which " +
      "serve what comes from now on";
  return {
    message: `Draining ${counted(links.length, "link")} of ${name} with ` +
      `${counted(carried, "connection")}, which go on to their ends: ` +
      next + rest,
  };
}

/** The record after the action. */
export function approved({ reason: _, ...record }: NodeRecord): NodeRecord {
  return { ...record, state: "approved" };
}

/** The same. */
export function revoked(reason: string): (record: NodeRecord) => NodeRecord {
  return (record) => ({ ...record, state: "revoked", reason });
}

/** @returns The record now; `undefined`: no node of that name joined. */
export async function changeRecord(
  state: Store,
  name: string,
  to: (record: NodeRecord) => NodeRecord,
): Promise<NodeRecord | undefined> {
  const changed = await new NodeStore(state).change(name, to);
  if (changed?.state === "approved") {
    await new DuplicateRecords(state).remove(name);
  }
  return changed;
}

async function change(
  { identity }: ServerParts,
  name: string,
  to: (record: NodeRecord) => NodeRecord,
): Promise<void> {
  if (identity === undefined) {
    throw new AdminFailure(409, {
      message: "No node joins this server: it has no --state-dir, and admits " +
        "agents by certificates of another authority",
    });
  }
  const { state, book } = identity;
  try {
    if (await changeRecord(state, name, to) === undefined) {
      throw new AdminFailure(404, {
        code: "TUN312",
        message:
          `Cannot find node ${JSON.stringify(name.slice(0, 253))}: none of ` +
          "that name joined; see tunnel node list",
      });
    }
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    const isAway = error instanceof StoreAwayError;
    const { message } = error;
    throw new AdminFailure(503, {
      code: isAway ? "TUN802" : "TUN801",
      message,
    });
  }
  // The watch says it, too, and later.
  book.changed(name);
}

function reasonIn(body: unknown): string {
  const { reason = "" } = Object(body) as { readonly reason?: unknown };
  if (typeof reason !== "string" || reason.length > REASON_LENGTH_MAX) {
    throw new AdminFailure(400, {
      message: "Cannot use that reason: wanted a text of at most " +
        `${REASON_LENGTH_MAX} characters`,
    });
  }
  return reason;
}
