import { assertEquals } from "@std/assert";
import { serviceOf } from "../../../tests/support/watch/scripted_source.ts";
import type { Route, Service, ServicePort } from "../../catalog/model/model.ts";
import type {
  RouteConfiguration,
  RouteMatch,
  VirtualHost,
} from "../../../proto/xds/xds_messages.ts";
import { Prng } from "../../../tests/support/memory/prng.ts";
import { routesOf, targetsOfRoutes } from "./routes.ts";

function withRoutes(
  ...routes: readonly Route[]
): readonly [Service, ServicePort] {
  const port: ServicePort = {
    ...{ name: "", port: 80, protocol: "tcp", appProtocol: "http", routes },
  } as const;
  return [serviceOf("shop/a", 80, { ports: [port] }), port];
}

function to(service: string, weight = 1) {
  return { service, port: 80, weight };
}

Deno.test("clusters that routes lead to are named once, without its own", () => {
  const [service, port] = withRoutes(
    { prefix: "/1", to: [to("shop/b"), to("shop/a")] },
    { prefix: "/2", to: [to("shop/b"), to("x/y")] },
  );
  assertEquals(targetsOfRoutes(service, port), ["shop/b:80", "x/y:80"]);
});

Deno.test("by virtual hosts the same route is found as by asking one after the other", () => {
  const prng = Prng.fromEnvironment();
  const hosts = ["a.x", "b.x", "*.x", "*.b.x", "a.b.x", undefined] as const;
  const pick = <T>(items: readonly T[]) => items[prng.below(items.length)]!;
  for (let round = 0; round < 200; round++) {
    const routes = Array.from({ length: prng.below(6) }, (_, i): Route => {
      const host = pick(hosts);
      return {
        ...host === undefined ? {} : { host },
        prefix: pick(["/", "/a", "/a/b"]),
        to: [to(`t/r${i}`)],
      };
    });
    const [service, port] = withRoutes(...routes);
    const config = routesOf(service, port, { form: "envoy" });
    for (const host of ["a.x", "b.x", "c.x", "a.b.x", "c.b.x", "x", "y"]) {
      for (const path of ["/", "/a", "/a/b/c", "/b"]) {
        const wanted = routes.find((route) =>
          path.startsWith(route.prefix) &&
          (route.host === undefined || matchesDomain(route.host, host))
        );
        assertEquals(
          clusterFor(config, host, path),
          wanted === undefined ? "shop/a:80" : `${wanted.to[0]!.service}:80`,
          `SEED=${prng.seed}: ${host}${path}`,
        );
      }
    }
  }
});

/** As Envoy and gRPC do: exact domains, then the longest `*.x`, then `*`. */
function clusterFor(
  { virtualHosts = [] }: RouteConfiguration,
  host: string,
  path: string,
): string | undefined {
  const rank = ({ domains = [] }: VirtualHost) =>
    Math.max(...domains.map((domain) => {
      if (domain === host) return 1_000;
      return matchesDomain(domain, host) ? domain.length : -1;
    }));
  const [best] = [...virtualHosts].sort((a, b) => rank(b) - rank(a));
  const isMatch = (match: RouteMatch | undefined) =>
    path.startsWith(match?.prefix ?? "");
  return best?.routes?.find(({ match }) => isMatch(match))?.route?.cluster;
}

function matchesDomain(domain: string, host: string): boolean {
  if (domain === "*") return true;
  return domain.startsWith("*")
    ? host.endsWith(domain.slice(1)) && host.length >= domain.length
    : domain === host;
}
