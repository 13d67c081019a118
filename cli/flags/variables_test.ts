import { assertEquals, assertRejects } from "@std/assert";
import { flag } from "./flag.ts";
import { UsageError } from "./usage_error.ts";
import { checkVariables } from "../run.ts";

const details = { group: "Test", help: "For the test." };
const SERVER = {
  "agent-port": flag.port(8091, details),
  "mode": flag.text("", { ...details, environment: ["MODE_OF_OLD"] }),
};
const AGENT = { "node": flag.text("", details) };

/** What is said of these variables when a server starts. */
async function said(...names: string[]): Promise<string> {
  const others = () => Promise.resolve([SERVER, AGENT]);
  try {
    await checkVariables(names, SERVER, others);
    return "";
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
}

Deno.test("a variable with a slip is refused with what was meant", async () => {
  assertEquals(
    await said("PATH", "TUNNEL_AGENT_PRT"),
    "Unknown variable $TUNNEL_AGENT_PRT; did you mean $TUNNEL_AGENT_PORT? " +
      "(unset it if it belongs to another program)",
  );
  assertEquals((await said("TUNNEL_SOCKET")).includes("TUNNEL_SOCKETS"), true);
});

Deno.test("variables of other commands and programs are left alone", async () => {
  // One letter from TUNNEL_MODE, and the agent's.
  assertEquals(await said("TUNNEL_NODE"), "");
  assertEquals(await said("TUNNEL_TOKEN", "TUNNEL_EDGE_IP_VERSION"), "");
  assertEquals(await said("TUNNEL_AGENT_PORT", "MODE_OF_OLD"), "");
});

Deno.test("Kubernetes' variables of a Service are no slips", async () => {
  assertEquals(await said("TUNNEL_AGENTS_PORT"), "");
  assertEquals(await said("TUNNEL_AGENT_PORT_80_TCP"), "");
  assertEquals(await said("TUNNEL_AGENT_SERVICE_PORT"), "");
  await assertRejects(
    () => checkVariables(["TUNNEL_MOD"], SERVER, () => Promise.resolve([])),
    UsageError,
  );
});
