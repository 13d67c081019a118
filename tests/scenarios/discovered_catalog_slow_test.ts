/**
 * Whatever happens to a catalog, and to streams between a server and a proxy, the
 * proxy ends up with the catalog, and on the way no service is what it never was.
 *
 * Everything between the two is real, down to the bytes; only the line is the
 * test's.
 */

import { assert, assertEquals } from "@std/assert";
import {
  DIRECT,
  type Endpoint,
  keyOf,
  NO_AFFINITY,
  type Service,
} from "../../services/catalog/model/model.ts";
import type { Snapshot } from "../../services/catalog/snapshot.ts";
import { AdsClient } from "../../services/ads/ads_client.ts";
import { decodeResponse, encodeRequest } from "../../proto/xds/client_codec.ts";
import type { DiscoveryMode } from "../../proto/xds/discovery.ts";
import { encodeBody, encodeHead } from "../../proto/xds/response_encoder.ts";
import { RequestDecoder } from "../../proto/xds/request_decoder.ts";
import { clientGroup } from "../../services/discovery/generate/client_group.ts";
import { generateService } from "../../services/discovery/generate/generate_service.ts";
import { Views } from "../../services/discovery/generate/views.ts";
import { XdsStreamState } from "../../services/discovery/subscriptions/xds_stream_state.ts";
import { FakeTimers } from "../support/memory/fake_timers.ts";
import { Prng } from "../support/memory/prng.ts";
import type { WholeService } from "../../services/catalog/service_message.ts";
import { proxyNode, readWhole } from "../../services/proxy/ads/ads_source.ts";
import { SEES_EVERYTHING } from "../../services/catalog/visibility.ts";

const RUNS = 60;
const STEPS = 80;
const NAMES = ["a", "b", "c.d"];
const GROUP = clientGroup("service", SEES_EVERYTHING);

/** A server, a proxy, and a line between them that waits. */
class World {
  readonly timers = new FakeTimers();
  readonly client: AdsClient<WholeService>;
  /** All that each service was, in order, and how far the proxy is. */
  readonly #history = new Map<string, string[]>();
  readonly #reached = new Map<string, number>();
  readonly #views = new Views(generateService);
  readonly #decoder = new RequestDecoder();
  #snapshot: Snapshot = {
    ...{ version: 0, services: new Map(), endpoints: new Map() },
  };
  #stream: XdsStreamState | undefined;
  #up: Uint8Array[] = [];
  #down: Uint8Array[] = [];

  constructor(private readonly mode: DiscoveryMode) {
    this.client = new AdsClient<WholeService>({
      mode,
      node: proxyNode("n", ""),
      read: readWhole,
      timers: this.timers,
      onChanged: (changes) => {
        for (const { name, held } of changes) {
          if (held !== undefined) this.#reach(name, held.content);
        }
      },
      onAnswered: (_kind, _version, refusal) =>
        assertEquals(refusal, undefined),
    });
    this.client.want("service", true);
    this.#views.update(this.#snapshot);
  }

  connect(): void {
    this.client.closed();
    [this.#up, this.#down] = [[], []];
    this.#stream = new XdsStreamState({ mode: this.mode });
    this.#stream.onView(this.#views.viewOf(GROUP), this.timers.now());
    this.client.opened((request) => this.#up.push(encodeRequest(request)));
  }

  change(key: string, service: Service | undefined, list: readonly Endpoint[]) {
    const { version, services, endpoints } = this.#snapshot;
    const next = {
      version: version + 1,
      services: new Map(services),
      endpoints: new Map(endpoints),
    };
    if (service === undefined) {
      next.services.delete(key);
      next.endpoints.delete(key);
    } else {
      const texts = this.#history.get(key) ?? [];
      texts.push(JSON.stringify({ service, endpoints: list }));
      this.#history.set(key, texts);
      next.services.set(key, service);
      next.endpoints.set(key, list);
    }
    this.#snapshot = next;
    this.#views.update(next);
    this.#stream?.onView(this.#views.viewOf(GROUP), this.timers.now());
    this.#speak();
  }

  pass(ms: number): void {
    this.timers.advance(ms);
    this.#speak();
  }

  deliverUp(): void {
    const bytes = this.#up.shift();
    if (bytes === undefined) return;
    const request = this.#decoder.decode(this.mode, bytes);
    this.#stream!.onRequest(request, this.timers.now());
    this.#speak();
  }

  deliverDown(): void {
    const bytes = this.#down.shift();
    if (bytes === undefined) return;
    this.client.receive(decodeResponse(this.mode, bytes));
  }

  /** Until nobody has anything to say, however long one waits. */
  settle(): void {
    for (let quiet = 0; quiet < 3;) {
      while (this.#up.length + this.#down.length > 0) {
        this.deliverUp();
        this.deliverDown();
        quiet = 0;
      }
      this.pass(31_000);
      quiet++;
    }
  }

  check(): void {
    const { services, endpoints } = this.#snapshot;
    const held = this.client.held("service");
    assertEquals([...held.keys()].sort(), [...services.keys()].sort());
    for (const [key, service] of services) {
      const whole = { service, endpoints: endpoints.get(key) };
      assertEquals(held.get(key)!.content, whole);
    }
  }

  /** Only forward: what a service was before must not come again. */
  #reach(key: string, whole: WholeService): void {
    const from = this.#reached.get(key) ?? 0;
    const text = JSON.stringify(whole);
    const index = this.#history.get(key)!.indexOf(text, from);
    assert(index >= 0, `${key} was never so, or is not so any more: ${text}`);
    this.#reached.set(key, index);
  }

  #speak(): void {
    const stream = this.#stream;
    if (stream === undefined) return;
    while (true) {
      const out = stream.next(this.timers.now());
      if (out === undefined) return;
      const { body, nonce } = out;
      const [begin, end] = [
        encodeBody(this.mode, body),
        encodeHead(this.mode, nonce, ""),
      ];
      this.#down.push(new Uint8Array([...begin, ...end]));
    }
  }
}

