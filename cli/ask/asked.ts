/**
 * The program that a command asks: the named one, or the one that runs on this
 * machine.
 *
 * @module
 */

import { type AdminClient, AdminError } from "../../admin/ask/admin_client.ts";
import { type Page, pageOf } from "../../admin/ask/page.ts";
import {
  type ANSWER_FLAGS,
  type ASKED_FLAGS,
  type AskedProgram,
  askedProgram,
  LOCAL,
  programAt,
  PROGRAMS,
  withWorkers,
} from "../flags/admin_flags.ts";
import { codeOf } from "../../platform/errors/error_code.ts";
import type { FlagValues } from "../flags/flag.ts";
import { askedClient, printAnswer } from "../program/answer_output.ts";
import type { CommandContext } from "../program/command.ts";
import { type ExitCode, failure } from "../program/exit_codes.ts";

type Asked = FlagValues<typeof ASKED_FLAGS>;

/**
 * The programs to ask, the likeliest first: only the named one, if a flag names
 * one; else those with a socket on this machine; else those at the usual ports.
 * For several workers, each of them.
 */
export function askedPrograms(
  values: Asked,
  given: ReadonlySet<string>,
  context: Pick<CommandContext, "environment" | "readFile">,
): readonly AskedProgram[] {
  if (isNamed(values, given)) {
    return withWorkers(askedProgram(values, given, context));
  }
  const local = PROGRAMS.map((program) =>
    programAt(program, LOCAL, values, context)
  );
  const sockets = local.filter(({ address }) => address.kind === "unix");
  return sockets.length > 0 ? sockets.flatMap(withWorkers) : local;
}

/** The command line names the program. */
export function isNamed(
  values: Pick<Asked, "agent" | "proxy" | "state-dir">,
  given: ReadonlySet<string>,
): boolean {
  return given.has("server") || values.agent !== "" || values.proxy !== "" ||
    values["state-dir"] !== "";
}

/** One that answers. */
export interface Answering<T> {
  readonly asked: AskedProgram;
  readonly client: AdminClient;
  readonly answer: T;
}

/**
 * What those answer that run: all that do, in their order.
 *
 * @throws {CommandFailure} When none of them does.
 */
export async function askAll<T>(
  programs: readonly AskedProgram[],
  context: Pick<CommandContext, "printError">,
  ask: (client: AdminClient) => Promise<T>,
): Promise<readonly Answering<T>[]> {
  const problems: unknown[] = [];
  const answers = await Promise.all(programs.map(async (asked) => {
    const client = askedClient(asked, context);
    try {
      return [{ asked, client, answer: await ask(client) }];
    } catch (error) {
      problems.push(error);
      return [];
    }
  }));
  const answering = answers.flat();
  if (answering.length === 0) throw noAnswer(programs, problems);
  const isOfWorkers = answering.some(({ asked }) => asked.worker !== undefined);
  for (const problem of isOfWorkers ? problems : []) {
    // One program that does not answer must not stop the others; a refusal is
    // an answer.
    const isSilent = problem instanceof AdminError &&
      problem.status === undefined && !isNobodyThere(problem);
    if (isSilent) context.printError(`${problem.message}\n`);
  }
  return answering;
}

/** The same of the first kind of program that answers: all its workers. */
export async function askFirst<T>(
  programs: readonly AskedProgram[],
  context: Pick<CommandContext, "printError">,
  ask: (client: AdminClient) => Promise<T>,
): Promise<readonly Answering<T>[]> {
  const all = await askAll(programs, context, ask);
  return all.filter(({ asked }) => asked.program === all[0]!.asked.program);
}

/** What those of the workers answer that do. @throws Why none does. */
export async function answersOf<C, T>(
  clients: readonly C[],
  ask: (client: C) => Promise<T>,
): Promise<readonly T[]> {
  const found = await Promise.allSettled(clients.map(ask));
  const answers = found.flatMap((one) =>
    one.status === "fulfilled" ? [one.value] : []
  );
  const [first] = found;
  if (answers.length === 0 && first?.status === "rejected") throw first.reason;
  return answers;
}

/**
 * Prints the answers, under names when there are several: once, or repeatedly
 * with `--watch`.
 */
export function printEach<T>(
  values: FlagValues<typeof ANSWER_FLAGS>,
  programs: readonly AskedProgram[],
  context: CommandContext,
  ask: (client: AdminClient) => Promise<T>,
  text: (page: Page, answer: T, isWide: boolean) => string,
): Promise<ExitCode> {
  return printAnswer({
    form: values.output,
    intervalMs: values.watch ? values.interval : undefined,
    ask: () => askFirst(programs, context, ask),
    table: (all, isWide) => {
      const page = pageOf(context, isWide);
      return all.map(({ asked: { program, worker }, answer }) => {
        const name = `${program}, worker ${worker ?? 0}:\n`;
        return (all.length === 1 ? "" : name) + text(page, answer, isWide);
      }).join("\n");
    },
    data: (all) =>
      all.length === 1 ? all[0]!.answer : {
        programs: all.map(({ asked: { worker }, answer }) => ({
          worker,
          ...answer,
        })),
      },
  }, context);
}

/** Error codes of a socket without a listener. */
const NOBODY_THERE = ["ECONNREFUSED", "ENOENT"];

/** Whether no program has the socket, or the port. */
export function isNobodyThere(error: unknown): boolean {
  return error instanceof AdminError &&
    NOBODY_THERE.includes(codeOf(error.cause));
}

/** A refusal tells more than "no program is there". */
function noAnswer(
  programs: readonly AskedProgram[],
  problems: readonly unknown[],
): unknown {
  const slip = problems.find((problem) => !(problem instanceof AdminError));
  if (slip !== undefined) return slip;
  const refusal = problems.find((problem) =>
    problem instanceof AdminError && problem.status !== undefined
  );
  if (refusal !== undefined) return refusal;
  const kinds = new Set(programs.map(({ program }) => program));
  if (kinds.size === 1) return problems[0];
  return failure(
    "Cannot ask: no server, agent or proxy of this user answers on " +
      "this machine; name one with --server, --agent, --proxy or --state-dir",
    "TUN121",
  );
}
