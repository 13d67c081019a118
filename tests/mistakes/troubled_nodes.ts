/**
 * Nodes that are offline, hung, revoked, forgotten, pending or copied, callers
 * whose certificates are wrong, and what is refused by a rule.
 *
 * @module
 */

import { freePort } from "../support/program/ports.ts";
import { ending, type Mistake, QUIET_AGENT } from "./mistake.ts";
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
  const dial = ending(3, (words) => ["dial", ...words, at]);
  // Of its own: beside the others nobody may connect to it.
  const later = freePort();
  return [
    dial("a node that was there and is gone", ["127.0.0.1:22", "--node=gone"], /gone/, /last seen|ago|connected:/),
    dial("a node that hangs", ["127.0.0.1:22", "--node=still"], /still/, /no answer|last seen/),
    dial("a node that was revoked", ["127.0.0.1:22", "--node=exile"], /exile/, /last seen|approve|connected:/),
    dial("a target that the node's own rules deny",
      ["127.0.0.1:9", "--node=strict"], /strict|127\.0\.0\.1/, /--deny|rule/),
    dial("a target that cannot be reached from the node", ["[2001:db8::1]:80", "--node=node1"], /2001:db8::1/, /node1/),
    ending(3)("a bench of a target that refuses",
      ["bench", `--target=127.0.0.1:${stage.closedPort}`, "--node=node1", at], /connection refused/, /node1/),
    ending("runs on")("a forward to a node that is gone",
      ["forward", `${later}:127.0.0.1:22@gone`, at], /gone/, /last seen|connected:/,
      // A caller comes when it listens.
      { prefix: ["bash", "-c",
        `(for i in $(seq 300); do sleep 0.1; (: </dev/tcp/127.0.0.1/${later}) 2>/dev/null && break; done) & exec "$@"`,
        "forward"] }),
  ];
}

// deno-fmt-ignore: the columns are the point.
function callers(stage: MistakeStage): readonly Mistake[] {
  const { ca, client, agent } = stage.workspace.certificates;
  const argsOf = (words: readonly string[]) => ["dial", "127.0.0.1:22", "--node=node1", ...words];
  const [fails, refused] = [ending(1, argsOf), ending(3, argsOf)];
  const at = `--server=127.0.0.1:${stage.tlsPort}`;
  const pair = [`--cert=${client.cert}`, `--key=${client.key}`];
  const node1 = stage.nodeDirectory("node1");
  return [
    fails("a frontend's CA of somebody else",
      [at, `--ca-cert=${node1}/ca.pem`, ...pair], /CA|certificate/, /--ca-cert|trusted here|give/),
    refused("a frontend with a certificate of somebody else's CA",
      [at, `--ca-cert=${ca}`, `--cert=${node1}/cert.pem`, `--key=${node1}/key.pem`], /certificate/,
      /CA|its log|--cert/),
    fails("a frontend by a name that its certificate has not",
      [`--server=127.0.0.2:${stage.tlsPort}`, `--ca-cert=${ca}`, ...pair], /127\.0\.0\.2/, /certificate|name/),
    fails("the agents' port with an agent's certificate",
      [`--server=${stage.server}`, `--ca-cert=${node1}/ca.pem`, `--cert=${agent.cert}`, `--key=${agent.key}`],
      /certificate|CA|agent/, /joined nodes.*frontend/),
    fails("a frontend that never answers",
      [`--server=127.0.0.1:${stage.takenPort}`, `--ca-cert=${ca}`, ...pair], /no answer|within/, /127\.0\.0\.1/),
  ];
}

// deno-fmt-ignore: the columns are the point.
function agents(stage: MistakeStage): readonly Mistake[] {
  const argsOf = (words: readonly string[]) => [...QUIET_AGENT, ...words];
  const patient = ending("runs on", argsOf);
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
    patient("an agent that was revoked", [copyOf("exile")], /revoked.*stolen|stolen/, /tunnel node approve exile/),
    patient("an agent that was forgotten",
      [copyOf("former")], /forgotten|not joined|unknown/, /tunnel join|--again|tunnel node approve|new token/),
    patient("an agent that nobody has approved",
      [`--join=${stage.slowToken}`, "--node=newcomer", `--server=${stage.server}`, fresh()], /approv/,
      /tunnel node approve newcomer/),
    ending(1, argsOf)("an agent with a token that is used up",
      [`--join=${stage.usedToken}`, "--node=late", `--server=${stage.server}`, fresh()], /token/,
      /tunnel token create/),
    patient("an agent with a certificate that the server does not trust",
      [`--ca-cert=${ca}`, `--agent-cert=${node1}/cert.pem`, `--agent-key=${node1}/key.pem`, foreign], /certificate/,
      /CA|its log/),
    patient("an agent without a certificate",
      [`--ca-cert=${ca}`, foreign], /certificate|token/, /--agent-cert|join|give/),
    patient("an agent at a port of health",
      [...files, `--server=127.0.0.1:${stage.identity.healthPort}`], /TLS|port/, /give the port/),
    ending(2, argsOf)("an HTTP proxy of a kind that is unknown",
      [...files, "--server=tunnel.example:8091"], /socks5/, /wanted http/,
      { env: { HTTPS_PROXY: "socks5://127.0.0.1:1080" } }),
    patient("a server in a network without a way",
      [...files, "--server=240.0.0.1:8091"], /240\.0\.0\.1/, /unreachable|no route|network|trying again/),
    patient("a log file, which has no effect",
      [...files, `--server=127.0.0.1:${stage.closedPort}`, "--log-file=/tmp/x.log"], /--log-file has no effect/,
      /no effect: ./),
  ];
}
