/**
 * The kinds of configuration files that there are: how each is recognized, its
 * errors, and its schema.
 *
 * @module
 */

import { SERVICES as SERVICES_DOCUMENT } from "../../services/catalog/sources/document/catalog_document.ts";
import { EGRESS as EGRESS_DOCUMENT } from "../../client/egress_config.ts";
import type { FieldError } from "../../platform/documents/field_error.ts";
import {
  documentSchema,
  type JsonSchema,
} from "../../platform/documents/json_schema.ts";
import { readAll, type Shape } from "../../platform/documents/shape.ts";
import { didYouMean, nearest } from "../../platform/text/nearest.ts";
import { POLICY as POLICY_DOCUMENT } from "../../server/policy/policy.ts";
import { canonicalNames } from "../flags/arguments.ts";
import { ETCD_CONFIG } from "../flags/etcd_flags.ts";
import type { Command } from "../program/command.ts";
import { UsageError } from "../flags/usage_error.ts";
import { flagProblems, flagSchema, togetherProblems } from "./flag_document.ts";

/** One kind of file. */
export interface ConfigKind {
  readonly name: string;
  /** Which flag names such a file. */
  readonly summary: string;
  /** How much of it a document looks like; 0: not at all. */
  likeness(document: Readonly<Record<string, unknown>>): number;
  /** Only the whole file name identifies this kind. */
  readonly isRare?: boolean;
  /**
   * All that is wrong with a document.
   *
   * @param argv Flags that stand on the command line beside such a file.
   * @throws {UsageError} When those cannot be used.
   */
  problems(
    document: unknown,
    text: string,
    argv?: readonly string[],
  ): readonly FieldError[];
  schema(): JsonSchema;
}

/** More than any number of flags. */
const CERTAIN = 10_000;

const DOCUMENTS: readonly ConfigKind[] = [
  shaped(
    "policy",
    "Who may reach what: server --policy-file",
    POLICY_DOCUMENT,
    (document) =>
      ["frontends", "nodes", "discovery", "dials", "admins"]
        .some((key) => Array.isArray(document[key])),
  ),
  shaped(
    "services",
    "Services and endpoints: proxy --config, agent --proxy-config, " +
      "server --discovery-config",
    SERVICES_DOCUMENT,
    ({ services }) => Array.isArray(services),
  ),
  shaped(
    "egress-selector",
    "kube-apiserver's way to the tunnel: --egress-config",
    EGRESS_DOCUMENT,
    ({ kind, egressSelections }) =>
      kind === "EgressSelectorConfiguration" || Array.isArray(egressSelections),
  ),
  shaped(
    "etcd-config",
    "Members of etcd, as go-etcd has them: --etcd-config",
    ETCD_CONFIG,
    ({ cluster }) => typeof Object(cluster)["machines"] === "object",
  ),
];

/** The facts about a command whose flags may be in a file. */
export type FlagCommand = Pick<Command, "name" | "flags" | "flagProblems">;

/** Programs that run for long, whose flags people keep in files. */
export const PROGRAMS: readonly string[] = [
  "server",
  "agent",
  "yurttunnel-agent",
];

/** @param commands All; those without flags in a file are left out. */
export function configKinds(
  commands: readonly FlagCommand[],
): readonly ConfigKind[] {
  const withFile = commands.filter(({ name, flags }) =>
    flags["config"]?.holdsFlags === true &&
    // A document of that name is what people mean.
    DOCUMENTS.every((kind) => kind.name !== name)
  );
  const isProgram = ({ name }: FlagCommand) => PROGRAMS.includes(name);
  return [
    ...withFile.filter(isProgram).map((command) => flagKind(command, false)),
    ...DOCUMENTS,
    ...withFile.filter((command) => !isProgram(command))
      .map((command) => flagKind(command, true)),
  ];
}

/** @throws {UsageError} */
export function kindNamed(
  kinds: readonly ConfigKind[],
  name: string,
): ConfigKind {
  const found = kinds.find((kind) => kind.name === name);
  if (found !== undefined) return found;
  const names = kinds.map((kind) => kind.name);
  throw new UsageError(
    `Unknown kind "${name.slice(0, 100)}"${didYouMean(name, names)} (tunnel ` +
      "config schema lists them)",
  );
}

/**
 * Which kind a document is; of two that are as likely, the one that is in its
 * file's name.
 */
export function documentKindOf(
  kinds: readonly ConfigKind[],
  document: unknown,
  path: string,
): ConfigKind | undefined {
  const isMap = typeof document === "object" && document !== null &&
    !Array.isArray(document);
  const fields = isMap ? document as Readonly<Record<string, unknown>> : {};
  const file = path.slice(path.lastIndexOf("/") + 1);
  const stem = file.replace(/\.[^.]*$/, "").replace(/^tunnel[-_.]/, "");
  const isNamed = ({ name, isRare }: ConfigKind) =>
    isRare ? stem === name : file.includes(name);
  let best: ConfigKind | undefined;
  let most = 0;
  for (const kind of kinds) {
    const likeness = kind.likeness(fields) +
      (isNamed(kind) ? 0.5 : 0);
    if (likeness > most) [best, most] = [kind, likeness];
  }
  return best;
}

/** A flag with a wrong value tells less than one without. */
const NEARLY = 0.1;

function flagKind(command: FlagCommand, isRare: boolean): ConfigKind {
  const { name, flags: table } = command;
  const names = canonicalNames(table);
  return {
    name,
    isRare,
    summary: `Flags: ${name} --config`,
    likeness: (document) =>
      Object.keys(document).map((key) => key.replaceAll("_", "-")).reduce(
        (sum, key) =>
          sum + (names.has(key) ? 1 : nearest(key, names.keys()) ? NEARLY : 0),
        0,
      ),
    problems(document, _text, argv = []) {
      const problems = flagProblems(table, document);
      // An entry left out as wrong would seem missing to the others.
      return problems.length > 0
        ? problems
        : togetherProblems(command, document, argv);
    },
    schema: () =>
      documentSchema(
        `tunnel ${name} --config`,
        `Flags of tunnel ${name}, without their dashes.`,
        flagSchema(table),
      ),
  };
}

function shaped(
  name: string,
  summary: string,
  shape: Shape<unknown>,
  isLike: (document: Readonly<Record<string, unknown>>) => boolean,
): ConfigKind {
  return {
    name,
    summary,
    likeness: (document) => isLike(document) ? CERTAIN : 0,
    problems: (document) => readAll(shape, document).problems,
    schema: () => documentSchema(`tunnel: ${name}`, summary, shape.schema),
  };
}
