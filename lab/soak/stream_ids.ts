/**
 * New connections as fast as they come, over links that begin near their last
 * stream id: each link is replaced and drained every few seconds, and nobody
 * may notice. Neither those who connect meanwhile nor those who stay.
 *
 * @module
 */

import { RIGHTS, V8_FLAGS } from "../../cli/program/rights.ts";
import {
  connectThrough,
  readExactly,
  writeAll,
} from "../interop/connect_client.ts";
import type { Tally } from "../../tests/support/watch/tally.ts";
import {
  Child,
  endChildrenOnSignals,
  killAllChildren,
} from "../../tests/support/program/child.ts";
import { findPeer } from "../peers/peers.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { startAgent, startServer } from "../../tests/support/program/tunnel.ts";
import { Workspace } from "../../tests/support/program/workspace.ts";

/** A link lasts two seconds at the 3,000 conduits/s that are aimed at. */
const CONDUITS_PER_LINK = 6_000;
const LOAD = ["-mode=conn", "-n=16", "-d=20s"];

/** One that stays is opened so often: some on every link. */
const STAYER_EVERY_MS = 500;

/** Fewer have shown nothing. */
const REPLACED_MIN = 2;

/** No bar: slower than this, something stood still. */
const RATE_MIN = 1_000;

/** `--v` from which on links that come and go are logged. */
const EVENTS = "--v=2";
const REPLACED = /link lost: the stream ids of the link are running out/g;
const LOST = /^tunnel_server_connection_ends_total\{end="lost"\} (\S+)$/m;

/** What of the load generator's line counts here. */
interface Counts {
  readonly per_s: number;
  readonly errs: number;
  readonly gone: number;
  readonly first_err?: string;
}

/** Runs it and says whether anybody noticed. */
export async function soakStreamIds(tally: Tally): Promise<void> {
  const workspace = await Workspace.make();
  endChildrenOnSignals(() => workspace.remove());
  try {
    await soak(workspace, tally);
  } catch (error) {
    tally.fail("links near their last stream id", error);
  } finally {
    await killAllChildren();
    if (tally.failed === 0) await workspace.remove();
    else tally.note(`logs: ${workspace.folder}`);
  }
}

async function soak(workspace: Workspace, tally: Tally): Promise<void> {
  const loadgen = await findPeer("loadgen");
  const to = `127.0.0.1:${freePort()}`;
  new Child({
    name: "target",
    command: [loadgen, "target", to],
    logFile: workspace.path("target.log"),
  });
  const server = await startServer(workspace, {
    maker: "ours",
    mode: "http-connect",
    transport: "uds",
    program: shortLinksServer(),
    extraFlags: [EVENTS],
  });
  const agent = await startAgent(workspace, server, "ours", [EVENTS]);
  const { frontend } = server;
  if (frontend.transport !== "uds") throw new TypeError("wanted a socket");
  const stayers = new Stayers(frontend.path, to);
  const load = new Child({
    name: "load generator",
    command: [
      ...[loadgen, ...LOAD, `-via=unix:${frontend.path}`, `-to=${to}`],
      `-pids=${server.child.pid},${agent.child.pid}`,
    ],
    logFile: workspace.path("loadgen.log"),
  });
  await stayers.openUntil(load.ended);
  const log = await Deno.readTextFile(agent.child.logFile);
  assess(
    JSON.parse((await load.logTail()).trim()),
    log.match(REPLACED)?.length ?? 0,
    tally,
  );
  await tally.run(
    "what was connected all the time still answers",
    async () => {
      const count = await stayers.askAll();
      tally.note(`     ${count} connections stayed`);
    },
  );
  await tally.run("the server lost none with a link", async () => {
    const metrics = await (await fetch(`${server.healthUrl}/metrics`)).text();
    const lost = LOST.exec(metrics)?.[1] ?? "0";
    if (Number(lost) !== 0) throw new Error(`It lost ${lost}`);
  });
}

function shortLinksServer(): string[] {
  const module = new URL("short_links_server.ts", import.meta.url).pathname;
  const config = new URL("../../deno.json", import.meta.url).pathname;
  return [
    ...[Deno.execPath(), "run", "--quiet", "--no-prompt", V8_FLAGS],
    ...[...RIGHTS.programs, `--config=${config}`, module],
    String(CONDUITS_PER_LINK),
  ];
}

function assess(counts: Counts, replaced: number, tally: Tally): void {
  const seen = `${Math.round(counts.per_s)} conduits/s, ` +
    `${replaced} links replaced after ${CONDUITS_PER_LINK} conduits each`;
  const problems = [
    counts.errs !== 0 && `${counts.errs} errors, first ${counts.first_err}`,
    counts.gone !== 0 && `${counts.gone} of the two programs ended`,
    replaced < REPLACED_MIN && `at least ${REPLACED_MIN} were to be replaced`,
    !(counts.per_s >= RATE_MIN) && `at least ${RATE_MIN}/s were wanted`,
  ].filter((problem) => problem !== false);
  if (problems.length === 0) tally.pass(seen);
  else tally.fail(seen, problems.join("; "));
}

/** Connections that are there before their link is replaced, and after. */
class Stayers {
  readonly #conns: Deno.Conn[] = [];

  constructor(private readonly path: string, private readonly to: string) {}

  async openUntil(end: Promise<unknown>): Promise<void> {
    let isOver = false;
    void end.then(() => isOver = true);
    while (!isOver) {
      await this.#open();
      await new Promise((resolve) => setTimeout(resolve, STAYER_EVERY_MS));
    }
  }

  /**
   * @returns How many have answered.
   * @throws {Error} When one does not.
   */
  async askAll(): Promise<number> {
    for (const conn of this.#conns) {
      await writeAll(conn, Uint8Array.of(1));
      await readExactly(conn, 1);
      conn.close();
    }
    return this.#conns.length;
  }

  async #open(): Promise<void> {
    const conn = await Deno.connect({ transport: "unix", path: this.path });
    await connectThrough(conn, this.to);
    // The target's `E`: a byte for a byte.
    await writeAll(conn, Uint8Array.of(0x45, 0, 0, 0, 1, 0, 0, 0, 1));
    this.#conns.push(conn);
  }
}
