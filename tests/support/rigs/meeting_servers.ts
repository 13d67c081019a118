/**
 * Servers that know of each other, as processes, and an agent that is given one
 * address: a balancer's that sends everybody to one of them.
 *
 * @module
 */

import { patience } from "../watch/patience.ts";
import { assert, assertEquals } from "@std/assert";
import { arrivals } from "../peers/sockets.ts";
import { Workspace } from "../program/workspace.ts";
import { Balancer } from "./balancer.ts";
import { Processes, type ServerProcess } from "./processes.ts";

/** Between a server that listens and its agent; the machine may be busy. */
export const LINKED_MS = 3_000;

const PEER_TIMEOUT_MS = 2_000;

/** See the module description. */
export class MeetingServers extends Processes {
  readonly balancer = new Balancer();

  private constructor(
    workspace: Workspace,
    private readonly state: readonly string[] = [
      `--state=${workspace.path("state")}`,
    ],
  ) {
    super(workspace);
  }

  /** @param state Flags about where servers meet; a directory unless given. */
  static async open(state?: readonly string[]): Promise<MeetingServers> {
    return new MeetingServers(await Workspace.make(), state);
  }

  /** They meet in one place. */
  addMeeting(serverId: string): ServerProcess {
    const server = this.addServer(
      serverId,
      "--handover-socket=none",
      `--state-dir=${this.workspace.path(serverId)}`,
      ...this.state,
      `--peer-timeout=${PEER_TIMEOUT_MS / 1_000}s`,
    );
    server.addFlags(`--advertise-address=${server.address}`);
    return server;
  }

  startAgent(): void {
    this.agentAt([`127.0.0.1:${this.balancer.port}`]);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.balancer[Symbol.dispose]();
    await super[Symbol.asyncDispose]();
  }
}

/** Servers come, are killed and come back; an agent links each of them. */
export async function serversComeAndGo(rig: MeetingServers): Promise<void> {
  const [one, two, three] = ["s1", "s2", "s3"].map((id) => rig.addMeeting(id));
  await one!.start();
  await two!.start();
  rig.balancer.add(one!.agentPort);
  rig.startAgent();
  await Promise.all([one!.untilLinked(), two!.untilLinked()]);
  await three!.start();
  const tookMs = await three!.untilLinked();
  assert(
    tookMs <= patience(LINKED_MS),
    `a server that was added: ${tookMs} ms`,
  );
  // Who is gone without a word is forgotten, and not asked for again and again.
  await three!.stop("SIGKILL");
  assertEquals(await callsAt(three!.agentPort), 0);
  await three!.start();
  const backMs = await three!.untilLinked();
  assert(backMs <= patience(LINKED_MS), `it is back: ${backMs} ms`);
}

/** Longer than the longest wait between two attempts: who is asked for is asked. */
const QUIET_MS = 6_000;

/** How many connect to a port, at last, once its server is forgotten. */
async function callsAt(port: number): Promise<number> {
  const listener = Deno.listen({ hostname: "127.0.0.1", port });
  let calls = 0;
  const counting = (async () => {
    for await (const conn of arrivals(listener)) {
      calls++;
      conn.close();
    }
  })();
  const endMs = performance.now() + patience(30_000);
  let before: number;
  do {
    before = calls;
    await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
  } while (calls !== before && performance.now() < endMs);
  listener.close();
  await counting;
  return calls - before;
}
