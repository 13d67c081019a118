import { assertEquals } from "@std/assert";
import { mergedJson } from "./merged_json.ts";

Deno.test("clients of two workers are joined, and both must be ready", () => {
  assertEquals(
    mergedJson([
      { ready: true, sources: [1], clients: ["a"] },
      { ready: false, sources: [1], clients: ["b"] },
    ]),
    { ready: false, sources: [1], clients: ["a", "b"] },
  );
});

Deno.test("what services of two workers have counted is added, endpoint by endpoint", () => {
  const port = (open: number, address: string) => ({
    service: "a/b",
    port: "",
    protocol: "tcp",
    number: 80,
    open,
    endpoints: [{ address, weight: 1, total: open }],
  });
  assertEquals(
    mergedJson([
      { version: 1, ports: [port(1, "x:1")] },
      { version: 2, ports: [port(2, "x:1"), { service: "c/d", open: 5 }] },
      { version: 2, ports: [port(4, "y:1")] },
    ]),
    {
      version: 1,
      ports: [
        {
          ...port(7, "x:1"),
          endpoints: [
            { address: "x:1", weight: 1, total: 3 },
            { address: "y:1", weight: 1, total: 4 },
          ],
        },
        { service: "c/d", open: 5 },
      ],
    },
  );
});

Deno.test("what is no object is the first one's", () => {
  assertEquals(mergedJson(["a", "b"]), "a");
  assertEquals(mergedJson([{ open: 1 }, undefined]), { open: 1 });
});
