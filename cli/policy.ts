/**
 * `tunnel policy test`: which rule decides about a dial, asked of a running
 * program or of a policy file. The decision is made by the code that decides
 * about dials.
 *
 * @module
 */

import { ADMIN_ACTIONS, ADMIN_API } from "../proto/admin/api.ts";
import type {
  PolicyAnswer,
  PolicyQuestion,
} from "../proto/admin/path_check.ts";
import { targetNamed } from "../policy/target_address.ts";
import { readPolicy } from "../server/policy/authorization.ts";
import { DialAuthorizer } from "../server/policy/dial_authorizer.ts";
import {
  callerNamed,
  type PolicySource,
  ruleReport,
} from "../server/policy/rule_report.ts";
import {
  ANSWER_FLAGS,
  ASKED_FLAGS,
  type AskedProgram,
  askedProgram,
} from "./flags/admin_flags.ts";
import { parseHostPort } from "./flags/addresses.ts";
import { flag, inGroup } from "./flags/flag.ts";
import { refuseFlags, textOf, UsageError } from "./flags/usage_error.ts";
import { askedClient, printAnswer } from "./program/answer_output.ts";
import { type CommandContext, defineCommand } from "./program/command.ts";
import { ExitCode } from "./program/exit_codes.ts";
import { ofOthers } from "../admin/ask/text_table.ts";
import { isWritten, readVerb } from "./program/verbs.ts";

const GROUP = "The dial";

/** A proxy has no policy. */
const { proxy: _, ...ASKED } = ASKED_FLAGS;

const FLAGS = {
  ...inGroup(GROUP, {
    "as": flag.word("NAME", {
      help: "The caller: the name of a certificate (CN), node:NAME, or " +
        "socket:PATH for callers of a unix socket.",
    }),
    "group": flag.list([], {
      placeholder: "GROUP",
      help: "Organizations (O) of that certificate.",
    }),
    "node": flag.word("NAME", "The node whose agent is to dial."),
    "file": flag.file("Ask this policy file, and no running program."),
  }),
  ...ASKED,
  ...ANSWER_FLAGS,
} as const;

const VERBS = { test: { operand: "HOST:PORT" } } as const;

/** See the module description. */
export const POLICY_COMMAND = defineCommand({
  name: "policy",
  operands: "test [NODE] HOST:PORT --as NAME [flags]",
  about: [
    "Asks a running server (or, with --agent, an agent about its --allow and " +
    "--deny), or a file before it is put in place. Nothing is dialed. Names " +
    "the rule and its line; if no rule matches, the nearest one and what of " +
    "it does not fit. Ends with 0 if the dial is allowed, with 3 if not.",
    "A target is HOST:PORT, udp:HOST:PORT or unix:PATH. A file knows no " +
    "services: what a node may dial because it sees a service, only a server " +
    "says.",
  ],
  examples: [
    "tunnel policy test --as alice node1 10.0.0.7:5432",
    "tunnel policy test web:80 --as node:edge-7 --file policy.yaml",
    "tunnel policy test unix:/run/a.sock --as bob --group ops -o json",
  ],
  rights: "network",
  flags: FLAGS,
  async run(reading, context) {
    const { values, given, origins } = reading;
    const { words, node } = withNode(reading.operands, values.node);
    const { operand: target } = readVerb("policy", VERBS, {
      operands: words,
      origins,
    });
    const { as, group, file } = values;
    refuseFlags(
      Object.keys(ASKED),
      (name) => file !== "" && isWritten(name, origins),
      "with --file: no running program is asked then; keep one of them",
    );
    if (as === "" && values.agent === "") {
      throw new UsageError(
        "Cannot test the policy: --as is not given; wanted the name of a " +
          "caller, node:NAME or socket:PATH",
      );
    }
    const [, address] = /^(?:tcp:|udp:)?(?!unix:)(.*)$/s.exec(target) ?? [];
    if (address !== undefined) parseHostPort("the target", address);
    const question: PolicyQuestion = {
      as: as || "agent",
      target,
      ...(group.length === 0 ? {} : { groups: group }),
      node: node || undefined,
    };
    const asked = () => askedProgram(values, given, context);
    const ask = file === ""
      ? () => askProgram(asked(), context, question)
      : () => Promise.resolve(askFile(file, question, context));
    return await printAnswer({
      form: values.output,
      intervalMs: values.watch ? values.interval : undefined,
      ask,
      table: policyText,
      exitCode: ({ isAllowed }) => isAllowed ? ExitCode.OK : ExitCode.REFUSED,
    }, context);
  },
});

/** `test NODE HOST:PORT`, as with `tunnel trace`, is `--node NODE`. */
function withNode(
  operands: readonly string[],
  given: string,
): { readonly words: readonly string[]; readonly node: string } {
  const [verb, node, target, ...others] = operands;
  if (verb !== "test" || target === undefined || others.length > 0) {
    return { words: operands, node: given };
  }
  if (given !== "" && given !== node) {
    throw new UsageError(
      `Cannot use both ${node} and --node ${given}; keep one of them`,
    );
  }
  return { words: [verb, target], node: node! };
}

async function askProgram(
  asked: AskedProgram,
  context: Pick<CommandContext, "printError">,
  question: PolicyQuestion,
): Promise<PolicyAnswer> {
  using client = askedClient(asked, context);
  const path = `${ADMIN_API}/${ADMIN_ACTIONS.policyTest}`;
  return await client.post<PolicyAnswer>(path, question);
}

/** @throws {UsageError | PolicyError} */
function askFile(
  path: string,
  { as, groups, node, target }: PolicyQuestion,
  { readFile }: Pick<CommandContext, "readFile">,
): PolicyAnswer {
  const text = textOf(`Cannot use --file ${path}`, path, readFile);
  const policy: PolicySource = { path, text, current: readPolicy(path, text) };
  const authorizer = new DialAuthorizer({ policy, refused() {} });
  const dial = {
    caller: callerNamed(as, groups),
    target: targetNamed(target),
    node,
  };
  return ruleReport(dial, undefined, authorizer, policy);
}

/** For people. */
function policyText({ isAllowed, message, place }: PolicyAnswer): string {
  const where = place === undefined ? "" : `\n  ${ofOthers(place)}`;
  const verdict = isAllowed ? "allowed" : "denied";
  return `${verdict}: ${ofOthers(message)}${where}\n`;
}
