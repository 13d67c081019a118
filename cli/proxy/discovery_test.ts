import { assertEquals, assertThrows } from "@std/assert";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import { UsageError } from "../flags/usage_error.ts";
import { discoverySource } from "../../agent/proxy/discovery_source.ts";
import {
  DISCOVERY_CLIENT_FLAGS,
  discoveryAccess,
  discoveryClientConfig,
} from "./discovery.ts";
import { readFlags } from "../flags/read_flags.ts";

function source(...argv: readonly string[]) {
  const context = {
    argv,
    environment: (name: string) => name === "HOME" ? "/h" : undefined,
    readFile: () => "",
  };
  const reading = readFlags("proxy", DISCOVERY_CLIENT_FLAGS, context);
  const access = discoveryAccess(reading.values, context);
  const config = discoveryClientConfig(reading, access, context, "z");
  const tools = { log: new RecordedLog(), proxyEnv: {} };
  return config && discoverySource(config, tools);
}

Deno.test("a proxy is called by its machine's name, and keeps what was said in its own place", () => {
  const { status } = source("--discovery=127.0.0.1:15010")!;
  assertEquals(status.node, `${Deno.hostname()}/proxy`);
  assertEquals([status.mode, status.state], ["delta", "connecting"]);
  const place = Deno.uid() === 0
    ? "/var/lib/tunnel/proxy/discovery"
    : "/h/.local/state/tunnel/proxy/discovery";
  assertEquals(status.kept, { path: place, problem: undefined });
  const other = source(
    ...["--discovery=127.0.0.1:1,127.0.0.1:2", "--discovery-mode=sotw"],
    ...["--discovery-node=n1/two", "--discovery-state=none"],
  )!;
  assertEquals([other.status.node, other.status.mode], ["n1/two", "sotw"]);
  assertEquals(other.status.kept, undefined);
});

Deno.test("nobody is followed unless a server is named", () => {
  assertEquals(source(), undefined);
  assertThrows(
    () => source("--discovery-mode=sotw"),
    UsageError,
    "Cannot use --discovery-mode without --discovery",
  );
});

Deno.test("what cannot be used is refused in one line", () => {
  const many = Array.from({ length: 65 }, () => "127.0.0.1:1").join(",");
  const wrongs: readonly (readonly [string, string])[] = [
    [`--discovery=${many}`, "saw 65 servers, wanted 64 at most"],
    ["--discovery=far.example:1", "this node has not joined"],
    ["--discovery=nonsense", 'saw "nonsense", wanted HOST:PORT'],
  ];
  for (const [flag, message] of wrongs) {
    assertThrows(() => source(flag), UsageError, message);
  }
});
