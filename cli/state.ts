/**
 * `tunnel state`: moves what servers have in common to another place, and looks
 * whether it is whole.
 *
 * @module
 */

import { resolve } from "node:path";
import { loadAuthorities } from "../server/identity/authorities.ts";
import { NodeStore } from "../server/identity/node_store.ts";
import { TokenStore } from "../server/identity/token_store.ts";
import type {
  SealingKeySource,
  StoreLocation,
} from "../neighbours/store/store_connection.ts";
import { openExistingState, openPlace } from "../server/state/open_state.ts";
import { readSealingKey } from "../neighbours/store/sealing.ts";
import {
  copyToDirectory,
  copyToRemote,
  countRecords,
  type RecordCounts,
} from "../server/state/state_copy.ts";
import type { Store } from "../neighbours/store/store.ts";
import { flag, inGroup } from "./flags/flag.ts";
import type { FlagReading } from "./flags/read_flags.ts";
import {
  STATE_COMMAND_FLAGS,
  stateKey,
  stateLocation,
} from "./flags/state_flags.ts";
import { UsageError } from "./flags/usage_error.ts";
import { type CommandContext, defineCommand } from "./program/command.ts";
import { readVerb } from "./program/verbs.ts";
import {
  stateSource,
  usingConnection,
  withState,
} from "./program/server_state.ts";

const COPY = "tunnel state copy";

const FLAGS = {
  ...inGroup("Where", STATE_COMMAND_FLAGS),
  "from-key-file": flag.file({
    group: COPY,
    help: "--state-key-file of FROM.",
  }),
  "to-key-file": flag.file({
    group: COPY,
    help: "--state-key-file of TO; etcd and kubernetes want one, or none.",
  }),
} as const;

type Reading = FlagReading<typeof FLAGS>;

const VERBS = {
  copy: { operand: "FROM TO", flags: ["from-key-file", "to-key-file"] },
  check: { flags: ["state", "state-dir", "state-key-file"] },
} as const;

/** See the module description. */
export const STATE_COMMAND = defineCommand({
  name: "state",
  operands: "copy FROM TO | check [flags]",
  about: [
    "copy takes the CA, tokens and nodes of FROM to TO, which must be empty; " +
    "both are a directory, etcd://HOST:PORT[/PREFIX], etcds://… or " +
    "kubernetes[:NAMESPACE]. It looks whether both are the same then, and " +
    "goes on where it was interrupted. Stop the servers first: what they " +
    "change later stays behind. check reads everything in --state.",
  ],
  examples: [
    "tunnel state copy /var/lib/tunnel/server etcds://10.0.0.1:2379 \\",
    "  --etcd-ca-cert ca.crt --to-key-file state.key",
    "tunnel state check --state kubernetes:tunnel-state \\",
    "  --state-key-file state.key",
  ],
  rights: "network",
  flags: FLAGS,
  async run(reading, context) {
    const { verb, operands } = readVerb("state", VERBS, reading);
    const [from, to] = operands;
    if (verb === "copy") await copy(reading, from!, to!, context);
    else await check(reading, context);
  },
});

async function copy(
  { values }: Reading,
  fromText: string,
  toText: string,
  context: CommandContext,
): Promise<void> {
  const place = (text: string, other: string) =>
    stateLocation(
      { ...values, "state": text },
      { stateDirectory: "", hasOtherEtcd: /^etcds?:/.test(other) },
      context,
    );
  const from = place(fromText, toText);
  const to = place(toText, fromText);
  // People remove FROM afterwards.
  const isInside = from.kind === "directory" && to.kind === "directory" &&
    `${resolve(to.root)}/`.startsWith(`${resolve(from.root)}/`);
  if (isInside || fromText === toText) {
    throw new UsageError(
      `Cannot copy ${fromText} into itself (${toText}): name a place apart`,
    );
  }
  const key = (flag: "from-key-file" | "to-key-file", at: StoreLocation) =>
    stateKey({ "state-key-file": values[flag] }, at, flag);
  const fromKey = key("from-key-file", from);
  const toKey = key("to-key-file", to);
  const counts = await usingConnection(from, async (connection) => {
    const source = stateSource(connection, fromKey, context);
    const state = await openExistingState(source);
    try {
      return await copyTo(state, to, toKey, context);
    } finally {
      await state.close();
    }
  });
  context.print(
    `Copied ${
      countsText(counts)
    } from ${fromText} to ${toText}; both are the ` +
      "same. Start the servers with --state there; FROM is as it was, remove " +
      "it when they run.\n",
  );
}

async function copyTo(
  from: Store,
  to: StoreLocation,
  toKey: SealingKeySource | undefined,
  context: CommandContext,
): Promise<RecordCounts> {
  if (to.kind === "directory") {
    const key = await readSealingKey(toKey);
    return await copyToDirectory(from, to.root, key);
  }
  return await usingConnection(to, async (connection) => {
    const place = await openPlace(stateSource(connection, toKey, context));
    try {
      return await copyToRemote(from, place);
    } finally {
      await place.close();
    }
  });
}

async function check(
  { values }: Reading,
  context: CommandContext,
): Promise<void> {
  await withState(values, context, async ({ engine }) => {
    await loadAuthorities(engine);
    await new NodeStore(engine).list();
    await new TokenStore(engine).list(Date.now());
    const counts = await countRecords(engine);
    context.print(`Read ${countsText(counts)}: all records are whole.\n`);
  });
}

function countsText({ ca, tokens, nodes, duplicates }: RecordCounts): string {
  return `${ca} records of the CA, ${tokens} of tokens, ${nodes} nodes and ` +
    `${duplicates} that are linked twice`;
}
