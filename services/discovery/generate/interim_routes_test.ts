import { assertEquals, assertStrictEquals } from "@std/assert";
import { resourceJson } from "../../../tests/support/xds/resource_data.ts";
import type { Resource } from "../../../proto/xds/resource.ts";
import { interimRoutesOf } from "./routes.ts";
import { resourceOf } from "./service_resources.ts";

/** Routes to `cluster`, whatever is asked for. */
function routesTo(name: string, cluster: string): Resource {
  const routes = [{ match: { prefix: "/" }, route: { cluster } }];
  const virtualHosts = ["a", "b"].map((host) => ({
    ...{ name: host, domains: [host], routes },
  }));
  return resourceOf("route", { name, virtualHosts }, [cluster]);
}

function mapOf(...routes: readonly Resource[]) {
  return new Map(routes.map((route) => [route.name, route]));
}

Deno.test("a interim has the old routes, and behind them the new clusters", () => {
  const other = routesTo("other", "default/x:80");
  const before = mapOf(routesTo("r", "default/a:80"), other);
  const after = mapOf(routesTo("r", "default/b:80"), other);
  const { routes, clusters } = interimRoutesOf(before, after)!;
  assertEquals([...clusters], [["r", ["default/b:80"]]]);
  assertStrictEquals(routes.get("other"), other);
  const resource = routes.get("r")!;
  assertEquals(resource.clusters, ["default/a:80", "default/b:80"]);
  for (const host of resourceJson(resource.any).virtualHosts) {
    assertEquals(
      host.routes.map(({ route }: { route: unknown }) => route),
      [{ cluster: "default/a:80" }, { cluster: "default/b:80" }],
    );
  }
  assertStrictEquals(interimRoutesOf(before, after)!.routes, routes);
});

Deno.test("there is none where routes lead nowhere new, or are new themselves", () => {
  const before = mapOf(routesTo("r", "default/a:80"));
  assertEquals(interimRoutesOf(before, before), undefined);
  assertEquals(interimRoutesOf(before, mapOf()), undefined);
  assertEquals(interimRoutesOf(mapOf(), before), undefined);
  assertEquals(
    interimRoutesOf(before, mapOf(routesTo("r", "default/a:80"))),
    undefined,
  );
});
