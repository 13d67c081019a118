/**
 * Nodes that are offline, hung, revoked, forgotten, pending or copied, callers
 * whose certificates are wrong, and what is refused by a rule.
 *
 * @module
 */

import { freePort } from "../support/program/ports.ts";
import { type Mistake, QUIET_AGENT } from "./mistake.ts";
import type { MistakeStage } from "./mistake_stage.ts";

/** See the module description. */
export function troubledNodeMistakes(
  stage: MistakeStage,
): readonly Mistake[] {
  return [...dials(stage), ...callers(stage), ...agents(stage)];
}

// deno-fmt-ignore: the columns are the point.
function dials(stage: MistakeStage): readonly Mistake[] {
  const at = `--server=${stage.frontend}`;
  const dial = (
    what: string,
    words: readonly string[],
    says: RegExp,
    next: RegExp,
  ): Mistake => ({ what, args: ["dial", ...words, at], exit: 3, says, next });
  // Of its own: beside the others nobody may connect to it.
  const later = freePort();
  return [
    dial("a node that was there and is gone", ["127.0.0.1:22", "--node=gone"], /gone/, /last seen|ago|connected:/),
    dial("a node that hangs", ["127.0.0.1:22", "--node=still"], /still/, /no answer|last seen/),
    dial("a node that was revoked", ["127.0.0.1:22", "--node=exile"], /exile/, /last seen|approve|connected:/),
    dial(
      "a target that the node's own rules deny",
      ["127.0.0.1:9", "--node=strict"],
      /strict|127\.0\.0\.1/,
      /--deny|rule/,
    ),
    dial("a target that cannot be reached from the node", ["[2001:db8::1]:80", "--node=node1"], /2001:db8::1/, /node1/),
    {
      what: "a bench of a target that refuses",
      args: [
        "bench",
        `--target=127.0.0.1:${stage.closedPort}`,
        "--node=node1",
        at,
      ],
      exit: 3,
      says: /connection refused/,
      next: /node1/,
    },
    {
      what: "a forward to a node that is gone",
      args: ["forward", `${later}:127.0.0.1:22@gone`, at],
      exit: "runs on",
      says: /gone/,
      next: /last seen|connected:/,
      // A caller comes when it listens.
      prefix: [
        "bash",
        "-c",
        `(for i in $(seq 300); do sleep 0.1; (: </dev/tcp/127.0.0.1/${later}) 2>/dev/null && break; done) & exec "$@"`,
        "forward",
      ],
    },
  ];
}

function callers(stage: MistakeStage): readonly Mistake[] {
  const { ca, client, agent } = stage.workspace.certificates;
  const dial = (
    what: string,
    exit: 1 | 3,
    words: readonly string[],
    says: RegExp,
    next: RegExp,
  ): Mistake => ({
    what,
    args: ["dial", "127.0.0.1:22", "--node=node1", ...words],
    exit,
    says,
    next,
  });
  const at = `--server=127.0.0.1:${stage.tlsPort}`;
  const pair = [`--cert=${client.cert}`, `--key=${client.key}`];
  const node1 = stage.nodeDirectory("node1");
  return [
    dial(
      "a frontend's CA of somebody else",
      1,
      [at, `--ca-cert=${node1}/ca.pem`, ...pair],
      /CA|certificate/,
      /--ca-cert|trusted here|give/,
    ),
    dial(
      "a frontend with a certificate of somebody else's CA",
      3,
      [
        at,
        `--ca-cert=${ca}`,
        `--cert=${node1}/cert.pem`,
        `--key=${node1}/key.pem`,
      ],
      /certificate/,
      /CA|its log|--cert/,
    ),
    dial(
      "a frontend by a name that its certificate has not",
      1,
      [`--server=127.0.0.2:${stage.tlsPort}`, `--ca-cert=${ca}`, ...pair],
      /127\.0\.0\.2/,
      /certificate|name/,
    ),
    dial(
      "the agents' port with an agent's certificate",
      1,
      [
        `--server=${stage.server}`,
        `--ca-cert=${node1}/ca.pem`,
        `--cert=${agent.cert}`,
        `--key=${agent.key}`,
      ],
      /certificate|CA|agent/,
      /joined nodes.*frontend/,
    ),
    dial(
      "a frontend that never answers",
      1,
      [`--server=127.0.0.1:${stage.takenPort}`, `--ca-cert=${ca}`, ...pair],
      /no answer|within/,
      /127\.0\.0\.1/,
    ),
  ];
}

