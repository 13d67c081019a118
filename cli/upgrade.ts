/**
 * `tunnel upgrade`: a running process is replaced by another program. The file
 * is checked before the process learns of it; the process itself starts it
 * (`net/handover/upgrade.ts`) and stays if that fails.
 *
 * @module
 */

import {
  ProcessRefusal,
  RunningProcess,
} from "../net/handover/running_process.ts";
import { openLibc } from "../net/libc/libc.ts";
import { messageOf, quietly } from "../platform/errors/error_code.ts";
import { checkSeen } from "../platform/files/private_files.ts";
import { within } from "../platform/time/deadline.ts";
import { systemTimers } from "../platform/time/system_timers.ts";
import { flag, type FlagValues, inGroup } from "./flags/flag.ts";
import { handoverAddress } from "./flags/program_flags.ts";
import { defaultStateDirectory } from "./flags/state_directory.ts";
import { PROGRAMS, PROXY_ADMIN_PORT } from "./flags/admin_flags.ts";
import {
  type CommandContext,
  defineCommand,
  onlyOperand,
  refuseOperands,
} from "./program/command.ts";
import { CommandFailure, failure } from "./program/exit_codes.ts";
import { CHECKS_FILE } from "./program/rights.ts";

const WHICH = "Which process";

const FLAGS = {
  ...inGroup(WHICH, {
    "command": flag.choice(["any", ...PROGRAMS], "any", {
      help: "What it runs as.",
      defaultText: "the one that runs here",
    }),
    "state-dir": flag.word("DIRECTORY", {
      help: "Its --state-dir, when that is not the usual one.",
    }),
    "handover-socket": flag.word("PATH", {
      help: "Its --handover-socket: a path, or @NAME. A process without an " +
        "identity has @tunnel-COMMAND-HOST-PORT; see docs/operations.md.",
    }),
  }),
  "timeout": flag.duration(60_000, 1_000, {
    group: "How",
    help: "The new program is ended, and the old one goes on, when it has " +
      "not taken over within this time.",
  }),
} as const;

/** The default ports, which distinguish programs without an identity. */
const USUAL_PORTS = { server: 8091, agent: 8093 } as const;

/** How long the new process may take to listen where the old one did. */
const SUCCESSOR_MS = 10_000;

const SUCCESSOR_LOOK_MS = 50;

/** Limit on a file's output. */
const WORDS_MAX = 500;

/** See the module description. */
export const UPGRADE_COMMAND = defineCommand({
  name: "upgrade",
  operands: "FILE [flags]",
  about: [
    "Asks the running process to start FILE in its place, with its own flags " +
    "and environment. The new process takes over the ports when it is ready, so " +
    "that no client is refused; the old one ends when its connections have ended. " +
    "If the new one fails, or is not ready in time, the old one goes on, and the " +
    "reason is printed. Only root and the process's own user may ask.",
  ],
  examples: [
    "tunnel upgrade /usr/local/bin/tunnel-1.2.0",
    "tunnel upgrade ./tunnel --command agent",
  ],
  rights: "programs",
  flags: FLAGS,
  async run({ values, operands }, context) {
    refuseOperands(operands.slice(1));
    const wanted = "Nothing to do: wanted tunnel upgrade FILE";
    const word = onlyOperand(operands, wanted);
    if (openLibc() === undefined) {
      throw refused(
        "Cannot upgrade: Linux alone hands ports over; end it and start anew",
      );
    }
    const file = await executable(word);
    // The look at the file takes nothing from the new program's time: a first
    // start unpacks it, which takes seconds on a slow disk.
    const timeoutMs = values["timeout"];
    const untilMs = systemTimers.now() + timeoutMs;
    const leftMs = () => Math.max(0, untilMs - systemTimers.now());
    const version = await versionOf(file, leftMs);
    const { process, address } = await findProcess(values, context);
    const { command, pid } = process;
    const before = `${process.version} (${process.name})`;
    try {
      const outcome = await process.upgrade(file, timeoutMs);
      if (outcome.kind === "failed") {
        throw refused(
          `Cannot upgrade the ${command}, ${process.name} goes on: ${file} was ` +
            `started, and ${outcome.reason}${lastWords(outcome.words)}`,
        );
      }
    } catch (error) {
      if (!(error instanceof ProcessRefusal)) throw error;
      throw refused(`Cannot upgrade the ${command}: ${error.message}`);
    } finally {
      process.close();
    }
    const successor = await successorAt(address, pid);
    const now = successor === undefined ? "" : ` (process ${successor})`;
    context.print(`${command}: was ${before}, is ${version}${now}\n`);
  },
});

/** @returns Its whole path. */
async function executable(name: string): Promise<string> {
  const file = name.startsWith("/")
    ? name
    : `${Deno.cwd()}/${name.replace(/^\.\//, "")}`;
  try {
    const seen = await Deno.stat(file);
    if (!seen.isFile) throw new Error("it is no file");
    if (((seen.mode ?? 0) & 0o111) === 0) {
      throw new Error("it may not be executed; chmod +x it");
    }
    // A user who can write to it would get our rights.
    checkSeen(file, seen, "change");
    return file;
  } catch (error) {
    throw refused(`Cannot upgrade to ${name}: ${messageOf(error)}`);
  }
}

