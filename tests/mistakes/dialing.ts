/**
 * Dials and forwards that cannot be: nodes that are not there, targets that
 * refuse, routes that lead nowhere.
 *
 * @module
 */

import { ending, type Mistake } from "./mistake.ts";
import type { MistakeStage } from "./mistake_stage.ts";

/** See the module description. */
export function dialingMistakes(stage: MistakeStage): readonly Mistake[] {
  return [...targets(stage), ...routes(stage), ...nodes(stage)];
}

// deno-fmt-ignore: the columns are the point.
function targets(stage: MistakeStage): readonly Mistake[] {
  const at = `--server=${stage.frontend}`;
  const dial = ending(3, (words) => ["dial", ...words, at]);
  const { closedPort } = stage;
  const node = "--node=node1";
  return [
    dial("a target that refuses",
      [`127.0.0.1:${closedPort}`, node], /connection refused/, /node1.*listening|listening.*node1/),
    dial("a target whose name is none", ["no-such-host.invalid:80", node], /no-such-host\.invalid/, /node1/),
    dial("a node's name with a slip", ["127.0.0.1:22", "--node=nod1"], /nod1/, /did you mean node1/),
    dial("a node that was never there",
      ["127.0.0.1:22", "--node=warehouse"], /warehouse/, /connected: node1, node2|node list/),
    dial("loopback of nobody's", [`127.0.0.1:${closedPort}`], /127\.0\.0\.1/, /--node/),
    dial("localhost of nobody's", [`localhost:${closedPort}`], /localhost/, /--node/),
    dial("a target that is no ASCII", ["ümlaut:80", node], /ümlaut/, /ASCII/),
    ending("runs on")("loopback of nobody's, forwarded",
      ["forward", `0:127.0.0.1:${closedPort}`, at], /127\.0\.0\.1/, /--node|@NODE/),
  ];
}

// deno-fmt-ignore: the columns are the point.
function routes(stage: MistakeStage): readonly Mistake[] {
  const argsOf = (words: readonly string[]) => ["dial", "db:5432", ...words];
  const [fails, misused] = [ending(1, argsOf), ending(2, argsOf)];
  const { ca, client, server: foreign } = stage.workspace.certificates;
  const tls = [
    `--ca-cert=${ca}`,
    `--cert=${client.cert}`,
    `--key=${client.key}`,
  ];
  const text = stage.file("egress.yaml", "- a\n");
  return [
    misused("no tunnel to be found", [`--state-dir=${stage.path("none")}`], /no identity/, /tunnel join|--state-dir/),
    fails("a socket that is not there",
      ["--server=unix:/nowhere.sock"], /\/nowhere\.sock/, /no such|is the server running/i),
    fails("a frontend where nobody listens",
      [`--server=127.0.0.1:${stage.closedPort}`, ...tls], /connection refused/, /is the server running there/),
    fails("a frontend's CA that is missing",
      [`--server=127.0.0.1:${stage.closedPort}`, "--ca-cert=/nowhere.pem", ...tls.slice(1)], /\/nowhere\.pem/,
      /no such file/i),
    fails("a frontend's key of another certificate",
      [`--server=127.0.0.1:${stage.closedPort}`, ...tls.slice(0, 2), `--key=${foreign.key}`], /does not belong/, /key/),
    fails("the agents' port with a user's certificate",
      [`--server=${stage.server}`, ...tls], /certificate|CA/, /CA|--ca-cert|agents/),
    misused("an egress file that is missing", ["--egress-config=/nowhere.yaml"], /\/nowhere\.yaml/, /no such file/i),
    fails("an egress file that is none", [`--egress-config=${text}`], /egress\.yaml/, /wanted|EgressSelector/),
  ];
}

// deno-fmt-ignore: the columns are the point.
function nodes(stage: MistakeStage): readonly Mistake[] {
  const identity = `--state-dir=${stage.nodeDirectory("node1")}`;
  const at = `--server=${stage.frontend}`;
  const forward = ending(1, (words) => ["forward", ...words, at]);
  return [
    ending(3)("another node's service without a policy",
      ["dial", "127.0.0.1:22", "--node=node2", "--as-node", identity], /node1|nodes|dials/, /policy|dials/),
    forward("a forward to a port that is taken",
      `${stage.takenPort}:a:80`, /something listens there/, /other port|PORT|free/),
    forward("a forward on an address that is not here",
      "192.0.2.1:8080:a:80", /no such address/, /192\.0\.2\.1/),
    ending(3)("a bench of a node that is not there",
      ["bench", "--node=warehouse", at], /warehouse/, /connected: node1, node2|node list/),
  ];
}
