import { assert, assertEquals, assertThrows } from "@std/assert";
import { Prng } from "../../../tests/support/memory/prng.ts";
import {
  endpointOf,
  serviceOf,
} from "../../../tests/support/watch/scripted_source.ts";
import {
  type Endpoint,
  keyOf,
  SEES_EVERYTHING,
  type Service,
} from "../../catalog/model/model.ts";
import type { Snapshot } from "../../catalog/snapshot.ts";
import { unservedNow, viewNow } from "../../../tests/support/xds/views_now.ts";
import { RESOURCE_KINDS } from "../../../proto/xds/resource.ts";
import type { View } from "../view/view.ts";
import { type ClientGroup, clientGroup } from "./client_group.ts";
import { generateService } from "./generate_service.ts";
import { IDLE_UPDATES_MAX, Views } from "./views.ts";

const GRPC = clientGroup("grpc", SEES_EVERYTHING);
const ENVOY = clientGroup("envoy", SEES_EVERYTHING);
const PROXY = clientGroup("service", SEES_EVERYTHING);

/** A catalog to be changed, as a mux would: what stays is shared. */
class Book {
  #snapshot: Snapshot = {
    version: 0,
    services: new Map(),
    endpoints: new Map(),
  };

  put(service: Service, ...endpoints: readonly Endpoint[]): Snapshot {
    const key = keyOf(service);
    return this.#next(({ services, endpoints: lists }) => {
      services.set(key, service);
      lists.set(key, endpoints);
    });
  }

  move(key: string, ...endpoints: readonly Endpoint[]): Snapshot {
    return this.#next((next) => void next.endpoints.set(key, endpoints));
  }

  remove(key: string): Snapshot {
    return this.#next(({ services, endpoints }) => {
      services.delete(key);
      endpoints.delete(key);
    });
  }

  get snapshot(): Snapshot {
    return this.#snapshot;
  }

  #next(
    change: (
      next: {
        services: Map<string, Service>;
        endpoints: Map<string, readonly Endpoint[]>;
      },
    ) => void,
  ): Snapshot {
    const { version, services, endpoints } = this.#snapshot;
    const next = {
      version: version + 1,
      services: new Map(services),
      endpoints: new Map(endpoints),
    };
    change(next);
    return this.#snapshot = next;
  }
}

/** Counts for which services resources were made. */
function counted(): { views: Views; made: string[] } {
  const made: string[] = [];
  const views = new Views((input, variant) => {
    made.push(`${variant.form} ${input.service.name}`);
    return generateService(input, variant);
  });
  return { views, made };
}

/** `KIND NAME VERSION` of everything. */
function textsOf({ resources }: View): string[] {
  return RESOURCE_KINDS.flatMap((kind) =>
    [...resources[kind].values()].map(({ name, version }) =>
      `${kind} ${name} ${version}`
    )
  );
}

Deno.test("there is no view before the catalog's first update", () => {
  const views = new Views(generateService);
  assertThrows(() => viewNow(views, GRPC), TypeError, "first update");
  views.update(new Book().snapshot);
  assertEquals(textsOf(viewNow(views, GRPC)), []);
});

Deno.test("a changed endpoint is looked at once, and only its assignment is new", () => {
  const { views, made } = counted();
  const book = new Book();
  book.put(serviceOf("a"), endpointOf("10.0.0.1:80"));
  views.update(book.put(serviceOf("b"), endpointOf("10.0.0.2:80")));
  const before = viewNow(views, GRPC);
  assertEquals(made.splice(0), ["grpc a", "grpc b"]);
  assert(viewNow(views, GRPC) === before);

  views.update(book.move("default/b", endpointOf("10.0.0.3:80")));
  const after = viewNow(views, GRPC);
  assertEquals(made, ["grpc b"]);
  for (const kind of ["cluster", "listener", "route"] as const) {
    assert(after.resources[kind] === before.resources[kind], kind);
  }
  const [a, b] = ["default/a:80", "default/b:80"] as const;
  const was = before.resources.endpoints;
  const is = after.resources.endpoints;
  assert(is.get(a) === was.get(a));
  assert(is.get(b)!.version !== was.get(b)!.version);
});

