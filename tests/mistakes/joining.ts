/**
 * Joining, and agents that cannot link: tokens, names, certificates, servers that
 * are not there.
 *
 * @module
 */

import { ending, type Mistake, QUIET_AGENT } from "./mistake.ts";
import type { MistakeStage } from "./mistake_stage.ts";

/** See the module description. */
export function joiningMistakes(stage: MistakeStage): readonly Mistake[] {
  return [
    ...joins(stage),
    ...agents(stage),
  ];
}

// deno-fmt-ignore: the columns are the point.
function joins(stage: MistakeStage): readonly Mistake[] {
  const { token, narrowToken, server } = stage;
  const fresh = () => `--state-dir=${stage.path("agent")}`;
  const argsOf = (words: readonly string[]) => ["join", ...words, ...isPlaced(words) ? [] : [fresh()]];
  const [join, misused] = [ending(1, argsOf), ending(2, argsOf)];
  const at = `--server=${server}`;
  const secret = token.slice(0, -2) + (token.endsWith("AA") ? "BA" : "AA");
  const as = (name: string) => `--node=${name}`;
  return [
    misused("join with a token cut off", [token.slice(0, 20), at], /token/i, /copy|whole|tunnel token create/),
    misused("join with something else", ["hunter2", at], /token/i, /tunnel token create/),
    join("join where nobody listens",
      [token, as("m1"), `--server=127.0.0.1:${stage.closedPort}`], /connection refused/, /is the server running there/),
    join("join at a port that speaks something else",
      [token, as("m1"), `--server=127.0.0.1:${stage.takenPort}`], /no answer within/, /127/),
    join("join at a name that is none",
      [token, as("m1"), "--server=no-such-host.invalid:8091"], /no-such-host\.invalid/, /no such host|name/),
    join("join with a secret mistyped", [secret, as("m1"), at], /token/, /tunnel token create/),
    join("join by a name the token is not for", [narrowToken, as("shop-1"), at], /edge-\*/, /use such a name|--node/),
    join("join by a name that is taken",
      [token, as("node1"), at], /bound to another key/, /forget|another name|--node/),
    misused("join by a name with blanks", [token, as("edge 7"), at], /edge 7/, /wanted/),
    join("join where there is an identity",
      [token, at, `--state-dir=${stage.nodeDirectory("node1")}`], /holds an identity already/, /--again/),
    join("join at a server without a port where nobody is",
      [token, as("m1"), "--server=127.0.0.9"], /127\.0\.0\.9:8091/, /is the server running there|server/),
  ];
}

// deno-fmt-ignore: the columns are the point.
function agents(stage: MistakeStage): readonly Mistake[] {
  const { token, server } = stage;
  const argsOf = (words: readonly string[]) => [...QUIET_AGENT, ...words];
  const [agent, misused] = [ending(1, argsOf), ending(2, argsOf)];
  const patient = ending("runs on", argsOf);
  const fresh = () => `--state-dir=${stage.path("agent")}`;
  const mine = `--state-dir=${stage.nodeDirectory("node1")}`;
  const { ca, agent: pair, client } = stage.workspace.certificates;
  const files = [
    `--ca-cert=${ca}`,
    `--agent-cert=${pair.cert}`,
    `--agent-key=${pair.key}`,
  ];
  const at = `--server=${server}`;
  return [
    misused("an agent without anything", [fresh()], /no identity/, /--join/),
    misused("an agent that joins without a server",
      [`--join=${token}`, "--node=m2", fresh()], /--server is not given/, /--server/),
    misused("an agent with a token that is none", ["--join=hunter2", at, fresh()], /token/i, /tunnel token create/),
    agent("an agent that joins by a taken name",
      [`--join=${token}`, "--node=node2", at, fresh()], /bound to another key/, /forget|--node/),
    agent("a second agent of one machine", [mine], /runs here already \(process \d+\)/, /--replace/),
    agent("an agent's health port that is taken",
      [`--state-dir=${stage.copyOfNode("taken")}`, `--health-server-port=${stage.takenPort}`],
      /something listens there/, /--health-server-port/),
    patient("a CA file of somebody else",
      [...files, at], /not signed by a CA that is trusted here|does not trust|certificate/, /CA/),
    agent("a CA file that is missing", [`--ca-cert=/nowhere/ca.pem`, at], /\/nowhere\/ca\.pem/, /no such file/i),
    agent("a CA file that is rubbish",
      [`--ca-cert=${stage.file("ca.pem", "rubbish\n")}`, at], /CA bundle|certificate/, /it holds|wanted/),
    agent("an agent with a key of another certificate",
      [`--ca-cert=${ca}`, `--agent-cert=${pair.cert}`, `--agent-key=${client.key}`, at], /does not belong/, /key/),
    patient("a server that is not running",
      [...files, `--server=127.0.0.1:${stage.closedPort}`], /connection refused/, /is the server running there/),
    patient("a server's name that is none",
      [...files, "--server=no-such-host.invalid:8091"], /no-such-host\.invalid/, /no such host|trying again/),
    patient("an HTTP proxy that is down",
      [...files, "--server=tunnel.example:8091"], /proxy/i, /trying again|proxy/,
      { env: { HTTPS_PROXY: `http://127.0.0.1:${stage.closedPort}` } }),
    patient("identifiers that were not granted",
      [`--state-dir=${stage.copyOfNode("twin")}`, "--agent-identifiers=cidr=10.0.0.0/8"], /cidr=10\.0\.0\.0\/8/,
      /grant|approve/),
  ];
}

function isPlaced(words: readonly string[]): boolean {
  return words.some((word) => word.startsWith("--state-dir"));
}
