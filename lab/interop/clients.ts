/**
 * The clients of the matrix. Each moves 20 MiB both ways and then makes 100
 * requests at the same time through a frontend, and checks every byte.
 *
 * @module
 */

import { findPeer } from "../../tests/support/program/peers.ts";
import {
  type Frontend,
  type Maker,
  ourCommand,
  type Protocol,
} from "../../tests/support/program/tunnel.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import { ProgramError, run } from "./run_program.ts";
import { echoHead, sha256, type Target } from "./target.ts";
import { ExitCode } from "../../cli/program/exit_codes.ts";

/** More than these of a hundred would be no race. */
const MISSING_GOODBYES_MAX = 10;

const LOSS =
  "The connection was lost: TLS connection was cut off without a goodbye";

/** Between whom and how. */
interface Meeting {
  readonly server: Maker;
  readonly protocol: Protocol;
  readonly frontend: { readonly transport: Frontend["transport"] };
}

/**
 * Whether this is how `tunnel dial` reports that end, where it can happen. The
 * bytes are still to be checked.
 */
function isMissingGoodbye(error: unknown, meeting: Meeting): boolean {
  return meeting.server === "konnectivity" &&
    meeting.protocol === "http-connect" &&
    meeting.frontend.transport === "tcp" &&
    error instanceof ProgramError &&
    error.code === ExitCode.LOST &&
    error.said.includes(LOSS);
}

export const BULK_BYTES = 20 * 1024 * 1024;
export const REQUESTS = 100;
export const REQUEST_BYTES = 64 * 1024;

/** Our own command is a whole process for each request: fewer, and fewer at a time. */
const PROCESSES = 25;
const PROCESSES_AT_ONCE = 10;

export interface ClientContext {
  /** Who made the server. */
  readonly server: Maker;
  readonly protocol: Protocol;
  readonly frontend: Frontend;
  readonly target: Target;
  readonly workspace: Workspace;
  /** Says what is no failure and yet worth a line. */
  note(line: string): void;
}

/** Throws when a byte is wrong, missing or late. */
type Client = (context: ClientContext) => Promise<void>;

export type ClientName = "konnectivity-client" | "curl" | "dial";

export const CLIENTS: Readonly<Record<ClientName, Client>> = {
  "konnectivity-client": konnectivityClient,
  curl,
  dial: ourDial,
};

/** Whether there is such a cell: curl cannot CONNECT through a unix socket. */
export function canReach(
  client: ClientName,
  protocol: Protocol,
  transport: Frontend["transport"],
): boolean {
  return client !== "curl" ||
    (protocol === "http-connect" && transport === "tcp");
}

/**
 * Upstream's test client can only GET, and says by its exit status whether
 * all came. So a program around the library under it moves the checked bytes.
 */
async function konnectivityClient(context: ClientContext): Promise<void> {
  const { target } = context;
  const client = await findPeer("konnectivity-client");
  const get = (path: string, requests: number) =>
    run(client, [
      ...konnectivityClientFlags(context),
      `--mode=${context.protocol}`,
      "--request-host=127.0.0.1",
      `--request-port=${target.httpPort}`,
      `--request-path=${path}`,
      `--test-requests=${requests}`,
      "--v=0",
    ]);
  const before = target.httpRequests();
  await get(`bytes/${BULK_BYTES}`, 1);
  await get(`bytes/${REQUEST_BYTES}`, REQUESTS);
  const served = target.httpRequests() - before;
  if (served !== REQUESTS + 1) {
    throw new Error(`${served} of ${REQUESTS + 1} requests have arrived`);
  }
  const transfer = await findPeer("konnectivity-transfer");
  const echo = (bytes: number, connections: number) =>
    run(transfer, [
      `-mode=${context.protocol}`,
      ...transferFlags(context),
      `-to=127.0.0.1:${target.echoPort}`,
      `-octets=${bytes}`,
      `-n=${connections}`,
    ]);
  await echo(BULK_BYTES, 1);
  await echo(REQUEST_BYTES, REQUESTS);
}

function konnectivityClientFlags(context: ClientContext): string[] {
  const { frontend } = context;
  if (frontend.transport === "uds") {
    return [`--proxy-uds=${frontend.path}`, "--proxy-host=", "--proxy-port=0"];
  }
  const { ca, client } = context.workspace.certificates;
  return [
    `--proxy-host=${frontend.host}`,
    `--proxy-port=${frontend.port}`,
    `--ca-cert=${ca}`,
    `--client-cert=${client.cert}`,
    `--client-key=${client.key}`,
  ];
}

