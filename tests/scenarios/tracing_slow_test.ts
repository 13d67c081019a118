/**
 * Traces of dials by processes, to a collector of OTLP: one trace through
 * caller, server and agent, and nothing worse than no trace without a collector.
 *
 * @module
 */

import { NodeStage } from "../support/rigs/node_stage.ts";
import { TunnelProcesses } from "../support/rigs/tunnel_processes.ts";
import { assert, assertEquals } from "@std/assert";
import { ourCommand } from "../support/program/tunnel.ts";
import { runTunnel } from "../support/program/run.ts";
import { Workspace } from "../support/program/workspace.ts";
import { closedAddress } from "../support/peers/probe_target.ts";

/** A span, as far as tests look at it. */
interface CollectedSpan {
  /** `service.name` of the process that sent it. */
  readonly service: string;
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  /** OTLP's number: 1 internal, 2 server, 3 client. */
  readonly kind: number;
  readonly attributes: ReadonlyMap<string, unknown>;
  /** 2 is an error. */
  readonly status: { readonly code?: number; readonly message?: string };
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface TracesRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly (
        & Omit<CollectedSpan, "attributes" | "service">
        & { readonly attributes: readonly Attribute[] }
      )[];
    }[];
  }[];
}

class OtlpCollector implements AsyncDisposable {
  readonly spans: CollectedSpan[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  #waiters: (() => void)[] = [];

  constructor() {
    this.#server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen() {} },
      (request) => this.#take(request),
    );
  }

  /** For the environment of a process. */
  variables(service: string): Record<string, string> {
    return {
      OTEL_DENO: "true",
      OTEL_DENO_CONSOLE: "ignore",
      OTEL_SERVICE_NAME: service,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${this.#server.addr.port}`,
      OTEL_BSP_SCHEDULE_DELAY: "100",
    };
  }

  /** The first span that is wanted, there or to come. */
  async span(
    wanted: (span: CollectedSpan) => boolean,
  ): Promise<CollectedSpan> {
    for (;;) {
      const found = this.spans.find(wanted);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#waiters.push(resolve));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }

  async #take(request: Request): Promise<Response> {
    const text = await request.text();
    if (new URL(request.url).pathname === "/v1/traces") {
      this.#keep(JSON.parse(text));
    }
    for (const resolve of this.#waiters.splice(0)) resolve();
    return Response.json({});
  }

  #keep({ resourceSpans }: TracesRequest): void {
    for (const { resource, scopeSpans } of resourceSpans) {
      const service = String(valuesOf(resource.attributes).get("service.name"));
      for (const { spans } of scopeSpans) {
        for (const { attributes, ...span } of spans) {
          const kept = { ...span, attributes: valuesOf(attributes) };
          this.spans.push({ ...kept, service });
        }
      }
    }
  }
}

function valuesOf(attributes: readonly Attribute[]): Map<string, unknown> {
  return new Map(
    attributes.map(({ key, value }) => [key, Object.values(value)[0]]),
  );
}

/** Words before a program that has these variables. */
function env(variables: Readonly<Record<string, string>>): string[] {
  const words = Object.entries(variables)
    .map(([name, value]) => `${name}=${value}`);
  return ["env", ...words];
}

type VariablesOf = (service: string) => Record<string, string>;

function startTraced(variables: VariablesOf): Promise<TunnelProcesses> {
  return TunnelProcesses.start({
    serverProgram: env(variables("server")),
    agentProgram: env(variables("agent")),
  });
}

/** `tunnel dial`, to a target that ends at once. @returns Its exit code. */
async function dialWith(
  tunnel: TunnelProcesses,
  variables: VariablesOf,
  address = tunnel.target.address,
): Promise<number> {
  const words = ["dial", address, `--server=unix:${tunnel.socket}`];
  const command = [...env(variables("caller")), ...ourCommand(...words)];
  const caller = tunnel.launch("caller", command);
  if (address === tunnel.target.address) (await tunnel.target.next()).finish();
  return (await caller.ended).code;
}

Deno.test("one trace goes through caller, server and agent", async () => {
  await using collector = new OtlpCollector();
  const variables = (name: string) => collector.variables(name);
  await using traced = await startTraced(variables);
  assertEquals(await dialWith(traced, variables), 0);
  const spanOf = (service: string, name: string) =>
    collector.span((span) => span.service === service && span.name === name);
  const dial = await spanOf("caller", "tunnel dial");
  const served = await spanOf("server", "serve dial");
  const authorized = await spanOf("server", "authorize");
  const asked = await spanOf("server", "ask agent");
  const dialed = await spanOf("agent", "dial target");
  const parents = [
    [served, dial],
    [authorized, served],
    [asked, served],
    [dialed, asked],
  ] as const;
  for (const [span, parent] of parents) {
    assertEquals(span.traceId, dial.traceId, span.name);
    assertEquals(span.parentSpanId, parent.spanId, span.name);
  }
  const idOf = ({ attributes }: typeof dial) =>
    attributes.get("tunnel.connection.id");
  assertEquals(idOf(served), idOf(dial));
  assertEquals(idOf(dialed), idOf(dial));
  // Its trace is found by what it took.
  const metrics = await fetch(`${traced.server.healthUrl}/metrics`, {
    headers: { accept: "application/openmetrics-text; version=1.0.0" },
  });
  const text = await metrics.text();
  assert(text.includes(` # {trace_id="${dial.traceId}"} `), text);
  assert(text.endsWith("# EOF\n"));
  // Another one fails, and its spans say why.
  assert(await dialWith(traced, variables, closedAddress()) !== 0);
  const failed = await collector.span(({ name, status }) =>
    name === "dial target" && status.code === 2
  );
  assert(failed.status.message?.includes("connection refused"));
});

Deno.test("without a collector all go on, and end when they are told to", async () => {
  const variables = {
    OTEL_DENO: "true",
    // Nobody listens there.
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://${closedAddress()}`,
    OTEL_BSP_SCHEDULE_DELAY: "100",
  };
  await using traced = await startTraced(() => variables);
  for (let time = 0; time < 3; time++) {
    assertEquals(await dialWith(traced, () => variables), 0);
  }
  for (const { child } of [traced.agent, traced.server]) {
    child.signal("SIGTERM");
    assertEquals((await child.ended).code, 0);
  }
});

Deno.test("a node's join is one trace at the node and at the server", async () => {
  await using collector = new OtlpCollector();
  await using stage = new NodeStage(await Workspace.make());
  const { server } = stage;
  server.prefix = env(collector.variables("server"));
  await server.start();
  const token = await server.createToken();
  const join = await runTunnel([
    ...["join", token, `--server=${server.address}`],
    ...["--node=edge-1", `--state-dir=${stage.folderOf("edge-1")}`],
  ], { env: collector.variables("node") });
  assertEquals(join.code, 0, join.stderr);
  const asked = await collector.span(({ service }) => service === "node");
  const served = await collector.span(({ name }) => name === "join");
  assertEquals(asked.name, "/tunnel.v1.Identity/Join");
  assertEquals(served.service, "server");
  assertEquals(served.traceId, asked.traceId);
  assertEquals(served.parentSpanId, asked.spanId);
});
