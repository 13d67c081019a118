/**
 * A collector of traces for tests: takes OTLP over HTTP as JSON, and keeps the
 * spans.
 *
 * @module
 */

/** A span, as far as tests look at it. */
export interface CollectedSpan {
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

/** See the module description. */
export class OtlpCollector implements AsyncDisposable {
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
