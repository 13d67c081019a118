import {
  resourceOf,
  viewOf,
} from "../../../tests/support/xds/scripted_subscriber.ts";
import type { DiscoveryMode } from "../../../proto/xds/discovery.ts";
import {
  RESOURCE_KINDS,
  type ResourceKind,
  TYPE_URLS,
} from "../../../proto/xds/resource.ts";
import type { View } from "../view/view.ts";
import { XdsStreamState } from "./xds_stream_state.ts";

const STREAMS = 1_000;
const NAMES = Array.from({ length: 200 }, (_, i) => `default/svc-${i}:80`);
const NONE: readonly string[] = [];

/** Streams that have taken all of a view, as Envoys would. */
class Fleet {
  readonly streams: XdsStreamState[];
  #view = viewOf(
    Object.fromEntries(RESOURCE_KINDS.map((kind) => [
      kind,
      Object.fromEntries(NAMES.map((name) => [name, "0"])),
    ])),
  );
  #version = 0;
  #nowMs = 0;
  responses = 0;

  constructor(mode: DiscoveryMode, streams = STREAMS) {
    this.streams = Array.from(
      { length: streams },
      () => new XdsStreamState({ mode }),
    );
    for (const stream of this.streams) {
      stream.onView(this.#view, 0);
      for (const kind of RESOURCE_KINDS) {
        const isAll = kind === "cluster" || kind === "listener";
        this.#say(stream, mode, kind, isAll ? NONE : NAMES, "");
      }
      this.#drain(stream, mode);
    }
  }

  /** Endpoints of `names` change, and everybody hears and answers. */
  change(mode: DiscoveryMode, names: readonly string[]): void {
    const version = `${++this.#version}`;
    const endpoints = new Map(this.#view.resources.endpoints);
    for (const name of names) {
      endpoints.set(name, resourceOf("endpoints", name, version));
    }
    this.push(mode, { resources: { ...this.#view.resources, endpoints } });
  }

  push(mode: DiscoveryMode, view: View): void {
    this.#view = view;
    this.#nowMs += 10;
    for (const stream of this.streams) {
      stream.onView(this.#view, this.#nowMs);
      this.#drain(stream, mode);
    }
  }

  get view(): View {
    return this.#view;
  }

  #drain(stream: XdsStreamState, mode: DiscoveryMode): void {
    const sent: [ResourceKind, string][] = [];
    do {
      sent.length = 0;
      for (;;) {
        const out = stream.next(this.#nowMs);
        if (out === undefined) break;
        this.responses++;
        sent.push([out.kind, out.nonce]);
      }
      for (const [kind, nonce] of sent) {
        const isAll = kind === "cluster" || kind === "listener";
        const names = isAll || mode === "delta" ? NONE : NAMES;
        this.#say(stream, mode, kind, names, nonce);
      }
    } while (sent.length > 0);
  }

  #say(
    stream: XdsStreamState,
    mode: DiscoveryMode,
    kind: ResourceKind,
    names: readonly string[],
    nonce: string,
  ): void {
    const every = {
      node: undefined,
      typeUrl: TYPE_URLS[kind],
      responseNonce: nonce,
      errorDetail: undefined,
    };
    stream.onRequest(
      mode === "sotw"
        ? { ...every, mode, versionInfo: "", resourceNames: names }
        : {
          ...every,
          mode,
          subscribe: names,
          unsubscribe: NONE,
          initialVersions: NO_VERSIONS,
        },
      this.#nowMs,
    );
  }
}

const NO_VERSIONS: ReadonlyMap<string, string> = new Map();

for (const mode of ["sotw", "delta"] as const) {
  const fleet = new Fleet(mode);
  const group = `1,000 streams of 200 names, ${mode}`;
  Deno.bench("one endpoint changes, and is answered", { group }, () => {
    fleet.change(mode, ["default/svc-7:80"]);
  });
  Deno.bench("all endpoints change, and are answered", { group }, () => {
    fleet.change(mode, NAMES);
  });
  Deno.bench("something changes that nobody asked for", { group }, () => {
    const endpoints = new Map(fleet.view.resources.endpoints);
    endpoints.set(
      "other",
      resourceOf("endpoints", "other", `${Math.random()}`),
    );
    fleet.push(mode, { resources: { ...fleet.view.resources, endpoints } });
  });
  Deno.bench("all connect, and answer", { group }, () => {
    new Fleet(mode);
  });
}

/** Bytes of one stream that has taken 200 names of each of four kinds. */
if (import.meta.main) {
  for (const mode of ["sotw", "delta"] as const) {
    new Fleet(mode, 10); // What all of them share.
    const collect = (globalThis as { gc?: () => void }).gc;
    if (collect === undefined) throw new TypeError("Run with --expose-gc");
    const kept: Fleet[] = [];
    collect();
    const before = Deno.memoryUsage().heapUsed;
    kept.push(new Fleet(mode, 10_000));
    collect();
    const bytes = Deno.memoryUsage().heapUsed - before;
    // deno-lint-ignore no-console -- what a person ran this for.
    console.log(
      `${mode}: ${Math.round(bytes / 10_000)} bytes per stream`,
      kept.length,
    );
  }
}