function transferFlags(context: ClientContext): string[] {
  const { frontend } = context;
  if (frontend.transport === "uds") return [`-uds=${frontend.path}`];
  const { ca, client } = context.workspace.certificates;
  return [
    `-addr=${frontend.host}:${frontend.port}`,
    `-ca=${ca}`,
    `-cert=${client.cert}`,
    `-key=${client.key}`,
  ];
}

async function curl(context: ClientContext): Promise<void> {
  const { frontend, target, workspace } = context;
  if (frontend.transport !== "tcp") throw new TypeError("curl needs TCP");
  const { ca, client } = workspace.certificates;
  const url = `http://127.0.0.1:${target.httpPort}`;
  const flags = [
    ...["--silent", "--show-error", "--fail", "--proxytunnel"],
    ...["--proxy", `https://${frontend.host}:${frontend.port}`],
    ...["--proxy-cacert", ca, "--proxy-cert", client.cert],
    ...["--proxy-key", client.key, "--max-time", "60", "--noproxy", ""],
  ];
  const down = await run("curl", [...flags, `${url}/bytes/${BULK_BYTES}`]);
  await mustEqual(down, target.block(BULK_BYTES), "download");
  const file = workspace.path("upload");
  await Deno.writeFile(file, target.block(BULK_BYTES));
  const upload = ["--data-binary", `@${file}`, "-H", "Expect:"];
  const sum = await run("curl", [...flags, ...upload, `${url}/upload`]);
  const wanted = await sha256(target.block(BULK_BYTES));
  if (new TextDecoder().decode(sum) !== wanted) {
    throw new Error("upload: other bytes have arrived");
  }
  const prefix = workspace.path("many");
  const many = Array.from({ length: REQUESTS }, (_, index) => [
    ...["-o", `${prefix}-${index}`],
    `${url}/bytes/${REQUEST_BYTES}?from=${index}`,
  ]);
  const parallel = ["--parallel", "--parallel-immediate"];
  const at = ["--parallel-max", `${REQUESTS}`];
  await run("curl", [...flags, ...parallel, ...at, ...many.flat()]);
  for (let index = 0; index < REQUESTS; index++) {
    const got = await Deno.readFile(`${prefix}-${index}`);
    const block = target.block(REQUEST_BYTES, index);
    await mustEqual(got, block, `request ${index}`);
  }
}

/** `tunnel dial`: bytes through standard input and output. */
async function ourDial(context: ClientContext): Promise<void> {
  const { target } = context;
  const [program, ...args] = [
    ...ourCommand("dial"),
    ...ourDialFlags(context),
    `127.0.0.1:${target.echoPort}`,
  ];
  let missingGoodbyes = 0;
  const exchange = async (bytes: Uint8Array<ArrayBuffer>) => {
    const input = [echoHead(bytes.length), bytes];
    let output: Uint8Array<ArrayBuffer>;
    try {
      output = await run(program!, args, input, bytes.length);
    } catch (error) {
      if (!isMissingGoodbye(error, context)) throw error;
      if (++missingGoodbyes > MISSING_GOODBYES_MAX) throw error;
      output = (error as ProgramError).stdout;
    }
    await mustEqual(output, bytes, "echo");
  };
  await exchange(target.block(BULK_BYTES));
  let next = 0;
  const worker = async () => {
    while (next < PROCESSES) {
      await exchange(target.block(REQUEST_BYTES, next++));
    }
  };
  await Promise.all(Array.from({ length: PROCESSES_AT_ONCE }, worker));
  if (missingGoodbyes > 0) {
    context.note(
      `     ${missingGoodbyes} of ${
        PROCESSES + 1
      } whole answers ended without ` +
        `TLS's goodbye, see goodbye.ts`,
    );
  }
}

function ourDialFlags(context: ClientContext): string[] {
  const { frontend, protocol } = context;
  if (frontend.transport === "uds") {
    return [`--proxy-mode=${protocol}`, `--server=unix:${frontend.path}`];
  }
  const { ca, client } = context.workspace.certificates;
  return [
    `--proxy-mode=${protocol}`,
    `--server=${frontend.host}:${frontend.port}`,
    ...[`--ca-cert=${ca}`, `--cert=${client.cert}`, `--key=${client.key}`],
  ];
}

async function mustEqual(
  got: Uint8Array<ArrayBuffer>,
  wanted: Uint8Array<ArrayBuffer>,
  what: string,
): Promise<void> {
  if (got.length !== wanted.length) {
    throw new Error(`${what}: ${got.length} bytes of ${wanted.length}`);
  }
  if (await sha256(got) !== await sha256(wanted)) {
    throw new Error(`${what}: other bytes have arrived`);
  }
}
