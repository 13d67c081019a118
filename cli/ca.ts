/**
 * `tunnel ca`: the server's certificate authorities, and changing them.
 *
 * @module
 */

import { pinOf } from "../platform/pki/certificate.ts";
import {
  activateAuthority,
  type Authorities,
  loadAuthorities,
  retireAuthority,
  rotateAuthority,
  trustedBy,
} from "../server/identity/authorities.ts";
import {
  certified,
  holdersOf,
  knowersOf,
  stepOf,
} from "../server/identity/authority_step.ts";
import { type NodeRecord, NodeStore } from "../server/identity/node_store.ts";
import type { Store } from "../neighbours/store/store.ts";
import { type CommandContext, defineCommand } from "./program/command.ts";
import { ProgressLine } from "./program/progress.ts";
import { failure } from "./program/exit_codes.ts";
import { flag, inGroup } from "./flags/flag.ts";
import { FORM_FLAG, JSON_FLAG } from "./flags/program_flags.ts";
import { STATE_COMMAND_FLAGS } from "./flags/state_flags.ts";
import { withState } from "./program/server_state.ts";
import { textTable } from "../admin/ask/text_table.ts";
import { readVerb } from "./program/verbs.ts";
import { authorityIdOf } from "../proto/identity/enrolment.ts";

/** Nodes named below the table; the rest is counted. */
const NAMED_MAX = 5;

const FLAGS = {
  ...inGroup("Where", STATE_COMMAND_FLAGS),
  ...inGroup("tunnel ca show", {
    ...FORM_FLAG,
    ...JSON_FLAG,
    "pem": flag.boolean(false, "Print the certificates that are trusted, PEM."),
  }),
  "force": flag.boolean(false, {
    group: "tunnel ca retire",
    help: "Retire it even if nodes still hold certificates of it: they are " +
      "locked out and must join again.",
  }),
  "wait": flag.boolean(false, {
    group: "tunnel ca rotate, activate",
    help: "Go on until the next step is safe: all nodes know the next " +
      "authority, or none needs the old one any more. A terminal is told how " +
      "far it is. Ctrl-C ends only the waiting.",
  }),
} as const;

const VERBS = {
  show: { flags: ["output", "json", "pem"] },
  rotate: { flags: ["wait"] },
  activate: { flags: ["wait"] },
  retire: { flags: ["force"] },
} as const;

/** See the module description. */
export const CA_COMMAND = defineCommand({
  name: "ca",
  operands: "show | rotate | activate | retire [flags]",
  about: [
    "Runs where the server runs, as its user; a running server notices at " +
    "once. A change has three steps, and no link is dropped. rotate makes the " +
    "next authority, which all nodes are asked to trust. activate lets it " +
    "issue; linked nodes get new certificates. retire ends the trust in the " +
    "old one; it is refused while a node still needs it.",
  ],
  examples: [
    "tunnel ca show",
    "tunnel ca rotate --wait",
    "tunnel ca show --pem",
  ],
  rights: "network",
  flags: FLAGS,
  async run(reading, context) {
    const { values } = reading;
    const { print } = context;
    const { verb } = readVerb("ca", VERBS, reading);
    await withState(values, context, async ({ engine: state }) => {
      const nodes = await new NodeStore(state).list();
      const show = (authorities: Authorities) =>
        print(
          values["pem"] ? authorities.bundle : showText(
            authorities,
            nodes,
            values["output"] === "json",
          ),
        );
      const change = async (
        make: (state: Store) => Promise<Authorities>,
        next: string,
      ) => {
        show(await make(state));
        if (values["wait"]) await untilSafe(state, context);
        else print(`Next: ${next}.\n`);
      };
      switch (verb) {
        case "show":
          show(await loadAuthorities(state));
          break;
        case "rotate":
          await change(
            rotateAuthority,
            "tunnel ca activate, when it is known to all nodes",
          );
          break;
        case "activate":
          await change(
            activateAuthority,
            "tunnel ca retire, when no node needs the old one",
          );
          break;
        case "retire":
          if (!values["force"]) {
            refuseWhileNeeded(await loadAuthorities(state), nodes);
          }
          show(await retireAuthority(state));
      }
    });
  },
});

/** How often it is looked: nodes tell of themselves within seconds. */
const LOOK_EVERY_MS = 1_000;