/** @throws {CommandFailure} It is no program of ours, or cannot be upgraded to. */
async function versionOf(file: string, leftMs: () => number): Promise<string> {
  const text = await outputOf(file, leftMs(), "version", "--output=json");
  const version: unknown = quietly(() => JSON.parse(text).tunnel);
  if (typeof version !== "string") {
    throw refused(
      `Cannot upgrade to ${file}: it is no tunnel; it answers \`version\` with ` +
        JSON.stringify(text.slice(0, 80)),
    );
  }
  // A program that can send the request knows what to do with the answer.
  await outputOf(file, leftMs(), "upgrade", "--help");
  return version;
}

async function outputOf(
  file: string,
  timeoutMs: number,
  ...args: readonly string[]
): Promise<string> {
  const problem = (why: string) =>
    refused(`Cannot upgrade to ${file}: \`${args[0]}\` ${why}`);
  let child: Deno.ChildProcess;
  try {
    child = new Deno.Command(file, {
      args: [...args],
      env: { [CHECKS_FILE]: "1" },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
      // A process group of its own, so that its child processes end with it.
      detached: true,
    }).spawn();
  } catch (error) {
    throw problem(`cannot be run: ${messageOf(error)}`);
  }
  const seconds = Math.max(1, Math.round(timeoutMs / 1000));
  // A process that keeps the pipes holds the output up, even in another group.
  const { code, stdout, stderr } = await within({
    timers: systemTimers,
    timeoutMs,
    late: () => problem(`was not answered within ${seconds} s`),
  }, child.output())
    .finally(() => quietly(() => Deno.kill(-child.pid, "SIGKILL")));
  if (code === 0) return new TextDecoder().decode(stdout);
  throw problem(
    `ends with exit code ${code}${lastWords(new TextDecoder().decode(stderr))}`,
  );
}

interface Found {
  readonly process: RunningProcess;
  readonly address: string;
}

type Which = FlagValues<typeof FLAGS>;

async function findProcess(
  values: Which,
  { environment }: Pick<CommandContext, "environment">,
): Promise<Found> {
  const wanted = values["command"];
  const found: Found[] = [];
  const problems: string[] = [];
  for (const address of addressesOf(values, environment)) {
    try {
      const process = await RunningProcess.find(address);
      if (process === undefined) continue;
      if (wanted === "any" || process.command === wanted) {
        found.push({ process, address });
      } else process.close();
    } catch (error) {
      problems.push(`${address}: ${messageOf(error)}`);
    }
  }
  const [first, ...others] = found;
  if (first !== undefined && others.length === 0) return first;
  for (const { process } of found) process.close();
  const what = wanted === "any" ? "server, agent or proxy" : wanted;
  if (first === undefined) {
    throw refused(
      `No ${what} was found that runs here${
        problems.length === 0 ? "" : ` (${problems.join("; ")})`
      }; name it with --state-dir or --handover-socket`,
    );
  }
  const list = found
    .map(({ process, address }) => `${process.command} at ${address}`);
  throw refused(
    `Several run here (${list.join(", ")}): say which with --command or ` +
      "--handover-socket",
  );
}

/** The default handover addresses. */
function addressesOf(
  values: Which,
  environment: CommandContext["environment"],
): ReadonlySet<string> {
  const { "handover-socket": flag, "state-dir": directory } = values;
  if (flag !== "") return new Set([flag]);
  if (directory !== "") return new Set([`${directory}/handover.sock`]);
  const at = (
    command: typeof PROGRAMS[number],
    hostname: string,
    port: number,
  ) => handoverAddress({ command, flag, port: { hostname, port } })!;
  return new Set([
    `${defaultStateDirectory("server", environment)}/handover.sock`,
    `${defaultStateDirectory("agent", environment)}/handover.sock`,
    at("server", "", USUAL_PORTS.server),
    at("agent", "", USUAL_PORTS.agent),
    at("proxy", "127.0.0.1", PROXY_ADMIN_PORT),
  ]);
}

/** @returns The process that is there now. */
async function successorAt(
  address: string,
  before: number,
): Promise<number | undefined> {
  const untilMs = systemTimers.now() + SUCCESSOR_MS;
  while (systemTimers.now() < untilMs) {
    const process = await RunningProcess.find(address).catch(() => undefined);
    process?.close();
    if (process !== undefined && process.pid !== before) return process.pid;
    await new Promise<void>((resolve) =>
      systemTimers.after(SUCCESSOR_LOOK_MS, resolve)
    );
  }
  return undefined;
}

function lastWords(words: string): string {
  const text = words.trim().slice(-WORDS_MAX);
  return text === "" ? "; it said nothing" : `; its last words: ${text}`;
}

function refused(sentence: string): CommandFailure {
  return failure(sentence, "TUN913");
}
