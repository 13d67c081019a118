/**
 * `tunnel install` and `tunnel uninstall`: a server, an agent or a proxy as a
 * service of systemd, with a user of its own.
 *
 * Flags are checked before anything is written. A running service is restarted
 * with its ports kept open.
 *
 * @module
 */

import { messageOf, quietly } from "../../platform/errors/error_code.ts";
import { kindAt } from "../../platform/files/kind_at.ts";
import { removeFile, replaceFile } from "../../platform/files/atomic_file.ts";
import { flag } from "../flags/flag.ts";
import { joinTokenText } from "../flags/join_flags.ts";
import { GENERAL_FLAGS } from "../flags/program_flags.ts";
import { environmentName, readFlags } from "../flags/read_flags.ts";
import { HIDDEN } from "../flags/secrets.ts";
import { UsageError } from "../flags/usage_error.ts";
import {
  type Command,
  type CommandContext,
  defineCommand,
  refuseOperands,
} from "../program/command.ts";
import { failure } from "../program/exit_codes.ts";
import { OWN_FILE } from "../program/rights.ts";
import {
  type Kind,
  KINDS,
  PACKAGED_PROGRAM,
  PACKAGED_UNITS,
  pathsOf,
  type ServiceFile,
  serviceFiles,
  type ServicePlan,
  unitsOf,
  USERS,
} from "./units.ts";

/** How long connections may take to end, by program. */
const DRAINS = new Set(["drain-timeout", "graceful-shutdown-timeout"]);

/** The new place of a file that the service's user cannot read. */
const FOR_ALL = "/usr/local/bin/tunnel";

/** Finds a command that can be a service, with its flags. */
export type FindCommand = (kind: Kind) => Promise<Command>;

/** See the module description. */
export function installCommand(find: FindCommand): Command {
  const command = defineCommand({
    name: "install",
    operands: `${KINDS.join("|")} [flags of that command]`,
    about: [
      "Writes the units, starts them now and at each boot, and waits until the " +
      "program is ready. It runs as the user tunnel, confined, with its state " +
      "in /var/lib/tunnel. Run it again with other flags to change them. What " +
      "a token is for stands in a file that root alone can read.",
      "A server's agent port is opened by systemd, so it may be below 1024, and " +
      "a restart refuses nobody. A file that lies in /usr or /opt is started " +
      `from there; another one is copied to ${FOR_ALL}.`,
    ],
    examples: [
      "tunnel install server",
      "tunnel install agent --server tunnel.example:8091 --join tnl1.…",
      "tunnel install agent --server tunnel.example:8091 --print",
    ],
    rights: "programs",
    flags: {
      "print": flag.boolean(false, {
        group: "How",
        help: "Only show the files: write and start nothing.",
      }),
      "help": GENERAL_FLAGS.help,
    },
    async run({ values, operands }, context) {
      const [kind, words] = kindOf("install", operands);
      const command = await find(kind);
      const plan = planOf(kind, command, words, context);
      const files = serviceFiles(plan);
      if (values["print"]) {
        return context.print(files.map(shown).join("\n"));
      }
      refuseElsewhere("install");
      await install(plan, files, context);
    },
  });
  // Flags behind the first word are the program's, but for what only we have.
  const run = (context: CommandContext) => {
    const { argv } = context;
    const isOwn = (word: string) => /^(?:-h|--?(?:help|all|print))$/.test(word);
    const at = argv.findIndex((word) => !word.startsWith("-"));
    const behind = at < 0 ? [] : argv.slice(at);
    const own = [
      ...argv.slice(0, argv.length - behind.length),
      ...behind.filter(isOwn),
    ];
    const others = behind.filter((word) => !isOwn(word));
    return command.run({ ...context, argv: [...own, "--", ...others] });
  };
  return { ...command, run };
}