/** Waits until no node would be locked out by the next step. */
async function untilSafe(
  state: Store,
  { print }: CommandContext,
): Promise<void> {
  const line = new ProgressLine();
  for (;;) {
    const nodes = await new NodeStore(state).list();
    const { concerned, lacking, done, command } = stepOf(
      await loadAuthorities(state),
      nodes,
    );
    const told = concerned.length - lacking.length;
    const whole = `${told} of ${concerned.length} nodes ${done}`;
    if (lacking.length === 0) {
      line.clear();
      print(`${whole}.\n`);
      return print(`Next: ${command}\n`);
    }
    line.show(`${whole}; waiting for ${someOf(lacking)}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

function refuseWhileNeeded(
  { current, previous }: Authorities,
  nodes: readonly NodeRecord[],
): void {
  if (previous === undefined) return;
  const id = authorityIdOf(previous);
  const holders = holdersOf(id, nodes);
  if (holders.length === 0) return;
  const unaware = holders.filter(({ trusts }) =>
    !trusts?.includes(authorityIdOf(current.facts))
  );
  throw failure(
    `Cannot retire authority ${id}: certificates of it are still held by ` +
      namesOf(holders) +
      (unaware.length === 0
        ? "; all of them know the new one, and renew within seconds"
        : unaware.length === holders.length
        ? ", who have not yet said that they know the new one"
        : `; ${
          namesOf(unaware)
        } have not yet said that they know the new one`) +
      "; wait until they are renewed, revoke or forget those nodes, or use " +
      "--force (they must join again)",
    "TUN327",
  );
}

function someOf(nodes: readonly NodeRecord[], hint = ""): string {
  const named = namesOf(nodes.slice(0, NAMED_MAX));
  const more = nodes.length - NAMED_MAX;
  return more > 0 ? `${named}, ${more} more${hint}` : named;
}

/** All of them: a person has to look after each. */
function namesOf(nodes: readonly NodeRecord[]): string {
  return nodes.map(({ name }) => name).join(", ");
}

type Row = ReturnType<typeof rowsOf>[number];

/** The authorities, and what nodes have to do with each. */
function rowsOf(authorities: Authorities, nodes: readonly NodeRecord[]) {
  const { current, next } = authorities;
  return trustedBy(authorities).map((facts) => ({
    id: authorityIdOf(facts),
    role: facts === current.facts
      ? "issues"
      : facts === next?.facts
      ? "next"
      : "previous",
    /** Nodes with a certificate of it. */
    heldBy: holdersOf(authorityIdOf(facts), nodes),
    /** Nodes that report that they trust it. */
    knownTo: knowersOf(authorityIdOf(facts), nodes),
    expiresAt: new Date(facts.notAfterMs).toISOString(),
    pin: pinOf(facts),
  }));
}

/**
 * As JSON all nodes are listed; as text only the few that an operator waits
 * for.
 */
function showText(
  authorities: Authorities,
  nodes: readonly NodeRecord[],
  asJson: boolean,
): string {
  const rows = rowsOf(authorities, nodes);
  if (asJson) {
    const named = rows.map(({ heldBy, knownTo, ...row }) => ({
      ...row,
      nodes: heldBy.length,
      heldBy: heldBy.map(({ name }) => name),
      knownTo: knownTo.map(({ name }) => name),
    }));
    return JSON.stringify(named, null, 2) + "\n";
  }
  const there = certified(nodes);
  const table = textTable(
    "ID | ROLE | NODES | KNOWN TO | EXPIRES | KEY (SHA-256)",
    rows.map(({ id, role, heldBy, knownTo, expiresAt, pin }) => [
      id,
      role,
      String(heldBy.length),
      `${knownTo.length} of ${there.length}`,
      expiresAt,
      pin,
    ]),
  );
  return table + rows.map((row) => waitText(row, there)).join("");
}

/** The nodes for which the next step is not safe yet, in a line. */
function waitText(
  { id, role, heldBy, knownTo }: Row,
  there: readonly NodeRecord[],
): string {
  const waited = role === "previous"
    ? heldBy
    : there.filter((node) => role === "next" && !knownTo.includes(node));
  if (waited.length === 0) return "";
  const what = role === "next"
    ? `Not yet known to have heard of ${id}`
    : `Still with a certificate of ${id}`;
  return `${what}: ${someOf(waited, " (--json names all)")}\n`;
}