// deno-fmt-ignore: the columns are the point.
// deno-lint-ignore tunnel/function-length -- it is a table.
function agents(stage: MistakeStage): readonly Mistake[] {
  const agent = (
    what: string,
    exit: 1 | 2 | "runs on",
    words: readonly string[],
    says: RegExp,
    next: RegExp,
    env: Readonly<Record<string, string>> = {},
  ): Mistake => ({
    what,
    args: [...QUIET_AGENT, ...words],
    exit,
    says,
    next,
    env,
  });
  const copyOf = (node: string) =>
    `--state-dir=${stage.copyOfNode(`copy-of-${node}`, () => {}, node)}`;
  const fresh = () => `--state-dir=${stage.path("agent")}`;
  const { ca, agent: pair } = stage.workspace.certificates;
  const files = [
    `--ca-cert=${ca}`,
    `--agent-cert=${pair.cert}`,
    `--agent-key=${pair.key}`,
  ];
  const node1 = stage.nodeDirectory("node1");
  const foreign = `--server=127.0.0.1:${stage.foreign.agentPort}`;
  return [
    agent(
      "an agent that was revoked",
      "runs on",
      [copyOf("exile")],
      /revoked.*stolen|stolen/,
      /tunnel node approve exile/,
    ),
    agent(
      "an agent that was forgotten",
      "runs on",
      [copyOf("former")],
      /forgotten|not joined|unknown/,
      /tunnel join|--again|tunnel node approve|new token/,
    ),
    agent(
      "an agent that nobody has approved",
      "runs on",
      [
        `--join=${stage.slowToken}`,
        "--node=newcomer",
        `--server=${stage.server}`,
        fresh(),
      ],
      /approv/,
      /tunnel node approve newcomer/,
    ),
    agent(
      "an agent with a token that is used up",
      1,
      [
        `--join=${stage.usedToken}`,
        "--node=late",
        `--server=${stage.server}`,
        fresh(),
      ],
      /token/,
      /tunnel token create/,
    ),
    agent(
      "an agent with a certificate that the server does not trust",
      "runs on",
      [
        `--ca-cert=${ca}`,
        `--agent-cert=${node1}/cert.pem`,
        `--agent-key=${node1}/key.pem`,
        foreign,
      ],
      /certificate/,
      /CA|its log/,
    ),
    agent(
      "an agent without a certificate",
      "runs on",
      [`--ca-cert=${ca}`, foreign],
      /certificate|token/,
      /--agent-cert|join|give/,
    ),
    agent(
      "an agent at a port of health",
      "runs on",
      [...files, `--server=127.0.0.1:${stage.identity.healthPort}`],
      /TLS|port/,
      /give the port/,
    ),
    agent(
      "an HTTP proxy of a kind that is unknown",
      2,
      [...files, "--server=tunnel.example:8091"],
      /socks5/,
      /wanted http/,
      { HTTPS_PROXY: "socks5://127.0.0.1:1080" },
    ),
    agent(
      "a server in a network without a way",
      "runs on",
      [...files, "--server=240.0.0.1:8091"],
      /240\.0\.0\.1/,
      /unreachable|no route|network|trying again/,
    ),
    agent(
      "a log file, which has no effect",
      "runs on",
      [
        ...files,
        `--server=127.0.0.1:${stage.closedPort}`,
        "--log-file=/tmp/x.log",
      ],
      /--log-file has no effect/,
      /no effect: ./,
    ),
  ];
}