/** See the module description. */
export const UNINSTALL_COMMAND = defineCommand({
  name: "uninstall",
  operands: `${KINDS.join("|")} [--purge]`,
  about: [
    "Its connections are ended as by SIGTERM. State stays in /var/lib/tunnel, " +
    "so that tunnel install goes on with the same identity.",
  ],
  examples: ["tunnel uninstall agent", "tunnel uninstall server --purge"],
  rights: "programs",
  flags: {
    "purge": flag.boolean(false, {
      group: "How",
      help: "Remove its state, too: keys, certificates, tokens, nodes.",
    }),
    "help": GENERAL_FLAGS.help,
  },
  async run({ values, operands }, { print }) {
    const [kind, words] = kindOf("uninstall", operands);
    refuseOperands(words);
    refuseElsewhere("uninstall");
    const units = [`tunnel-${kind}.service`];
    if (kind === "server") units.unshift("tunnel-server.socket");
    for (const unit of units) {
      // One that is not there is as it shall be.
      const loaded = await said("systemctl", "cat", unit).catch(() => "");
      if (loaded !== "") await said("systemctl", "disable", "--now", unit);
    }
    const paths = [...pathsOf(kind)];
    if (values["purge"]) paths.push(`/var/lib/tunnel/${kind}`);
    let removed = 0;
    for (const path of paths) {
      if (await removeFile(path, { recursive: true })) removed++;
    }
    await said("systemctl", "daemon-reload");
    print(
      `${units.at(-1)}: stopped, ${removed} files removed` +
        (values["purge"]
          ? "\n"
          : `; its state is in /var/lib/tunnel/${kind}\n`),
    );
  },
});

function kindOf(
  command: string,
  [word, ...words]: readonly string[],
): readonly [Kind, readonly string[]] {
  const kind = KINDS.find((kind) => kind === word);
  if (kind !== undefined) return [kind, words];
  throw new UsageError(
    `Cannot ${command} ${word === undefined ? "nothing" : `"${word}"`}: ` +
      `wanted tunnel ${command} ${KINDS.join("|")}`,
  );
}

/** @throws {UsageError} The first flag that the program would refuse. */
function planOf(
  kind: Kind,
  command: Command,
  words: readonly string[],
  { environment, readFile }: CommandContext,
): ServicePlan {
  // The service does not have the variables of the user who installs it.
  const sources = { argv: words, environment: () => undefined, readFile };
  const [problem] = command.flagProblems(sources);
  if (problem !== undefined) throw problem;
  const { given, operands, ...reading } = readFlags(
    kind,
    command.flags,
    sources,
  );
  const values: Readonly<Record<string, unknown>> = reading.values;
  refuseOperands(operands);
  if (given.has("state-dir")) {
    throw new UsageError(
      `Cannot install with --state-dir: a service has /var/lib/tunnel/${kind}`,
    );
  }
  const token = joinTokenText(
    String(values["join"] ?? ""),
    String(values["join-file"] ?? ""),
  );
  const [drain] = Object.entries(values).filter(([flag]) =>
    DRAINS.has(flag) && given.has(flag)
  ).map(([, value]) => Number(value));
  const file = environment(OWN_FILE) ?? FOR_ALL;
  const isInPlace = /^\/(?:usr|opt)\//.test(file);
  return {
    kind,
    program: isInPlace ? file : FOR_ALL,
    isPackaged: file === PACKAGED_PROGRAM &&
      kindAt(`${PACKAGED_UNITS}/tunnel-${kind}.service`) === "file",
    words: without(words, token === "" ? [] : ["join", "join-file"]),
    secrets: new Map(token === "" ? [] : [[environmentName("join"), token]]),
    drainMs: drain,
    ...(kind === "server" ? listening(values) : {}),
  };
}

/** The addresses for systemd to listen on: those of the server's flags. */
function listening(
  { "agent-port": port, "agent-bind-address": host }: Readonly<
    Record<string, unknown>
  >,
): { readonly listen?: string } {
  if (typeof port !== "number" || port === 0) return {};
  const at = String(host ?? "");
  if (at !== "" && !/^[\d.]+$|^[\da-f:]+$/i.test(at)) return {};
  return {
    listen: `${at.includes(":") || at === "" ? `[${at || "::"}]` : at}:${port}`,
  };
}

/** Words without these flags and their values. */
function without(
  words: readonly string[],
  flags: readonly string[],
): readonly string[] {
  const left: string[] = [];
  for (let index = 0; index < words.length; index++) {
    const [, name = "", equals] = /^--?([\w-]+)(=)?/.exec(words[index]!) ?? [];
    if (!flags.includes(name.replaceAll("_", "-"))) left.push(words[index]!);
    else if (equals === undefined) index++;
  }
  return left;
}

