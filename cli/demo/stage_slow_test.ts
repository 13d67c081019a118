import { assert, assertMatch } from "@std/assert";
import { packagedFile } from "../../tests/support/program/packaged_file.ts";
import { Stage } from "./stage.ts";

Deno.test("a process is ready when it says so, and on ports that were free", async () => {
  const stage = new Stage([packagedFile()]);
  const { agents, health } = await stage.startReady(
    "server",
    "place",
    "server",
    "--agent-bind-address=127.0.0.1",
    "--health-bind-address=127.0.0.1",
    ...["--agent-port=0", "--health-port=0", "--admin-port=0"],
  ).finally(() => stage.strike());
  assertMatch(agents!, /^127\.0\.0\.1:[1-9]\d*$/);
  assert(agents !== health);
});
