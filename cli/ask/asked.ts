/**
 * Whom a command asks: who is named, or what runs on this machine.
 *
 * @module
 */

import { type AdminClient, AdminError } from "../../admin/ask/admin_client.ts";
import {
  type ASKED_FLAGS,
  type AskedProgram,
  askedProgram,
  LOCAL,
  programAt,
} from "../flags/admin_flags.ts";
import type { FlagValues } from "../flags/flag.ts";
import type { CommandContext } from "../program/command.ts";
import { CommandFailure, ExitCode } from "../program/exit_codes.ts";
import { askedClient } from "../program/asked_client.ts";

type Asked = FlagValues<typeof ASKED_FLAGS>;

const PROGRAMS = ["server", "agent", "proxy"] as const;

/**
 * Who may be asked, the likeliest first: who is named alone; else those whose
 * socket is on this machine, or, where there is none, those that may be at the
 * usual ports.
 */
export function askedPrograms(
  values: Asked,
  given: ReadonlySet<string>,
  context: Pick<CommandContext, "environment" | "readFile">,
): readonly AskedProgram[] {
  if (isNamed(values, given)) return [askedProgram(values, given, context)];
  const local = PROGRAMS.map((program) =>
    programAt(program, LOCAL, values, context)
  );
  const sockets = local.filter(({ address }) => address.kind === "unix");
  return sockets.length > 0 ? sockets : local;
}

/** The command line says who is asked. */
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
  if (answering.length > 0) return answering;
  throw noAnswer(programs, problems);
}

/** A refusal says more than that nobody is there. */
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
  if (programs.length === 1) return problems[0];
  return new CommandFailure(
    ExitCode.FAILURE,
    "Cannot ask anybody: no server, agent or proxy of this user answers on " +
      "this machine; name one with --server, --agent, --proxy or --state-dir",
    undefined,
    "TUN121",
  );
}