function shown({ path, text, isSecret }: ServiceFile): string {
  const lines = isSecret ? text.replaceAll(/=.*/g, `=${HIDDEN}`) : text;
  return `# ${path}\n${lines}`;
}

function refuseElsewhere(command: string): void {
  const why = kindAt("/run/systemd/system") !== "directory"
    ? "systemd does not run here; tunnel install KIND --print shows its units, " +
      "and docs/install.md has other ways"
    : Deno.uid() !== 0
    ? "only root may; run it with sudo"
    : undefined;
  if (why === undefined) return;
  throw failure(`Cannot ${command}: ${why}`);
}

async function install(
  plan: ServicePlan,
  files: readonly ServiceFile[],
  { environment, print }: CommandContext,
): Promise<void> {
  const { kind, program } = plan;
  const units = unitsOf(plan);
  const service = units.at(-1)!;
  await copyProgram(environment(OWN_FILE), program);
  await said("systemd-sysusers", "--inline", ...userLines());
  const place = `/etc/systemd/system/tunnel-${kind}.socket.d/install.conf`;
  const socketNow = () => quietly(() => Deno.readTextFileSync(place));
  const wasSocket = socketNow();
  const kept = new Set(files.map(({ path }) => path));
  for (const path of pathsOf(kind)) {
    if (!kept.has(path)) await Deno.remove(path).catch(() => {});
  }
  for (const { path, text, isSecret } of files) {
    await Deno.mkdir(path.slice(0, path.lastIndexOf("/")), { recursive: true });
    await replaceFile(path, text);
    await Deno.chmod(path, isSecret ? 0o600 : 0o644);
    print(`wrote ${path}\n`);
  }
  await said("systemctl", "daemon-reload");
  await said("systemctl", "enable", ...units);
  const isActive = await isUp(service);
  const hasMoved = wasSocket !== socketNow();
  try {
    if (isActive && hasMoved) {
      await said("systemctl", "stop", ...units);
      await said("systemctl", "start", ...units);
    } else if (isActive) await said("systemctl", "restart", service);
    else await said("systemctl", "start", ...units);
  } catch {
    const words = ["-u", service, "-n", "4", "-o", "cat", "--no-pager"];
    const last = await said("journalctl", ...words).catch(messageOf);
    throw failure(
      `${service} is installed and does not start; it says: ${last.trim()}` +
        ` (journalctl -u ${service} has all)`,
    );
  }
  print(
    `${service}: ${isActive ? "restarted" : "started"}, and at each boot; ` +
      `look at it with tunnel doctor ${
        kind === "proxy" ? "agent" : kind
      } and ` +
      `journalctl -u tunnel-${kind}\n`,
  );
}

/** Replaced whole: it may be running. */
async function copyProgram(
  from: string | undefined,
  to: string,
): Promise<void> {
  if (from === to || from === undefined && kindAt(to) === "file") return;
  if (from === undefined) {
    throw failure(
      `Cannot install from source: put the packaged file to ${FOR_ALL} first ` +
        "(deno task release makes it)",
    );
  }
  const fresh = `${to}.new`;
  await Deno.mkdir(to.slice(0, to.lastIndexOf("/")), { recursive: true });
  await Deno.copyFile(from, fresh);
  await Deno.chmod(fresh, 0o755);
  await Deno.rename(fresh, to);
}

const userLines = () =>
  USERS.split("\n").filter((line) => line !== "" && !line.startsWith("#"));

async function isUp(unit: string): Promise<boolean> {
  return await said("systemctl", "is-active", unit)
    .then(() => true, () => false);
}

/** Runs a program of the machine. @throws {CommandFailure} Its last words. */
async function said(command: string, ...args: string[]): Promise<string> {
  const decoder = new TextDecoder();
  try {
    const { success, stdout, stderr } = await new Deno.Command(command, {
      args,
      stdin: "null",
    }).output();
    if (success) return decoder.decode(stdout);
    throw new Error(decoder.decode(stderr).trim());
  } catch (error) {
    throw failure(
      `Cannot run ${command} ${args.join(" ")}: ${messageOf(error)}`,
    );
  }
}
