import { assert, assertEquals } from "@std/assert";
import { packagedFile } from "../../tests/support/program/packaged_file.ts";
import { Stage } from "./stage.ts";

Deno.test("a process whose port was taken meanwhile is started with others", async () => {
  using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const stage = new Stage([packagedFile()]);
  const asked: number[] = [];
  const ports = await stage.startReady(
    "server",
    "healthz",
    ([probes, admin]) => {
      asked.push(probes);
      return [
        "server",
        `--state-dir=${stage.path("server")}`,
        "--agent-bind-address=127.0.0.1",
        "--agent-port=0",
        "--health-bind-address=127.0.0.1",
        `--health-port=${probes}`,
        `--admin-port=${asked.length === 1 ? taken.addr.port : admin}`,
      ];
    },
  ).finally(() => stage.strike());
  assertEquals(asked.length, 2);
  assertEquals(ports[0], asked[1]);
  assert(asked[0] !== asked[1]);
});
