/**
 * Flags of every command that asks a running program of ours about itself: the
 * program, the credentials, and the form of the answer.
 *
 * @module
 */

import { quietly } from "../../platform/errors/error_code.ts";
import type { AdminAddress, AdminTls } from "../../admin/ask/admin_client.ts";
import { ADMIN_SOCKET } from "../../net/admin/admin_api.ts";
import { workerSocket } from "../../net/admin/own_group.ts";
import {
  ADMIN_TOKEN_FILE,
  ADMIN_VIEW_TOKEN_FILE,
} from "../../net/admin/admin_token.ts";
import { isSocket, otherWorkersAt } from "../../admin/ask/worker_sockets.ts";
import { isLoopbackHost } from "../../proto/peer/ip_address.ts";
import { parseHostPort } from "./addresses.ts";
import { flag, type FlagValues, inGroup } from "./flag.ts";
import { given } from "../../platform/documents/given.ts";
import { keyPair, UsageError } from "./usage_error.ts";
import { JSON_FLAG, SERVER_ADMIN_PORT } from "./program_flags.ts";
import type { FlagSources } from "./read_flags.ts";
import { defaultStateDirectory, refuseOnNode } from "./state_directory.ts";

/** The default ports on which agents and proxies answer. */
export const AGENT_ADMIN_PORT = 8094;
export const PROXY_ADMIN_PORT = 8096;

/** The program of this machine, wherever it answers. */
export const LOCAL = "local";

const FORMS = ["table", "wide", "json", "yaml"] as const;

/** How an answer is printed. */
export type AnswerForm = typeof FORMS[number];

/** How an answer is printed, and how often. */
export const ANSWER_FLAGS = inGroup("The answer", {
  "output": flag.choice(FORMS, "table", {
    short: "o",
    help: "How the answer is printed: for people, with everything, or for " +
      "programs.",
  }),
  ...JSON_FLAG,
  "watch": flag.boolean(false, {
    short: "w",
    help: "Ask again and again, until Ctrl-C: a terminal shows the newest " +
      "answer in place, a pipe gets each one that differs.",
  }),
  "interval": flag.duration(2_000, 200, {
    help: "Time between two questions of --watch.",
  }),
});

/** Whom to ask, and what to show there. */
export const ASKED_FLAGS = inGroup("Where", {
  "server": flag.text(LOCAL, {
    placeholder: "ADDRESS",
    help: "The server to ask: unix:/PATH of its admin.sock, HOST:PORT of its " +
      "admin port, or local: that of this machine.",
  }),
  "agent": flag.word("ADDRESS", {
    help: "Ask this agent in place of a server; --agent local for that of " +
      "this machine.",
  }),
  "proxy": flag.word("ADDRESS", {
    help: "Ask this proxy in place of a server; --proxy local for that of " +
      "this machine.",
  }),
  "state-dir": flag.word("DIRECTORY", {
    help: "State directory of the program to ask: its admin.sock and its " +
      "admin.token are there.",
    defaultText: "that of a program of this user on this machine",
  }),
  "token-file": flag.file({
    help: "Show the token in this file to an admin port.",
    defaultText: "admin.token in --state-dir, to this machine alone",
  }),
  "ca-cert": flag.file({
    help: "CA of the program's certificate, for an admin port of another " +
      "machine (--admin-remote-port).",
  }),
  "cert": flag.file("Certificate to show there."),
  "key": flag.file("Private key of --cert."),
  "tls-server-name": flag.word("NAME", {
    help: "Name that the program's certificate must bear.",
    defaultText: "the host that is asked",
  }),
});

const { agent: _agent, proxy: _proxy, ...WHERE_SERVER } = ASKED_FLAGS;

/** The same for commands that only a server answers. */
export const ASKED_SERVER_FLAGS = WHERE_SERVER;

/** All of them. */
export const ADMIN_FLAGS = { ...ASKED_FLAGS, ...ANSWER_FLAGS } as const;

/** All that can be asked, the likeliest first. */
export const PROGRAMS = ["server", "agent", "proxy"] as const;

/** The program that is asked. */
export interface AskedProgram {
  readonly program: typeof PROGRAMS[number];
  readonly address: AdminAddress;
  /** With several workers: which one to ask. */
  readonly worker?: number;
}

type Asked =
  & FlagValues<typeof ASKED_SERVER_FLAGS>
  & Partial<FlagValues<Pick<typeof ASKED_FLAGS, "agent" | "proxy">>>;

/**
 * Whom the flags name.
 *
 * @param flags Those that were given.
 * @throws {UsageError}
 */
export function askedProgram(
  values: Asked,
  flags: ReadonlySet<string>,
  sources: Pick<FlagSources, "environment" | "readFile">,
): AskedProgram {
  const named = (["agent", "proxy"] as const)
    .filter((name) => (values[name] ?? "") !== "");
  const rival = flags.has("server") ? ["server", ...named] : named;
  if (rival.length > 1) {
    throw new UsageError(
      `Cannot ask --${rival[0]} and --${rival[1]} at once; keep one of them`,
    );
  }
  const program = named[0] ?? "server";
  const isUnnamed = rival.length === 0 &&
    ["state-dir", "token-file", "cert"].every((name) => !flags.has(name));
  if (isUnnamed) refuseOnNode(sources.environment);
  return programAt(program, values[program] ?? "", values, sources);
}