Deno.test("a resource with the same content stays the same object", () => {
  const { views } = counted();
  const book = new Book();
  views.update(book.put(serviceOf("a"), endpointOf("10.0.0.1:80")));
  const before = viewNow(views, ENVOY);
  // Another object, and a state of an endpoint that no client receives.
  const unready = endpointOf("10.0.0.9:80", { state: "unready" });
  views.update(
    book.put(serviceOf("a"), endpointOf("10.0.0.1:80"), unready),
  );
  assert(viewNow(views, ENVOY) === before);
  const sticky = { affinity: { kind: "client-ip", ttlMs: 1_000 } } as const;
  views.update(
    book.put(serviceOf("a", 80, sticky), endpointOf("10.0.0.1:80"), unready),
  );
  const after = viewNow(views, ENVOY);
  assert(after.resources.cluster !== before.resources.cluster);
  assert(after.resources.listener !== before.resources.listener);
  assert(after.resources.endpoints === before.resources.endpoints);
});

Deno.test("groups share resources that are the same for both", () => {
  const { views, made } = counted();
  const zoneA = clientGroup("grpc", SEES_EVERYTHING, { zone: "a" });
  const zoneB = clientGroup("grpc", SEES_EVERYTHING, { zone: "b" });
  const book = new Book();
  const inA = endpointOf("10.0.0.1:80", { zone: "a" });
  const inB = endpointOf("10.0.0.2:80", { zone: "b" });
  book.put(serviceOf("far"), inA, inB);
  views.update(
    book.put(serviceOf("near", 80, { policy: { zoneAware: true } }), inA, inB),
  );
  const a = viewNow(views, zoneA).resources;
  const b = viewNow(views, zoneB).resources;
  assertEquals(made, ["grpc far", "grpc near", "grpc near"]);
  const [far, near] = ["default/far:80", "default/near:80"] as const;
  assert(a.endpoints.get(far) === b.endpoints.get(far));
  assert(a.endpoints.get(near) !== b.endpoints.get(near));
  assert(a.cluster.get(near) === b.cluster.get(near));
});

Deno.test("no client receives services that it may not see", () => {
  const { views, made } = counted();
  const onlyA = clientGroup("grpc", {
    id: "only a",
    sees: (key) => key === "default/a",
  });
  const book = new Book();
  book.put(serviceOf("a"), endpointOf("10.0.0.1:80"));
  views.update(book.put(serviceOf("b"), endpointOf("web.internal:80")));
  const view = viewNow(views, onlyA);
  assertEquals([...view.resources.cluster.keys()], ["default/a:80"]);
  assertEquals(unservedNow(views, onlyA), []);
  assertEquals(made.splice(0), ["grpc a"]);
  assertEquals(unservedNow(views, GRPC).map(({ service }) => service), [
    "default/b",
  ]);
  made.splice(0);
  views.update(book.move("default/b", endpointOf("10.0.0.3:80")));
  assert(viewNow(views, onlyA) === view);
  assertEquals(made, []);
});

Deno.test("of two that want one place the one with a configured address has it, then the first by name", () => {
  const { views } = counted();
  const book = new Book();
  const endpoint = endpointOf("10.0.0.1:80");
  views.update(book.put(serviceOf("b", 8080), endpoint));
  const listeners = () =>
    [...viewNow(views, ENVOY).resources.listener.keys()].sort();
  const reasons = () =>
    unservedNow(views, ENVOY).map(({ service, reason }) =>
      `${service} ${reason}`
    );
  assertEquals(listeners(), ["default/b:8080"]);
  assertEquals(reasons(), []);

  views.update(book.put(serviceOf("a", 8080), endpoint));
  assertEquals(listeners(), ["default/a:8080"]);
  assertEquals(reasons(), [
    "default/b port 8080: no port listens for it, give it another listen; " +
    "tcp 127.0.0.1:8080 is the place of default/a",
  ]);
  // Clusters are no matter of places.
  assertEquals(viewNow(views, ENVOY).resources.cluster.size, 2);

  const asks = serviceOf("c", 80, {
    ports: [{ name: "", port: 80, protocol: "tcp", listen: { port: 8080 } }],
  });
  views.update(book.put(asks, endpoint));
  assertEquals(listeners(), ["default/c:80@127.0.0.1:8080"]);
  assertEquals(reasons().length, 2);

  const udp = serviceOf("u", 8080, {
    ports: [{ name: "", port: 8080, protocol: "udp" }],
  });
  views.update(book.put(udp, endpoint));
  assertEquals(listeners(), [
    "default/c:80@127.0.0.1:8080",
    "default/u:8080/udp",
  ]);
  views.update(book.remove("default/c"));
  assertEquals(listeners(), ["default/a:8080", "default/u:8080/udp"]);
  // gRPC clients listen nowhere, and proxies find places by themselves.
  assertEquals(unservedNow(views, GRPC), []);
  assertEquals(viewNow(views, PROXY).resources.service.size, 3);
});