function randomService(name: string, prng: Prng): Service {
  const count = 1 + prng.below(2);
  return {
    namespace: "default",
    name,
    ports: Array.from({ length: count }, (_, i) => ({
      name: count === 1 ? "" : `p${i}`,
      port: 80 + 10 * i + prng.below(2),
      protocol: prng.below(3) === 0 ? "udp" : "tcp",
    })),
    affinity: NO_AFFINITY,
    policy: prng.below(2) === 0 ? {} : { drainMs: prng.below(3) },
  };
}

function randomEndpoints({ ports }: Service, prng: Prng): readonly Endpoint[] {
  return Array.from({ length: prng.below(4) }, (_, i) => {
    const some = ports.filter(() => prng.below(2) === 0);
    return {
      address: `10.0.0.${i + 1}`,
      ports: (some.length === 0 ? ports.slice(0, 1) : some)
        .map(({ name }) => ({ name, port: 1 + prng.below(3) })),
      state: prng.pick(["ready", "ready", "terminating"]),
      weight: 1,
      via: prng.below(4) === 0 ? { kind: "agent" } : DIRECT,
    };
  });
}

function step(world: World, prng: Prng): void {
  const what = prng.below(100);
  if (what < 30) world.deliverUp();
  else if (what < 60) world.deliverDown();
  else if (what < 88) {
    const name = prng.pick(NAMES);
    const service = randomService(name, prng);
    const isGone = prng.below(4) === 0;
    world.change(
      keyOf(service),
      isGone ? undefined : service,
      randomEndpoints(service, prng),
    );
  } else if (what < 95) world.pass(prng.pick([1, 900, 11_000, 31_000]));
  else world.connect();
}

for (const mode of ["sotw", "delta"] as const) {
  Deno.test(`${mode}: a proxy ends up with the catalog, and never with half a change`, () => {
    const first = Prng.fromEnvironment().seed;
    for (let run = 0; run < RUNS; run++) {
      const seed = first + run;
      const prng = new Prng(seed);
      const world = new World(mode);
      try {
        world.connect();
        for (let i = 0; i < STEPS; i++) step(world, prng);
        world.settle();
        world.check();
      } catch (error) {
        throw new Error(`SEED=${seed}: ${(error as Error).message}`, {
          cause: error,
        });
      }
    }
  });
}
