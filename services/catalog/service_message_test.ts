import { assertEquals, assertThrows } from "@std/assert";
import { GrpcError } from "../../proto/grpc/status.ts";
import { TunnelService } from "../../proto/xds/xds_messages.ts";
import {
  DIRECT,
  type Endpoint,
  keyOf,
  NO_AFFINITY,
  NO_POLICY,
  type Service,
} from "./model/model.ts";
import { readCatalogDocument } from "./sources/document/catalog_document.ts";
import {
  messageOf,
  ServiceMessageError,
  type WholeService,
  wholeServiceOf,
} from "./service_message.ts";

const PLAIN: Service = {
  namespace: "default",
  name: "web",
  ports: [{ name: "", port: 80, protocol: "tcp" }],
  affinity: NO_AFFINITY,
  policy: NO_POLICY,
};

const MESSAGE = messageOf({ service: PLAIN, endpoints: [] });

const ENDPOINT: Endpoint = {
  address: "10.0.0.1",
  ports: [{ name: "sql", port: 5433 }],
  state: "ready",
  weight: 1,
  via: DIRECT,
};
/** What documents say of services: everything that they can. */
const DOCUMENTED = ["catalog", "rules"]
  .flatMap((name): readonly WholeService[] => {
    const path = `../../tests/golden/discovery/${name}.yaml`;
    const { services, endpoints } = readCatalogDocument(
      Deno.readTextFileSync(new URL(path, import.meta.url)),
    );
    return services.map((service) => ({
      service,
      endpoints: endpoints.find((one) => one.service === keyOf(service))
        ?.endpoints ?? [],
    }));
  });

/** As it is behind the wire. */
function travelled(message: TunnelService): WholeService {
  return wholeServiceOf(TunnelService.decode(TunnelService.encode(message)));
}

Deno.test("a service comes back as it was, with everything and with nothing", () => {
  const plain = { service: PLAIN, endpoints: [] };
  const others: readonly WholeService[] = [
    plain,
    { ...plain, service: { ...PLAIN, ports: [], announced: true } },
    { ...plain, endpoints: [{ ...ENDPOINT, forZones: ["a", "b"] }] },
  ];
  for (const whole of [...DOCUMENTED, ...others]) {
    assertEquals(travelled(messageOf(whole)), whole);
  }
});

Deno.test("a health check of a kind that only a newer server knows is none", () => {
  const health = { kind: "ping", intervalMs: 1, timeoutMs: 2 };
  const { service } = travelled({ ...MESSAGE, policy: { health } });
  assertEquals(service.policy, {});
});

Deno.test("what no catalog may hold says what is wrong with it", () => {
  const port = PLAIN.ports[0]!;
  const wrongs: readonly (readonly [TunnelService, string])[] = [
    [{}, '"" is no namespace'],
    [
      { ...MESSAGE, ports: [{ ...port, port: 70_000 }] },
      'default/web: port "" is 70000, 1 to 65535 is wanted',
    ],
    [
      { ...MESSAGE, ports: [{ ...port, protocol: "sctp" }] },
      'protocol: saw "sctp", wanted tcp, udp',
    ],
    [
      { ...MESSAGE, policy: { balance: "toString" } },
      'balance: saw "toString", wanted round-robin, random, ',
    ],
    [
      { ...MESSAGE, affinity: { kind: "client-ip" } },
      "default/web: its affinity is 0 ms",
    ],
    [
      { ...MESSAGE, endpoints: [{ ...ENDPOINT, address: "a b" }] },
      'default/web: "a b" is no address',
    ],
    [
      { ...MESSAGE, endpoints: [{ ...ENDPOINT, state: "odd" }] },
      'state: saw "odd", wanted ready, serving, terminating, unready',
    ],
    [
      {
        ...MESSAGE,
        endpoints: [{
          ...ENDPOINT,
          via: { kind: "agent", agent: { key: "ip", value: "1" } },
        }],
      },
      'via.agent.key: saw "ip", wanted uid, host, cidr, id',
    ],
  ];
  for (const [message, sentence] of wrongs) {
    assertThrows(() => travelled(message), ServiceMessageError, sentence);
  }
  assertThrows(() => TunnelService.decode(Uint8Array.of(0x0a, 9)), GrpcError);
});
