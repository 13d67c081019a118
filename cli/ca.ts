/**
 * `tunnel ca`: the server's certificate authorities, and changing them.
 *
 * @module
 */

import { pinOf } from "../host/pki/certificate.ts";
import {
  activateAuthority,
  type Authorities,
  authorityId,
  loadAuthorities,
  retireAuthority,
  rotateAuthority,
  trustedBy,
} from "../server/identity/authorities.ts";
import { type NodeRecord, NodeStore } from "../server/identity/node_store.ts";
import { StateDirectory } from "../server/identity/state_directory.ts";
import { defineCommand } from "./command.ts";
import { CommandFailure } from "./command_failure.ts";
import { ExitCode } from "./exit_codes.ts";
import { booleanFlag } from "./flags/flag.ts";
import { GENERAL_FLAGS } from "./flags/log_flags.ts";
import {
  defaultStateDirectory,
  stateDirectoryFlag,
} from "./flags/state_directory.ts";
import { readVerb, textTable } from "./verbs.ts";

const WHERE = "Where";
const SHOW = "tunnel ca show";
/** Nodes named in a refusal; the rest is counted. */
const NAMED_MAX = 5;

const FLAGS = {
  "state-dir": stateDirectoryFlag("server", WHERE),
  "json": booleanFlag(false, { group: SHOW, help: "Print JSON." }),
  "pem": booleanFlag(false, {
    group: SHOW,
    help: "Print the certificates that are trusted, PEM.",
  }),
  "force": booleanFlag(false, {
    group: "tunnel ca retire",
    help: "Even if nodes still hold certificates of it: they are locked out " +
      "and have to join again.",
  }),
  ...GENERAL_FLAGS,
} as const;

const VERBS = {
  show: { flags: ["json", "pem"] },
  rotate: {},
  activate: {},
  retire: { flags: ["force"] },
} as const;

/** See the module description. */
export const CA_COMMAND = defineCommand({
  name: "ca",
  summary: "Show and change the server's certificate authority",
  operands: "show | rotate | activate | retire [flags]",
  about: [
    "Runs where the server runs, as its user; a running server notices at " +
    "once. A change has three steps, and no link is dropped. rotate makes the " +
    "next authority, which all nodes are told to trust. activate lets it " +
    "issue; linked nodes get new certificates. retire ends the trust in the " +
    "old one; it is refused while a node still needs it.",
  ],
  examples: ["tunnel ca show", "tunnel ca rotate", "tunnel ca show --pem"],
  flags: FLAGS,
  async run({ values, operands, given }, { print, environment }) {
    const { verb } = readVerb("ca", VERBS, operands, given);
    const state = await StateDirectory.open(
      values["state-dir"] || defaultStateDirectory("server", environment),
    );
    const nodes = await new NodeStore(state).list();
    const show = (authorities: Authorities) =>
      print(
        values["pem"]
          ? authorities.bundle
          : showText(authorities, nodes, values["json"]),
      );
    switch (verb) {
      case "show":
        show(await loadAuthorities(state));
        break;
      case "rotate":
        show(await rotateAuthority(state));
        print("Next: tunnel ca activate, when all nodes have been linked.\n");
        break;
      case "activate":
        show(await activateAuthority(state));
        print("Next: tunnel ca retire, when no node needs the old one.\n");
        break;
      case "retire":
        if (!values["force"]) {
          refuseWhileNeeded(await loadAuthorities(state), nodes);
        }
        show(await retireAuthority(state));
        break;
    }
    return ExitCode.OK;
  },
});

function refuseWhileNeeded(
  { previous }: Authorities,
  nodes: readonly NodeRecord[],
): void {
  if (previous === undefined) return;
  const holders = holdersOf(authorityId(previous), nodes);
  if (holders.length === 0) return;
  const named = holders.slice(0, NAMED_MAX).map(({ name }) => name).join(", ");
  const others = holders.length - NAMED_MAX;
  throw new CommandFailure(
    ExitCode.FAILURE,
    `Cannot retire authority ${authorityId(previous)}: certificates of it ` +
      `are still held by ${named}` + (others > 0 ? `, ${others} more` : "") +
      "; wait until they are renewed, revoke or forget those nodes, or use " +
      "--force (they must join again)",
  );
}

/** Nodes that would be locked out without it. Revoked ones are already. */
function holdersOf(
  authority: string,
  nodes: readonly NodeRecord[],
): NodeRecord[] {
  return nodes.filter(({ state, certificate }) =>
    state !== "revoked" && certificate?.authority === authority
  );
}

function showText(
  authorities: Authorities,
  nodes: readonly NodeRecord[],
  asJson: boolean,
): string {
  const { current, next } = authorities;
  const rows = trustedBy(authorities).map((facts) => ({
    id: authorityId(facts),
    role: facts === current.facts
      ? "issues"
      : facts === next?.facts
      ? "next"
      : "previous",
    nodes: holdersOf(authorityId(facts), nodes).length,
    expiresAt: new Date(facts.notAfterMs).toISOString(),
    pin: pinOf(facts),
  }));
  if (asJson) return JSON.stringify(rows, null, 2) + "\n";
  return textTable(
    ["ID", "ROLE", "NODES", "EXPIRES", "KEY (SHA-256)"],
    rows.map((row) => Object.values(row).map(String)),
  );
}