Deno.test("what is announced gets no place and no name that somebody configured has", () => {
  const { views } = counted();
  const book = new Book();
  const endpoint = endpointOf("10.0.0.1:5432");
  const announced = { announced: true } as const;
  // First by name, and in the namespace whose names are the shortest.
  book.put(serviceOf("a", 5432, announced), endpoint);
  views.update(book.put(serviceOf("web.shop", 80, announced), endpoint));
  const names = (
    group: ClientGroup,
  ) => [...viewNow(views, group).resources.listener.keys()].sort();
  assertEquals(names(ENVOY), ["default/a:5432", "default/web.shop:80"]);
  book.put(serviceOf("shop/web"), endpoint);
  views.update(book.put(serviceOf("postgres", 5432), endpoint));
  assertEquals(names(ENVOY), ["default/postgres:5432", "shop/web:80"]);
  const { listener } = viewNow(views, GRPC).resources;
  const meaning = (name: string) => listener.get(name)!.any;
  const text = new TextDecoder().decode(meaning("web.shop"));
  assert(text.includes("shop/web:80") && !text.includes("default/web"), text);
});

Deno.test("a name of gRPC that could mean two services means one for ever", () => {
  const { views } = counted();
  const book = new Book();
  const endpoint = endpointOf("10.0.0.1:80");
  const route = (name: string) =>
    viewNow(views, GRPC).resources.listener.get(name)?.version;
  views.update(book.put(serviceOf("b/a"), endpoint));
  const ofNamespace = route("a.b");
  assertEquals(unservedNow(views, GRPC), []);
  views.update(book.put(serviceOf("a.b"), endpoint));
  assert(route("a.b") !== ofNamespace);
  assertEquals(unservedNow(views, GRPC).map(({ reason }) => reason), [
    "port 80: xds:///a.b is the name of default/a.b",
    "port 80: xds:///a.b:80 is the name of default/a.b",
  ]);
  views.update(book.remove("default/a.b"));
  assertEquals(route("a.b"), ofNamespace);
});

Deno.test("what a route leads to is there, be it only without endpoints", () => {
  const { views } = counted();
  const book = new Book();
  const routes = [{
    prefix: "/b",
    to: [{ service: "default/b", port: 80, weight: 1 }],
  }];
  const a = serviceOf("a", 80, {
    ports: [
      { name: "", port: 80, protocol: "tcp", appProtocol: "http", routes },
    ],
  });
  views.update(book.put(a, endpointOf("10.0.0.1:80")));
  const endpointsOfB = () => {
    const { cluster, endpoints } = viewNow(views, GRPC).resources;
    assert(cluster.has("default/b:80"));
    return endpoints.get("default/b:80")!.version;
  };
  const none = endpointsOfB();
  assertEquals(unservedNow(views, GRPC), [{
    service: "default/a",
    reason: "port 80: its routes lead to default/b:80, and there is no such " +
      "TCP port that this client may see; add it, or mend the routes",
  }]);
  views.update(book.put(serviceOf("b"), endpointOf("10.0.0.2:80")));
  assert(endpointsOfB() !== none);
  assertEquals(unservedNow(views, GRPC), []);
  views.update(book.remove("default/b"));
  assertEquals(endpointsOfB(), none);
});

Deno.test("a group that nobody asks for is forgotten, and what only it used", () => {
  const { views, made } = counted();
  const book = new Book();
  views.update(book.put(serviceOf("a"), endpointOf("10.0.0.1:80")));
  viewNow(views, GRPC);
  viewNow(views, ENVOY);
  for (let update = 0; update <= IDLE_UPDATES_MAX; update++) {
    views.update(book.put(serviceOf("b", 80 + update)));
    viewNow(views, GRPC);
  }
  assertEquals(views.groups, [GRPC]);
  made.splice(0);
  viewNow(views, ENVOY);
  assertEquals(made, ["envoy a", "envoy b"]);
});

Deno.test("a view is made a service at a time, and is nobody's before it is whole", () => {
  const { views, made } = counted();
  const book = new Book();
  for (let index = 0; index < 100; index++) {
    book.put(serviceOf(`s${index}`), endpointOf("10.0.0.1:80"));
  }
  views.update(book.snapshot);
  const steps = views.preparing(GRPC);
  while (!steps.next().done) {
    assert(made.splice(0).length <= 1);
    assertEquals(views.viewOf(GRPC), undefined);
    assertEquals(views.unservedTo(GRPC), []);
  }
  assertEquals(views.viewOf(GRPC)!.resources.cluster.size, 100);
  assert(views.viewOf(GRPC) === viewNow(views, GRPC));
  assertEquals(made, []);
});

