import { assertEquals } from "@std/assert";
import { resourceNameOf } from "./model.ts";

Deno.test("a resource is called by its service and port", () => {
  const key = "default/a.b";
  const names = {
    "default/a.b:80": { port: 80, protocol: "tcp" },
    "default/a.b:53/udp": { port: 53, protocol: "udp" },
  } as const;
  for (const [name, port] of Object.entries(names)) {
    assertEquals(resourceNameOf(key, port), name);
  }
});
