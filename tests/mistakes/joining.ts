/**
 * Joining, and agents that cannot link: tokens, names, certificates, servers that
 * are not there.
 *
 * @module
 */

import { type Mistake, QUIET_AGENT } from "./mistake.ts";
import type { MistakeStage } from "./mistake_stage.ts";

/** See the module description. */
export function joiningMistakes(stage: MistakeStage): readonly Mistake[] {
  return [
    ...joins(stage),
    ...agents(stage),
  ];
}

// deno-fmt-ignore: the columns are the point.
// deno-lint-ignore tunnel/function-length -- it is a table.
function joins(stage: MistakeStage): readonly Mistake[] {
  const { token, narrowToken, server } = stage;
  const join = (
    what: string,
    exit: 1 | 2,
    words: readonly string[],
    says: RegExp,
    next: RegExp,
  ): Mistake => ({
    what,
    args: words.some((word) => word.startsWith("--state-dir"))
      ? ["join", ...words]
      : ["join", ...words, `--state-dir=${stage.path("agent")}`],
    exit,
    says,
    next,
  });
  const at = `--server=${server}`;
  const secret = token.slice(0, -2) + (token.endsWith("AA") ? "BA" : "AA");
  const as = (name: string) => `--node=${name}`;
  return [
    join("join without a token", 2, [at], /one token/, /tunnel token create/),
    join("join with two tokens", 2, [token, token, at], /one token/, /token/),
    join("join with a token cut off", 2, [token.slice(0, 20), at], /token/i, /copy|whole|tunnel token create/),
    join("join with something else", 2, ["hunter2", at], /token/i, /tunnel token create/),
    join("join without a server", 2, [token], /--server is not given/, /tunnel token create/),
    join(
      "join where nobody listens",
      1,
      [token, as("m1"), `--server=127.0.0.1:${stage.closedPort}`],
      /connection refused/,
      /is the server running there/,
    ),
    join(
      "join at a port that speaks something else",
      1,
      [token, as("m1"), `--server=127.0.0.1:${stage.takenPort}`],
      /no answer within/,
      /127/,
    ),
    join(
      "join at a name that is none",
      1,
      [token, as("m1"), "--server=no-such-host.invalid:8091"],
      /no-such-host\.invalid/,
      /no such host|name/,
    ),
    join("join with a secret mistyped", 1, [secret, as("m1"), at], /token/, /tunnel token create/),
    join(
      "join by a name the token is not for",
      1,
      [narrowToken, as("shop-1"), at],
      /edge-\*/,
      /use such a name|--node/,
    ),
    join(
      "join by a name that is taken",
      1,
      [token, as("node1"), at],
      /bound to another key/,
      /forget|another name|--node/,
    ),
    join("join by a name with capitals", 2, [token, as("Edge_7"), at], /Edge_7/, /wanted/),
    join("join by a name with blanks", 2, [token, as("edge 7"), at], /edge 7/, /wanted/),
    join(
      "join where there is an identity",
      1,
      [token, at, `--state-dir=${stage.nodeDirectory("node1")}`],
      /holds an identity already/,
      /--again/,
    ),
    join(
      "join at a server without a port where nobody is",
      1,
      [token, as("m1"), "--server=127.0.0.9"],
      /127\.0\.0\.9:8091/,
      /is the server running there|server/,
    ),
  ];
}

// deno-fmt-ignore: the columns are the point.
// deno-lint-ignore tunnel/function-length -- it is a table.
function agents(stage: MistakeStage): readonly Mistake[] {
  const { token, server } = stage;
  const agent = (
    what: string,
    exit: 1 | 2 | "runs on",
    words: readonly string[],
    says: RegExp,
    next: RegExp,
  ): Mistake => ({
    what,
    args: [...QUIET_AGENT, ...words],
    exit,
    says,
    next,
  });
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
    agent("an agent without anything", 2, [fresh()], /no identity/, /--join/),
    agent(
      "an agent that joins without a server",
      2,
      [`--join=${token}`, "--node=m2", fresh()],
      /--server is not given/,
      /--server/,
    ),
    agent("an agent with a token that is none", 2, ["--join=hunter2", at, fresh()], /token/i, /tunnel token create/),
    agent(
      "an agent that joins by a taken name",
      1,
      [`--join=${token}`, "--node=node2", at, fresh()],
      /bound to another key/,
      /forget|--node/,
    ),
    agent("a second agent of one machine", 1, [mine], /runs here already \(process \d+\)/, /--replace/),
    agent(
      "an agent's health port that is taken",
      1,
      [
        `--state-dir=${stage.copyOfNode("taken")}`,
        `--health-server-port=${stage.takenPort}`,
      ],
      /another process listens there/,
      /--health-server-port/,
    ),
    agent(
      "two ways to say where the server is",
      2,
      [at, "--proxy-server-host=a", fresh(), `--join=${token}`],
      /--proxy-server-host/,
      /one of them/,
    ),
    agent(
      "a token and a CA file",
      2,
      [`--join=${token}`, `--ca-cert=${ca}`, at],
      /--join together with --ca-cert/,
      /give one/,
    ),
    agent(
      "a CA file of somebody else",
      "runs on",
      [...files, at],
      /not signed by a CA that is trusted here|does not trust|certificate/,
      /CA/,
    ),
    agent("a CA file that is missing", 1, [`--ca-cert=/nowhere/ca.pem`, at], /\/nowhere\/ca\.pem/, /no such file/i),
    agent(
      "a CA file that is rubbish",
      1,
      [`--ca-cert=${stage.file("ca.pem", "rubbish\n")}`, at],
      /CA bundle|certificate/,
      /it holds|wanted/,
    ),
    agent(
      "an agent with a certificate without its key",
      2,
      [`--ca-cert=${ca}`, `--agent-cert=${pair.cert}`, at],
      /agent-key/,
      /give/,
    ),
    agent(
      "an agent with a key of another certificate",
      1,
      [
        `--ca-cert=${ca}`,
        `--agent-cert=${pair.cert}`,
        `--agent-key=${client.key}`,
        at,
      ],
      /does not belong/,
      /key/,
    ),
    agent(
      "a server that is not running",
      "runs on",
      [...files, `--server=127.0.0.1:${stage.closedPort}`],
      /connection refused/,
      /is the server running there/,
    ),
    agent(
      "a server's name that is none",
      "runs on",
      [...files, "--server=no-such-host.invalid:8091"],
      /no-such-host\.invalid/,
      /no such host|trying again/,
    ),
    agent(
      "an HTTP proxy that is down",
      "runs on",
      [...files, "--server=tunnel.example:8091"],
      /proxy/i,
      /trying again|proxy/,
    ),
    agent(
      "identifiers that were not granted",
      "runs on",
      [
        `--state-dir=${stage.copyOfNode("twin")}`,
        "--agent-identifiers=cidr=10.0.0.0/8",
      ],
      /cidr=10\.0\.0\.0\/8/,
      /grant|approve/,
    ),
  ].map((mistake) =>
    mistake.what !== "an HTTP proxy that is down" ? mistake : {
      ...mistake,
      env: { HTTPS_PROXY: `http://127.0.0.1:${stage.closedPort}` },
    }
  );
}
