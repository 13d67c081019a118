/**
 * `tunnel support-bundle`: one file for a person who helps, without secrets.
 *
 * @module
 */

import { AdminClient } from "../../admin/ask/admin_client.ts";
import {
  isSystemError,
  systemProblem,
} from "../../platform/files/file_error.ts";
import { effectiveFlags } from "../flags/effective_flags.ts";
import {
  ASKED_FLAGS,
  LOCAL,
  programAt,
  PROGRAMS,
} from "../flags/admin_flags.ts";
import { flag, type FlagValues, inGroup } from "../flags/flag.ts";
import { UsageError } from "../flags/usage_error.ts";
import { defaultStateDirectory } from "../flags/state_directory.ts";
import {
  type Command,
  type CommandContext,
  defineCommand,
  refuseOperands,
} from "../program/command.ts";
import { failure } from "../program/exit_codes.ts";
import { Bundle, type BundledProgram, tarBytes } from "./bundle.ts";

const GROUP = "The bundle";

const FLAGS = {
  ...inGroup(GROUP, {
    "output": flag.word("FILE", {
      short: "o",
      offers: "files",
      help: "Where to write it; there must be no such file yet.",
      defaultText: "tunnel-support-TIME.tar.gz here",
    }),
    "anonymous": flag.boolean(false, {
      help:
        "Put numbers in place of the names and addresses of nodes, users, " +
        "services and targets.",
    }),
    "log": flag.list([], {
      placeholder: "FILE",
      offers: "files",
      help: "Files with log lines; the last megabyte of each is taken.",
    }),
  }),
  ...ASKED_FLAGS,
} as const;

type Values = FlagValues<typeof FLAGS>;
type ProgramName = BundledProgram["name"];

/** How long a program may take to say its metrics. */
const METRICS_MS = 10_000;

/** @param commands All of them, for their flags and for what doctor finds. */
export function supportCommand(
  commands: () => Promise<readonly Command[]>,
): Command {
  return defineCommand({
    name: "support-bundle",
    operands: "[flags]",
    about: [
      "Asks the server, the agent and the proxy of this machine (or the one " +
      "that --server, --agent or --proxy names) and writes a .tar.gz: " +
      "versions, status, nodes, connections, events, metrics, flags in " +
      "effect, what tunnel doctor finds, the machine and its limits, and " +
      "which files the state directory has.",
      "Keys, tokens and passwords are left out, and so is what looks like " +
      "one. Look through the file before you pass it on.",
    ],
    examples: [
      "tunnel support-bundle",
      "tunnel support-bundle --anonymous -o /tmp/help.tar.gz",
      "journalctl -u tunnel-server > /tmp/log; tunnel support-bundle " +
      "--log /tmp/log",
    ],
    rights: "network",
    flags: FLAGS,
    async run({ values, operands, given }, context) {
      if (operands.length === 1) {
        throw new UsageError(
          `Unexpected word "${operands[0]}"; the file is named by ` +
            `--output=${operands[0]}`,
        );
      }
      refuseOperands(operands);
      if (values["output"] === "-") {
        throw new UsageError("Cannot write to standard output: name a file");
      }
      const time = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, "");
      const folder = `tunnel-support-${time}`;
      const path = values["output"] || `${folder}.tar.gz`;
      const known = new Map(
        (await commands()).map((command) => [command.name, command]),
      );
      const programs = namesOf(values, given)
        .map((name) => programOf(name, values, given, known, context));
      try {
        const bundle = new Bundle(folder, {
          programs,
          logs: values["log"],
          isAnonymous: values["anonymous"],
          fetchText,
        });
        await write(
          path,
          ReadableStream.from(tarBytes(bundle.files(), Date.now())),
        );
      } finally {
        for (const { client } of programs) client.close();
      }
      context.print(`${path}\n`);
      context.printError(
        "tunnel support-bundle: look through it before you pass it on: tar " +
          `-xzf ${path}\n`,
      );
    },
  });
}

/** Those that are named, or all of this machine. */
function namesOf(
  values: Values,
  given: ReadonlySet<string>,
): readonly ProgramName[] {
  const named = PROGRAMS
    .filter((name) => given.has(name) && values[name] !== "");
  return named.length === 0 ? PROGRAMS : named;
}

function programOf(
  name: ProgramName,
  values: Values,
  given: ReadonlySet<string>,
  commands: ReadonlyMap<string, Command>,
  context: CommandContext,
): BundledProgram {
  const place = given.has(name) ? values[name] : LOCAL;
  const asked = programAt(name, place, values, context);
  const stateDirectory = values["state-dir"] ||
    defaultStateDirectory(name, context.environment);
  const table = commands.get(name)?.flags;
  const doctor = commands.get("doctor");
  return {
    name,
    client: new AdminClient(asked.program, asked.address),
    stateDirectory,
    ...(table && {
      flags: () => effectiveFlags(name, table, { ...context, argv: [] }),
    }),
    ...(doctor && name !== "proxy" && place === LOCAL && {
      doctor: () => printedBy(doctor, [name], context),
    }),
  };
}

/** What a command prints. */
async function printedBy(
  command: Command,
  argv: readonly string[],
  context: CommandContext,
): Promise<string> {
  let text = "";
  const print = (more: string) => void (text += more);
  const { environment, readFile } = context;
  await command.run({ environment, readFile, argv, print, printError: print });
  return text;
}

async function fetchText(url: string): Promise<string> {
  const signal = AbortSignal.timeout(METRICS_MS);
  const response = await fetch(url, { signal });
  const text = await response.text();
  if (!response.ok) throw new Error(`it answered ${response.status}`);
  return text;
}

/** @throws {CommandFailure} */
async function write(
  path: string,
  bytes: ReadableStream<Uint8Array<ArrayBuffer>>,
): Promise<void> {
  try {
    const file = await Deno.open(path, {
      write: true,
      createNew: true,
      mode: 0o600,
    });
    await bytes.pipeThrough(new CompressionStream("gzip")).pipeTo(
      file.writable,
    );
  } catch (error) {
    const isThere = error instanceof Deno.errors.AlreadyExists;
    if (!isThere && !isSystemError(error)) throw error;
    const why = isThere ? "there is such a file already" : systemProblem(error);
    throw failure(`Cannot write ${path}: ${why}`, "TUN114");
  }
}
