/**
 * Servers that cannot start: ports, addresses, paths, certificates, policies.
 *
 * @module
 */

import { ending, type Mistake } from "./mistake.ts";
import type { MistakeStage } from "./mistake_stage.ts";

/** See the module description. */
export function servingMistakes(stage: MistakeStage): readonly Mistake[] {
  return [...listening(stage), ...files(stage), ...policies(stage)];
}

/** A server whose every port is its own choice, unless `words` say otherwise. */
function server(stage: MistakeStage, words: readonly string[]): string[] {
  const given = new Set(words.map((word) => word.split("=")[0]));
  const usual = [
    "--agent-port=0",
    "--agent-bind-address=127.0.0.1",
    "--health-port=0",
    "--health-bind-address=127.0.0.1",
    "--admin-port=0",
    `--state-dir=${stage.path("server")}`,
  ].filter((word) => !given.has(word.split("=")[0]!));
  return ["server", ...usual, ...words];
}

// deno-fmt-ignore: the columns are the point.
function listening(stage: MistakeStage): readonly Mistake[] {
  const argsOf = (words: readonly string[]) => server(stage, words);
  const [start, misused] = [ending(1, argsOf), ending(2, argsOf)];
  const taken = stage.takenPort;
  const long = `/tmp/${"long".repeat(30)}.sock`;
  return [
    start("an agents' port that is taken", [`--agent-port=${taken}`], /something listens there/, /--agent-port/),
    start("a health port that is taken", [`--health-port=${taken}`], /something listens there/, /--health-port/),
    start("an admin port that is taken", [`--admin-port=${taken}`], /something listens there/, /--admin-port/),
    start("an address for agents that is not here",
      ["--agent-bind-address=192.0.2.1"], /192\.0\.2\.1/, /change --agent-bind-address/),
    start("an address for health that is not here",
      ["--health-bind-address=192.0.2.1"], /192\.0\.2\.1/, /change --health-bind-address/),
    start("an address that is none", ["--agent-bind-address=300.1.1.1"], /300\.1\.1\.1/, /--agent-bind-address/),
    start("a socket's path that is too long",
      [`--uds-name=${long}`], /12\d (?:bytes|characters).*107|107/, /shorter|--uds-name/),
    start("a state directory too deep for a socket",
      [`--state-dir=/tmp/${"deep".repeat(28)}`], /107/, /--uds-name|shorter/),
    start("a socket in a directory that is not there",
      ["--uds-name=/nowhere/at/all.sock"], /no such directory/, /--uds-name/),
    start("a socket that is a file",
      [`--uds-name=${stage.file("front.sock", "text")}`, "--delete-existing-uds-file=false"], /no socket/,
      /--uds-name/),
    start("a socket where a server listens",
      [`--uds-name=${stage.identity.socket}`], /something listens there/, /--uds-name/),
    misused("discovery open to the world",
      ["--discovery", "--discovery-listen=0.0.0.0:18097"], /0\.0\.0\.0/, /loopback|127\.0\.0\.1/),
  ];
}

// deno-fmt-ignore: the columns are the point.
function files(stage: MistakeStage): readonly Mistake[] {
  const { ca, server: pair, client } = stage.workspace.certificates;
  const argsOf = (words: readonly string[]) => server(stage, words);
  const [start, misused] = [ending(1, argsOf), ending(2, argsOf)];
  const port = "--server-port=0";
  const cert = `--server-cert=${pair.cert}`;
  const key = `--server-key=${pair.key}`;
  const rubbish = stage.file("rubbish.pem", "rubbish\n");
  return [
    misused("a frontend on a port without a certificate",
      ["--server-port=18090", "--uds-name="], /--server-cert|certificate/, /--server-cert|give/),
    misused("a frontend with a certificate without its key", [cert, port], /--server-key/, /give|both/),
    start("a certificate that is missing",
      ["--server-cert=/nowhere.pem", key, `--server-ca-cert=${ca}`, "--server-port=18090"], /\/nowhere\.pem/,
      /no such file/i),
    start("a certificate that is rubbish",
      [`--server-cert=${rubbish}`, key, `--server-ca-cert=${ca}`, "--server-port=18090"], /rubbish\.pem/,
      /it holds|wanted/),
    start("a frontend with a key of another certificate",
      [cert, `--server-key=${client.key}`, `--server-ca-cert=${ca}`, "--server-port=18090"], /does not belong/, /key/),
    start("an audit log in a directory that is not there",
      ["--audit-log=/nowhere/audit.log"], /\/nowhere\/audit\.log/, /no such|directory/i),
    start("an audit log that is a directory", [`--audit-log=${stage.directory("audit")}`], /audit/, /directory|file/i),
  ];
}

// deno-fmt-ignore: the columns are the point.
function policies(stage: MistakeStage): readonly Mistake[] {
  const start = ending(1, (words) => server(stage, words));
  const policy = (what: string, text: string, says: RegExp, next: RegExp) =>
    start(what, [`--policy-file=${stage.file("policy.yaml", text)}`], says, next);
  return [
    start("a policy that is missing", "--policy-file=/nowhere.yaml", /\/nowhere\.yaml/, /no such file/i),
    policy("a policy with an unknown field", "frontnds: []\n", /frontnds/, /wanted|did you mean|known/),
    policy("a policy with a bad rule",
      'frontends:\n  - socket: "*"\n    allow: ["10.0.0.0/8"]\n', /10\.0\.0\.0\/8/, /wanted|\*:|:PORT/i),
    policy("a policy with an unquoted asterisk", "frontends:\n  - socket: *\n", /\*/, /quote/i),
    policy("a policy that is a list", "- a\n", /policy\.yaml/, /map|wanted/),
  ];
}
