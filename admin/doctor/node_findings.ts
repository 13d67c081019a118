/**
 * What a server's answer about a node means for who asks what is wrong with it,
 * one function for each thing that is looked at.
 *
 * @module
 */

import {
  failed,
  type Finding,
  fine,
  skipped,
  warned,
} from "./walk/path_walk.ts";
import { spanOf } from "./walk/tls_fault.ts";
import type { NodeDetail } from "../../proto/admin/node_answer.ts";
import { hostOf } from "../../proto/peer/host_port.ts";
import { compareVersions, versionIn } from "../../proto/peer/peer_identity.ts";

/** A certificate that ends so soon should have been renewed long ago. */
const CERTIFICATE_MS = 86_400_000;

/** What has a finding of its own is not said again. */
const TOLD: ReadonlySet<string | undefined> = new Set([
  "TUN310",
  "TUN313",
  "TUN422",
  "TUN513",
]);

/** Whether it may link, by its record. */
export function joined({ name, state, reason, isJoined, joinedAt }: {
  readonly name: string;
  readonly state: string;
  readonly reason?: string | undefined;
  readonly isJoined: boolean;
  readonly joinedAt?: string | undefined;
}): Finding {
  if (state === "revoked") {
    return failed(
      "TUN311",
      `${name} was revoked${reason ? ` (${reason})` : ""}`,
      `tunnel node approve ${name} takes that back`,
    );
  }
  if (state === "pending") {
    return failed(
      "TUN310",
      `${name} waits for approval`,
      `tunnel node approve ${name}`,
    );
  }
  return fine(
    isJoined
      ? `${name} joined${joinedAt === undefined ? "" : ` at ${joinedAt}`}`
      : `${name} has not joined: it is known by a certificate of another CA`,
  );
}

/** Whether it is linked. */
export function online(
  { name, state, since, reason, address, version }: NodeDetail,
): Finding {
  if (state === "online") {
    return fine(
      `online${since === undefined ? "" : ` since ${since}`} from ` +
        `${address ?? "another server"}, version ${version ?? "unknown"}`,
    );
  }
  return failed(
    "TUN402",
    `${name} is offline${since === undefined ? "" : ` since ${since}`}` +
      (reason === undefined ? "" : `: ${reason}`),
    "on the node: systemctl status tunnel-agent, then `tunnel doctor agent`",
  );
}

/** Whether it is one machine. */
export function duplicate(
  { name, isDuplicate, linkDetails }: NodeDetail,
): Finding | undefined {
  const hosts = new Set(linkDetails.map(({ address }) => hostOf(address)));
  if (isDuplicate !== true && hosts.size < 2) return undefined;
  const from = `linked from ${[...hosts].join(", ")}`;
  return warned(
    "TUN313",
    isDuplicate === true
      ? `two machines use the identity of ${name} (${from})`
      : `${name} is ${from}: one machine with several addresses, or two with ` +
        "one identity, which shows within half a minute",
    "on the copy: empty the agent's state directory, and join with a new token",
  );
}

/**
 * Whether agent and server are of one version. Those next to each other work
 * together, so another one is odd, and servers are upgraded first.
 *
 * @param server Absent: it has not said which it is.
 */
export function version(
  { name, version: software }: NodeDetail,
  server: string | undefined,
): Finding | undefined {
  if (server === undefined || software === undefined) return undefined;
  const agent = versionIn(software);
  if (agent === undefined) {
    return skipped(`its agent is none of ours: ${software}`);
  }
  const order = compareVersions(agent, server);
  if (order === 0) {
    return fine(`the agent is of the server's version, ${agent}`);
  }
  return order < 0
    ? warned(
      "TUN422",
      `the agent of ${name} is ${agent}, older than its server, ${server}`,
      "on the node: put the server's version there, and run `tunnel upgrade " +
        "FILE`, or restart the agent",
    )
    : warned(
      "TUN422",
      `the agent of ${name} is ${agent}, newer than its server, ${server}`,
      "upgrade the server: servers come first",
    );
}

/**
 * Whether its agent has descriptors left, by the dials that failed for want of
 * one: the agent says it in its answer to a dial, and not before.
 */
export function descriptors(
  { name, warnings, events, now }: NodeDetail,
): Finding | undefined {
  if (!warnings.some(({ code }) => code === "TUN513")) return undefined;
  const dials = events.filter(({ code, kind }) =>
    code === "TUN513" && kind === "dial-failed"
  );
  const times = dials.reduce((sum, { times = 1 }) => sum + times, 0);
  const count = times === 0
    ? "dials"
    : times === 1
    ? "1 dial"
    : `${times} dials`;
  const [last] = dials;
  return failed(
    "TUN513",
    `the agent of ${name} has no descriptors left: ${count} failed with ` +
      `"too many open files"${last === undefined ? "" : agoText(last.at, now)}`,
    `on ${name}: raise the agent's "ulimit -n" (LimitNOFILE in systemd), and ` +
      `restart it; \`tunnel conn list --node ${name}\` shows what it holds`,
  );
}

function agoText(at: string, now: string | undefined): string {
  const ms = Date.parse(now ?? "") - Date.parse(at);
  return ms >= 0 ? `, the last ${spanOf(ms)} ago` : "";
}

/** For how long it may go on. */
export function certificate(
  { certificateUntil }: NodeDetail,
): Finding | undefined {
  if (certificateUntil === undefined) return undefined;
  const leftMs = Date.parse(certificateUntil) - Date.now();
  if (leftMs > CERTIFICATE_MS) return fine(`good until ${certificateUntil}`);
  return warned(
    "TUN202",
    leftMs < 0
      ? `it expired ${spanOf(-leftMs)} ago`
      : `it expires in ${spanOf(leftMs)}`,
    "the agent renews it by itself: see its log (journalctl -u tunnel-agent)",
  );
}

/** The worst of the rest. */
export function warnings({ warnings }: NodeDetail): Finding | undefined {
  const first = warnings.find(({ code }) => !TOLD.has(code));
  if (first === undefined) return undefined;
  return {
    outcome: "warning",
    message: first.message,
    code: first.code,
  };
}
