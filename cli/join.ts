/**
 * `tunnel join`: gives this node an identity, once.
 *
 * @module
 */

import { AgentIdentity, joinAgain } from "../agent/identity/agent_identity.ts";
import { hasJoined } from "../agent/identity/agent_state.ts";
import { actAsOwner } from "../net/libc/state_owner.ts";
import { openLog } from "../platform/log/log.ts";
import { proxyEnvironment } from "../net/dial/proxy_environment.ts";
import { failure } from "./program/exit_codes.ts";
import { defineCommand } from "./program/command.ts";
import { flag, inGroup } from "./flags/flag.ts";
import {
  joinRequest,
  joinTokenText,
  NODE_FLAGS,
  SERVER_FLAG,
  serverAddresses,
} from "./flags/join_flags.ts";
import { LOG_FLAGS } from "./flags/program_flags.ts";
import { ProgressLine } from "./program/progress.ts";
import { defaultStateDirectory } from "./flags/state_directory.ts";
import { UsageError } from "./flags/usage_error.ts";

/** See the module description. */
export const JOIN_COMMAND = defineCommand({
  name: "join",
  operands: "TOKEN|- --server HOST:PORT [flags]",
  about: [
    "Makes a key, finds the server whose CA the token names, and gets a " +
    "certificate for the key. Afterwards `tunnel agent` needs no token and no " +
    "flags. Waits where somebody has to approve the node. (tunnel agent " +
    "--join does this and starts; it also waits for a server that is away.)",
  ],
  examples: [
    "tunnel join tnl1.… --server tunnel.example:8091",
    "tunnel join --join-file /run/secrets/join --server tunnel.example:8091",
    "tunnel join tnl1.… --server 192.0.2.7:8091 --node edge-7",
  ],
  rights: "network",
  flags: {
    ...inGroup("Joining", {
      "server": { ...SERVER_FLAG, defaultText: "" },
      ...NODE_FLAGS,
      "again": flag.boolean(false, {
        help: "Join although the node has joined before, with the key it " +
          "has: it was forgotten, or moves to another server.",
      }),
    }),
    ...LOG_FLAGS,
  },
  async run({ values, operands, given }, { environment, print }) {
    const [word = "", ...others] = operands;
    const file = values["join-file"];
    if (word === "" && file === "" || others.length > 0) {
      throw new UsageError(
        "Cannot join: wanted one token, tunnel join TOKEN --server HOST:PORT; " +
          "`tunnel token create` on the server makes one",
      );
    }
    const servers = serverAddresses(values["server"]);
    if (servers.length === 0) {
      throw new UsageError(
        "Cannot join: --server is not given; `tunnel token create` on the " +
          "server says where it is",
      );
    }
    const token = joinTokenText(word, file);
    const stateDirectory = values["state-dir"] ||
      defaultStateDirectory("agent", environment);
    actAsOwner(stateDirectory);
    const options = { stateDirectory, ...joinRequest(token, values["node"]) };
    if (hasJoined(stateDirectory) && !values["again"]) {
      throw failure(
        `Cannot join: ${stateDirectory} holds an identity already, with which ` +
          "`tunnel agent` starts; if it is of no use any more, --again",
        "TUN309",
      );
    }
    const log = openLog("join", {
      format: values["log-format"],
      level: values["v"],
    });
    const proxy = proxyEnvironment(environment);
    const { node } = await withProgress(async (onWaiting) => {
      const waiting = { log, servers, proxy, isPatient: false, onWaiting };
      if (values["again"]) await joinAgain(options, waiting);
      return await AgentIdentity.open(options, waiting);
    });
    const where = given.has("state-dir")
      ? ` --state-dir ${stateDirectory}`
      : "";
    print(`Joined as ${node}. Next: tunnel agent${where}\n`);
  },
});

/** An approval may take an hour: this shows that the command still waits. */
async function withProgress<T>(
  run: (onWaiting: (reason: string) => void) => Promise<T>,
): Promise<T> {
  const line = new ProgressLine();
  let ticking: ReturnType<typeof setInterval> | undefined;
  try {
    return await run((reason) => {
      if (!line.isLive || ticking !== undefined) return;
      const beganMs = Date.now();
      ticking = setInterval(() => {
        const seconds = Math.round((Date.now() - beganMs) / 1_000);
        line.show(`waiting for ${seconds} s: ${reason}`);
      }, 1_000);
    });
  } finally {
    clearInterval(ticking);
    line.clear();
  }
}
