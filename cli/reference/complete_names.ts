/**
 * `tunnel complete-names`: names for a shell that completes a word. It asks the
 * programs of this machine, and is silent when none of them answers: a person
 * who has pressed Tab waits, and wants no sentence.
 *
 * @module
 */

import {
  type AdminAddress,
  AdminClient,
} from "../../admin/ask/admin_client.ts";
import { ADMIN_SOCKET } from "../../net/admin/admin_api.ts";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type {
  ConduitsAnswer,
  NodesAnswer,
} from "../../proto/admin/node_answer.ts";
import type { ServicesAnswer } from "../../proto/admin/list_answers.ts";
import { defaultStateDirectory } from "../flags/state_directory.ts";
import { PROGRAMS } from "../flags/admin_flags.ts";
import { flag } from "../flags/flag.ts";
import { type CommandContext, defineCommand } from "../program/command.ts";

/** Longer than this, Tab feels broken. */
const ANSWER_MS = 300;

/** A shell lists no more than a screen or two; the rest is typed. */
const NAMES_MAX = 1_000;

/**
 * Peers choose names: a newline or an escape is not part of a name, and a
 * leading dash would make it a flag.
 */
const NAME = /^(?!-)[^\p{C}\s]{1,253}$/u;

interface Question {
  readonly programs: readonly typeof PROGRAMS[number][];
  readonly path: string;
  readonly names: (answer: unknown) => readonly string[];
}

const QUESTIONS: ReadonlyMap<string, Question> = new Map([
  ["nodes", {
    programs: ["server"],
    path: `${ADMIN_PATHS.nodes}?limit=${NAMES_MAX}`,
    names: (answer) => (answer as NodesAnswer).nodes.map(({ name }) => name),
  }],
  ["services", {
    programs: ["server", "proxy"],
    path: `${ADMIN_PATHS.services}?limit=${NAMES_MAX}`,
    names: (answer) =>
      (answer as ServicesAnswer).services.map(({ name }) => name),
  }],
  ["connections", {
    programs: PROGRAMS,
    path: `${ADMIN_PATHS.conduits}?limit=${NAMES_MAX}`,
    names: (answer) => (answer as ConduitsAnswer).conduits.map(({ id }) => id),
  }],
]);

/** See the module description. */
export const COMPLETE_NAMES_COMMAND = defineCommand({
  name: "complete-names",
  operands: "nodes|services|connections [flags]",
  about: ["What `tunnel completion` makes a shell call."],
  examples: [],
  rights: "network",
  flags: {
    "state-dir": flag.word("DIRECTORY", {
      group: "Where",
      help: "State directory of the program to ask.",
      defaultText: "those of this user's programs",
    }),
  },
  async run({ values, operands }, context) {
    const question = QUESTIONS.get(operands[0] ?? "");
    if (question === undefined) return;
    const names = await firstAnswer(question, values["state-dir"], context);
    const shown = [...new Set(names)].filter((name) => NAME.test(name))
      .slice(0, NAMES_MAX);
    context.print(shown.map((name) => `${name}\n`).join(""));
  },
});

/** From the first program that has one. */
async function firstAnswer(
  { programs, path, names }: Question,
  directory: string,
  { environment }: CommandContext,
): Promise<readonly string[]> {
  const directories = directory !== ""
    ? [directory]
    : programs.map((program) => defaultStateDirectory(program, environment));
  const clients = directories.map((directory) => {
    const address: AdminAddress = {
      kind: "unix",
      path: `${directory}/${ADMIN_SOCKET}`,
    };
    return new AdminClient("program", address);
  });
  const late = setTimeout(() => {
    for (const client of clients) client.close();
  }, ANSWER_MS);
  try {
    return await Promise.any(
      clients.map(async (client) => names(await client.get(path))),
    );
  } catch {
    return [];
  } finally {
    clearTimeout(late);
    for (const client of clients) client.close();
  }
}
