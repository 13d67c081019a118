import { assertEquals } from "@std/assert";
import type { AgentOptions } from "../agent/options.ts";
import type { ServerOptions } from "../server/options.ts";
import { agentCommand } from "./agent/command.ts";
import type { Command } from "./program/command.ts";
import { ExitCode } from "./program/exit_codes.ts";
import { serverCommand } from "./server/command.ts";
import type { Replaceable } from "../net/program/program.ts";
import { type Ran, ran, words } from "../tests/support/program/command_line.ts";

const SERVER = [
  "--uds-name=/run/front.sock",
  "--cluster-cert=a.crt",
  "--cluster-key=a.key",
  "--cluster-ca-cert=ca.crt",
];

/** Something that ended as soon as it was up. */
const ENDED: Replaceable = {
  reload: () => {},
  finished: Promise.resolve(),
  shutdown: () => {},
  stop: () => {},
  whenReady: () => Promise.resolve(),
  isDraining: false,
  awaitSuccessor: () => {},
  handedOver: () => {},
};

async function start(
  command: Command,
  argv: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<Pick<Ran, "code" | "errors">> {
  const { code, errors } = await ran(
    command.run,
    argv,
    words(argv, environment),
  );
  return { code, errors };
}

Deno.test("tunnel server gives its options to the server", async () => {
  let seen: ServerOptions | undefined;
  const command = serverCommand((options) => {
    seen = options;
    return Promise.resolve(ENDED);
  });
  const outcome = await start(command, SERVER, { PROXY_SERVER_ID: "one" });
  assertEquals(outcome, { code: ExitCode.OK, errors: "" });
  assertEquals(seen!.serverId, "one");
  assertEquals(seen!.agents.caFile, "ca.crt");
});

Deno.test("tunnel agent gives its options to the agent", async () => {
  let seen: AgentOptions | undefined;
  const command = agentCommand((options) => {
    seen = options;
    return Promise.resolve(ENDED);
  });
  const environment = { PROXY_AGENT_ID: "node7", TUNNEL_CA_CERT: "ca.crt" };
  const outcome = await start(command, [], environment);
  assertEquals(outcome, { code: ExitCode.OK, errors: "" });
  assertEquals(seen!.agentId, "node7");
  assertEquals(seen!.server.caFile, "ca.crt");
});

Deno.test("nothing is started when a flag is wrong", async () => {
  const command = serverCommand(() => {
    throw new TypeError("Started");
  });
  const { code, errors } = await start(command, [...SERVER, "--mode=x"]);
  assertEquals(code, ExitCode.USAGE);
  assertEquals(
    errors,
    'tunnel server: Cannot use --mode: saw "x", wanted one of auto, grpc, ' +
      "http-connect [TUN101]\n",
  );
});

Deno.test("a boolean followed by its value is explained", async () => {
  const command = agentCommand(() => Promise.resolve(ENDED));
  const { errors } = await start(command, ["--sync-forever", "false"]);
  assertEquals(
    errors,
    'tunnel agent: Unexpected word "false"; a boolean is written ' +
      "--flag=false [TUN101]\n",
  );
});