/**
 * A program of that kind, whatever the flags name.
 *
 * @param text Its address, in the form of the program's flag.
 * @throws {UsageError}
 */
export function programAt(
  program: AskedProgram["program"],
  text: string,
  values: Asked,
  sources: Pick<FlagSources, "environment" | "readFile">,
): AskedProgram {
  return { program, address: addressOf(program, text, values, sources) };
}

/**
 * Each worker of the program, where it has several on this machine: their
 * sockets stand beside that of the first.
 */
export function withWorkers(asked: AskedProgram): readonly AskedProgram[] {
  const { program, address } = asked;
  if (address.kind !== "unix") return [asked];
  const others = otherWorkersAt(address.path);
  if (others.length === 0) return [asked];
  return [0, ...others].map((worker) => ({
    program,
    address: { kind: "unix", path: workerSocket(address.path, worker) },
    worker,
  }));
}

const PORTS = {
  server: SERVER_ADMIN_PORT,
  agent: AGENT_ADMIN_PORT,
  proxy: PROXY_ADMIN_PORT,
} as const;

function addressOf(
  program: AskedProgram["program"],
  text: string,
  values: Asked,
  { readFile, environment }: Pick<FlagSources, "environment" | "readFile">,
): AdminAddress {
  const flag = `--${program}`;
  const directory = values["state-dir"] ||
    defaultStateDirectory(program, environment);
  const named = /^unix:(?:\/\/(?=\/))?(.*)$/.exec(text)?.[1];
  if (named !== undefined) {
    if (named !== "") return { kind: "unix", path: named };
    throw new UsageError(`Cannot use ${flag}: saw "unix:", wanted unix:/PATH`);
  }
  const isLocal = text === LOCAL;
  const socket = `${directory}/${ADMIN_SOCKET}`;
  const tls = tlsOf(values);
  const isForced = values["token-file"] !== "" || tls !== undefined;
  if (isLocal && !isForced && isSocket(socket)) {
    return { kind: "unix", path: socket };
  }
  const { host, port } = isLocal
    ? { host: "127.0.0.1", port: PORTS[program] }
    : parseHostPort(flag, text);
  const to = { kind: "tcp", host, port } as const;
  if (tls !== undefined) return { ...to, tls };
  const file = values["token-file"];
  const isHere = isLoopbackHost(host);
  if (file !== "") {
    const tokenProblem = `the token in ${file} is another program's`;
    if (isHere) return { ...to, token: tokenOf(file, readFile), tokenProblem };
    throw new UsageError(
      `Cannot show ${file} to ${text}: a token goes to a loopback address of ` +
        "this machine alone, for there is no TLS; ask on --admin-remote-port " +
        "with --ca-cert, --cert and --key, or over ssh -L",
    );
  }
  const path = `${directory}/${ADMIN_TOKEN_FILE}`;
  if (!isHere) {
    const tokenProblem = `${path} is shown to loopback alone: ask on ` +
      "--admin-remote-port with --ca-cert, --cert and --key, or over ssh -L";
    return { ...to, tokenProblem };
  }
  const [found] = [path, `${directory}/${ADMIN_VIEW_TOKEN_FILE}`]
    .flatMap((file) => {
      const token = tokenIn(file, readFile);
      return token === undefined ? [] : [{ file, token }];
    });
  const { token, file: tokenFile } = found ?? {};
  const tokenProblem = token === undefined
    ? `${path} cannot be read; run this as the ${program}'s user, or name ` +
      "its --state-dir"
    : `the token in ${path} is another ${program}'s; name its --state-dir`;
  return { ...to, token, tokenFile, tokenProblem };
}

function tlsOf(values: Asked): AdminTls | undefined {
  const pair = keyPair(values, "cert", "key");
  const ca = values["ca-cert"];
  if (pair === undefined && ca === "") return undefined;
  if (pair === undefined || ca === "") {
    throw new UsageError(
      "Cannot ask over TLS without --ca-cert, --cert and --key; give all three",
    );
  }
  const { certFile: cert, keyFile: key } = pair;
  const serverName = values["tls-server-name"] || undefined;
  return given({ ca, cert, key, serverName });
}

/** @throws {UsageError} When it contains none. */
function tokenOf(path: string, readFile: (path: string) => string): string {
  const token = tokenIn(path, readFile);
  if (token !== undefined) return token;
  throw new UsageError(
    `Cannot use --token-file ${path}: it cannot be read, or has no token of ` +
      "64 hex digits in it",
    "TUN114",
  );
}

/** @returns `undefined`: the program may not need one. */
function tokenIn(
  path: string,
  readFile: (path: string) => string,
): string | undefined {
  return quietly(() => /[0-9a-f]{64}/.exec(readFile(path))?.[0]);
}
