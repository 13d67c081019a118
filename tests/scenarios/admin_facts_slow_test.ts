/**
 * What a real server knows of real agents and callers, and what is done to them
 * over the admin API.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { AdminClient } from "../../admin/ask/admin_client.ts";
import { HttpConnection } from "../../net/channel/http_connection.ts";
import { headBytes } from "../../net/http1/head.ts";
import { connectToPath } from "../../net/stream/socket_connect.ts";
import type { ActionAnswer } from "../../proto/admin/api.ts";
import type {
  NodeDetail,
  NodesAnswer,
  NodeSummary,
} from "../../proto/admin/node_answer.ts";
import type {
  ConfigAnswer,
  EventsAnswer,
  ListChange,
} from "../../proto/admin/list_answers.ts";
import type { StatusAnswer } from "../../proto/admin/status_answer.ts";
import type { Child } from "../support/program/child.ts";
import { NodeStage } from "../support/rigs/node_stage.ts";
import { eventually, patience } from "../support/watch/patience.ts";

/** A server, agents that joined, and a client that asks it. */
class Stage {
  readonly agents = new Map<string, Child>();

  constructor(readonly nodes: NodeStage) {}

  get #socket(): string {
    return `${this.nodes.server.stateDirectory}/admin.sock`;
  }

  get client(): AdminClient {
    return new AdminClient("server", { kind: "unix", path: this.#socket });
  }

  /** Reads the server's events as a browser does (WHATWG HTML §9.2.6). */
  async followNodes(
    take: (change: ListChange<NodeSummary>) => void,
    { signal }: AbortController,
  ): Promise<void> {
    const stream = await connectToPath(this.#socket, signal);
    const connection = new HttpConnection(stream, (idle) => idle.close());
    const bytes = headBytes([
      "GET /v1/watch?lists=nodes HTTP/1.1",
      "host: localhost",
    ]);
    const { body } = await connection.ask({ method: "GET", bytes, signal });
    let rest = "";
    for await (const text of body!.pipeThrough(new TextDecoderStream())) {
      const events = (rest + text).split("\n\n");
      rest = events.pop()!;
      for (const event of events.filter((one) => /^event: nodes$/m.test(one))) {
        take(JSON.parse(/^data: (.*)$/m.exec(event)![1]!));
      }
    }
    throw new Error("the server has ended its answer");
  }

  async join(node: string): Promise<void> {
    const agent = await this.nodes.joined(node, "--sync-interval=200ms");
    this.agents.set(node, agent);
    await this.is(node, "online");
  }

  async node(name: string): Promise<NodeSummary | undefined> {
    const { nodes } = await this.client.get<NodesAnswer>("/v1/nodes");
    return nodes.find((node) => node.name === name);
  }

  async is(name: string, state: NodeSummary["state"]): Promise<NodeSummary> {
    let found: NodeSummary | undefined;
    await until(async () => (found = await this.node(name))?.state === state);
    return found!;
  }

  /** A connection to the target through a node. */
  connect(node: string) {
    return this.nodes.connectBy(this.nodes.server, "grpc", { node });
  }
}

const until = (isSo: () => boolean | Promise<boolean>) =>
  eventually("it comes", isSo, 15_000);

Deno.test("a server says who is there, since when, and does what it is told", async () => {
  await using nodes = await NodeStage.open();
  const stage = new Stage(nodes);
  const { client } = stage;
  await Promise.all([stage.join("edge-1"), stage.join("edge-2")]);

  const watch = new AbortController();
  const changes: ListChange<NodeSummary>[] = [];
  let cut: string | undefined;
  const watching = stage.followNodes((change) => changes.push(change), watch)
    .catch((error: Error) => watch.signal.aborted || (cut = error.message));
  await until(() => changes.length > 0);
  assertEquals([changes[0]!.isWhole, changes[0]!.changed.length], [true, 2]);

  await assertDrained(stage);

  // Who was revoked stays away; who goes is offline since then.
  await client.post("/v1/nodes/edge-2/revoke", { reason: "stolen" });
  assertEquals((await stage.is("edge-2", "revoked")).reason, "stolen");
  await until(async () => (await stage.node("edge-2"))!.links === 0);
  const killedMs = Date.now();
  await stage.agents.get("edge-1")!.stop("SIGKILL");
  const gone = await stage.is("edge-1", "offline");
  assert(
    Math.abs(Date.parse(gone.since!) - killedMs) < patience(5_000),
    gone.since,
  );
  const isTold = (state: string) =>
    changes.some(({ isWhole, changed }) =>
      !isWhole && changed.some((node) => node.state === state)
    );
  await until(() => isTold("offline") && isTold("revoked"));
  watch.abort();
  await watching;
  assertEquals(cut, undefined);
  const { flags } = await client.get<ConfigAnswer>("/v1/config");
  const port = flags.find(({ name }) => name === "agent-port");
  assertEquals(
    [port?.value, port?.from],
    [`${stage.nodes.server.agentPort}`, "flag"],
  );
  const { events } = await client.get<EventsAnswer>("/v1/events?node=edge-2");
  const kinds = events.map(({ kind }) => kind);
  for (const kind of ["joined", "linked", "drain", "revoked", "unlinked"]) {
    assert((kinds as string[]).includes(kind), `${kind} is not in ${kinds}`);
  }

  // It is still known by the next process.
  await stage.nodes.server.child.stop("SIGTERM");
  await stage.nodes.server.start();
  const status = await stage.client.get<StatusAnswer>("/v1/status");
  assertEquals(status.nodes?.lastGone[0]?.name, "edge-1");
  assertEquals(status.nodes?.lastGone[0]?.since, gone.since);
  assertEquals([status.nodes!.offline, status.nodes!.revoked], [1, 1]);
});

/** With one server: new links here, and what runs goes on. */
async function assertDrained(stage: Stage): Promise<void> {
  const { client } = stage;
  const kept = await stage.connect("edge-2");
  const before = await client.get<NodeDetail>("/v1/nodes/edge-2");
  const { message } = await client.post<ActionAnswer>(
    "/v1/nodes/edge-2/drain",
  );
  assertMatch(message, /makes new links here/);
  const old = new Set(before.linkDetails.map(({ id }) => id));
  await until(async () => {
    const { linkDetails } = await client.get<NodeDetail>("/v1/nodes/edge-2");
    return linkDetails.some(({ id, state }) =>
      !old.has(id) && state === "linked"
    );
  });
  kept.caller.send(new TextEncoder().encode("still"));
  await until(() => kept.target.receivedBytes === 5);
  kept.caller.reset("over");
}
