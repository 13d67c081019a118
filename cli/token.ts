/**
 * `tunnel token`: lines that let nodes join.
 *
 * @module
 */

import { hostname } from "node:os";
import { isNodeName } from "../proto/identity/node_name.ts";
import { hostOf, portOf } from "../proto/peer/host_port.ts";
import {
  loadAuthorities,
  pinOfCurrent,
} from "../server/identity/authorities.ts";
import { joinAddress } from "../server/identity/join_address.ts";
import {
  type ListedToken,
  type TokenRecord,
  TokenStore,
} from "../server/identity/token_store.ts";
import { type CommandContext, defineCommand } from "./program/command.ts";
import { failure } from "./program/exit_codes.ts";
import {
  formatHostPort,
  parseAgentServer,
  parseServerList,
} from "./flags/addresses.ts";
import { flag, inGroup } from "./flags/flag.ts";
import { grantsFlag, namePatternFlag } from "./flags/join_flags.ts";
import { FORM_FLAG, JSON_FLAG } from "./flags/program_flags.ts";
import type { FlagReading } from "./flags/read_flags.ts";
import { STATE_COMMAND_FLAGS } from "./flags/state_flags.ts";
import { type CommandState, withState } from "./program/server_state.ts";
import { textTable } from "../admin/ask/text_table.ts";
import { readVerb } from "./program/verbs.ts";

const CREATE = "tunnel token create";

const CREATE_FLAGS = inGroup(CREATE, {
  "ttl": flag.life(3_600_000, 1, "How long nodes may join with it."),
  "uses": flag.count(1, 1, 10_000, "How many nodes may join with it."),
  "node": namePatternFlag({
    help: "Names that may join with it; * stands for any characters.",
  }),
  "identifiers": grantsFlag({
    help: "What its nodes may call themselves besides their name, such as " +
      "ipv4=10.0.0.7&cidr=10.1.0.0/16&default-route=true.",
  }),
  "needs-approval": flag.boolean(false, {
    help: "Nodes wait for `tunnel node approve`.",
  }),
  "note": flag.text("", "Shown in the list."),
  "server": flag.word("HOST:PORT", {
    help: "Where nodes reach the server's agent port; only printed.",
    defaultText: "as the server was started",
  }),
});

const FLAGS = {
  ...inGroup("Where", {
    ...STATE_COMMAND_FLAGS,
    ...FORM_FLAG,
    ...JSON_FLAG,
  }),
  ...CREATE_FLAGS,
} as const;

const VERBS = {
  create: { flags: [...Object.keys(CREATE_FLAGS), "output", "json"] },
  list: { flags: ["output", "json"] },
  revoke: { operand: "ID" },
} as const;

/** See the module description. */
export const TOKEN_COMMAND = defineCommand({
  name: "token",
  operands: "create | list | revoke ID [flags]",
  about: [
    "Runs where the server runs, as its user. A token is one line that a node " +
    "joins with, once; it holds the hash of the server's CA, so the node knows " +
    "the right server. The server keeps only a hash of its secret.",
  ],
  examples: [
    "tunnel token create --node edge-7",
    "tunnel token create --ttl 24h --uses 50 --node 'shop-*'",
    "tunnel token revoke k3vn2xq7ab",
  ],
  rights: "network",
  flags: FLAGS,
  async run(reading, context) {
    const { values } = reading;
    const { verb, operand } = readVerb("token", VERBS, reading);
    await withState(values, context, async (state) => {
      const tokens = new TokenStore(state.engine);
      switch (verb) {
        case "create":
          return await create(reading, state, tokens, context);
        case "list":
          context.print(
            listText(
              await tokens.list(Date.now()),
              values["output"] === "json",
            ),
          );
          return;
        case "revoke":
          return await revoke(operand, tokens, context);
      }
    });
  },
});

async function revoke(
  id: string,
  tokens: TokenStore,
  { print }: CommandContext,
): Promise<void> {
  if (await tokens.revoke(id)) {
    return print(
      `Revoked token ${id}: no node joins with it any more; nodes ` +
        "that did are as before.\n",
    );
  }
  throw failure(
    `Cannot revoke token ${id}: there is none; see tunnel token list`,
    "TUN123",
  );
}

async function create(
  { values }: FlagReading<typeof FLAGS>,
  { engine, stateDirectory }: CommandState,
  tokens: TokenStore,
  { print, printError }: CommandContext,
): Promise<void> {
  const server = values["server"] === ""
    ? await joinAddress(stateDirectory)
    : parseServerList(values["server"])
      .map((one) => formatHostPort(parseAgentServer(one))).join();
  const pin = pinOfCurrent(await loadAuthorities(engine));
  const { token, record } = await tokens.create(
    {
      lifeMs: values["ttl"],
      uses: values["uses"],
      nodePattern: values["node"],
      identifiers: values["identifiers"],
      needsApproval: values["needs-approval"],
      note: values["note"],
    },
    pin,
    Date.now(),
  );
  const { id, expiresAt, nodePattern } = record;
  // Else the node would ask to be called by its host name, and be refused.
  const name = isNodeName(nodePattern) ? ` --node ${nodePattern}` : "";
  if (nodePattern === "*") printError(`${CREATE}: ${ANY_NAME}\n`);
  if (!values["server"] && hostOf(server) === hostname()) {
    printError(
      `${CREATE}: the server's address is the name of this machine, which ` +
        `nodes may not know; --server HOST:${portOf(server)} says another\n`,
    );
  }
  const command = `tunnel agent --server ${server} --join ${token}${name}`;
  print(
    values["output"] === "json"
      ? JSON.stringify({ token, id, expiresAt, server, command }) + "\n"
      : `# On ${nodesText(record)}, before ${expiresAt}:\n${command}\n`,
  );
}

/** A name is a right: connections to a host of that name go to the node. */
const ANY_NAME = "a node may take any name with this token that is still " +
  "free, and gets the connections to it; --node NAME or --node 'shop-*' says " +
  "which";

/** Whom a token lets in, for people: one for all names is worth a look. */
function nodesText({ nodePattern, uses }: TokenRecord): string {
  const nodes = uses === 1 ? "one node" : `up to ${uses} nodes`;
  return nodePattern === "*"
    ? `${nodes} of any name`
    : `${nodes} named ${nodePattern}`;
}

function listText(tokens: readonly ListedToken[], asJson: boolean): string {
  if (asJson) {
    const shown = tokens.map(({ secretHash: _, ...token }) => token);
    return JSON.stringify(shown, null, 2) + "\n";
  }
  return textTable(
    "ID | STATE | USED | NODES | EXPIRES | GRANTS | NOTE",
    tokens.map((token) => [
      token.id,
      token.state,
      `${token.usedBy.length}/${token.uses}`,
      token.nodePattern,
      token.expiresAt,
      token.identifiers || "-",
      token.note,
    ]),
  );
}