Deno.test("what changes while a view is made is in it, at the cost of the change", () => {
  const { views, made } = counted();
  const book = new Book();
  for (const name of ["a", "b", "c", "d"]) {
    book.put(serviceOf(name), endpointOf("10.0.0.1:80"));
  }
  views.update(book.snapshot);
  const steps = views.preparing(GRPC);
  while (made.length < 3) steps.next();
  // One that was looked at, one that was not, one that is new, one that goes.
  book.move("default/a", endpointOf("10.0.0.2:80"));
  book.move("default/d", endpointOf("10.0.0.2:80"));
  book.put(serviceOf("e"), endpointOf("10.0.0.2:80"));
  views.update(book.remove("default/b"));
  while (!steps.next().done) assertEquals(views.viewOf(GRPC), undefined);
  assertEquals(made.slice(3).sort(), ["grpc a", "grpc d", "grpc e"]);
  const fresh = new Views(generateService);
  fresh.update(book.snapshot);
  const view = views.viewOf(GRPC)!;
  assertEquals(textsOf(view), textsOf(viewNow(fresh, GRPC)));

  // The last view stays what it was until the next one is whole.
  book.move("default/c", endpointOf("10.0.0.3:80"));
  views.update(book.move("default/e", endpointOf("10.0.0.3:80")));
  made.splice(0);
  const again = views.preparing(GRPC);
  again.next();
  assertEquals(made, ["grpc c"]);
  assert(views.viewOf(GRPC) === view);
  while (!again.next().done);
  assert(views.viewOf(GRPC) !== view);
  assertEquals(made, ["grpc c", "grpc e"]);
});

Deno.test("however the catalog came to be what it is, views are the same", () => {
  const prng = Prng.fromEnvironment();
  const groups: readonly ClientGroup[] = [
    GRPC,
    ENVOY,
    PROXY,
    clientGroup("envoy", { id: "some", sees: (key) => key !== "default/s1" }),
    clientGroup("grpc", SEES_EVERYTHING, {
      connectProxy: { host: "127.0.0.1", port: 3128 },
      zone: "a",
    }),
  ];
  const views = new Views(generateService);
  const book = new Book();
  for (let step = 0; step < 100; step++) {
    const key = `s${prng.below(5)}`;
    const endpoints = Array.from(
      { length: prng.below(4) },
      () => randomEndpoint(prng),
    );
    switch (prng.below(4)) {
      case 0:
        book.put(randomService(key, prng), ...endpoints);
        break;
      case 1:
        book.remove(`default/${key}`);
        break;
      default:
        book.move(`default/${key}`, ...endpoints);
    }
    if (prng.below(3) === 0) continue;
    views.update(book.snapshot);
    for (const one of groups) {
      if (prng.below(4) === 0) continue;
      const fresh = new Views(generateService);
      fresh.update(book.snapshot);
      const at = `SEED=${prng.seed}, step ${step}, ${one.key}`;
      assertEquals(
        textsOf(viewNow(views, one)),
        textsOf(viewNow(fresh, one)),
        at,
      );
      assertEquals(unservedNow(views, one), unservedNow(fresh, one), at);
    }
  }
});

function randomService(name: string, prng: Prng): Service {
  const routes = prng.below(2) === 0 ? [] : [{
    prefix: "/",
    to: [{ service: `default/s${prng.below(6)}`, port: 80, weight: 1 }],
  }];
  const listen = prng.below(2) === 0
    ? {}
    : { listen: { port: 80 + prng.below(2) } };
  return serviceOf(name, 80, {
    ports: [
      {
        ...{ name: "", port: 80 + prng.below(2), protocol: "tcp" },
        ...{ appProtocol: "http", routes, ...listen },
      },
      { name: "u", port: 80, protocol: "udp" },
    ],
    policy: prng.below(2) === 0 ? {} : { zoneAware: true },
  });
}

function randomEndpoint(prng: Prng): Endpoint {
  const states = ["ready", "serving", "unready"] as const;
  return {
    ...endpointOf(`10.0.0.${prng.below(3)}:80`),
    state: states[prng.below(3)]!,
    ports: [{ name: "", port: 80 }, { name: "u", port: 81 }],
    via: { kind: prng.below(2) === 0 ? "direct" : "agent" },
    zone: prng.below(2) === 0 ? "a" : "b",
  };
}
