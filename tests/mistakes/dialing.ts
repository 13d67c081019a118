/**
 * Dials and forwards that cannot be: nodes that are not there, targets that
 * refuse, routes that lead nowhere.
 *
 * @module
 */

import type { Mistake } from "./mistake.ts";
import type { MistakeStage } from "./mistake_stage.ts";

/** See the module description. */
export function dialingMistakes(stage: MistakeStage): readonly Mistake[] {
  return [...targets(stage), ...routes(stage), ...nodes(stage)];
}

// deno-fmt-ignore: the columns are the point.
function targets(stage: MistakeStage): readonly Mistake[] {
  const dial = (
    what: string,
    words: readonly string[],
    says: RegExp,
    next: RegExp,
  ): Mistake => ({
    what,
    args: ["dial", ...words, `--server=${stage.frontend}`],
    exit: 3,
    says,
    next,
  });
  const { closedPort } = stage;
  const node = "--node=node1";
  return [
    dial(
      "a target that refuses",
      [`127.0.0.1:${closedPort}`, node],
      /connection refused/,
      /node1.*listening|listening.*node1/,
    ),
    dial("a target whose name is none", ["no-such-host.invalid:80", node], /no-such-host\.invalid/, /node1/),
    dial("a node's name with a slip", ["127.0.0.1:22", "--node=nod1"], /nod1/, /did you mean node1/),
    dial(
      "a node that was never there",
      ["127.0.0.1:22", "--node=warehouse"],
      /warehouse/,
      /connected: node1, node2|node list/,
    ),
    dial("loopback of nobody's", [`127.0.0.1:${closedPort}`], /127\.0\.0\.1/, /--node/),
    dial("localhost of nobody's", [`localhost:${closedPort}`], /localhost/, /--node/),
    dial("a target that is no ASCII", ["ümlaut:80", node], /ümlaut/, /ASCII/),
    {
      ...dial(
        "loopback of nobody's, forwarded",
        [],
        /127\.0\.0\.1/,
        /--node|@NODE/,
      ),
      exit: "runs on",
      args: [
        "forward",
        `0:127.0.0.1:${closedPort}`,
        `--server=${stage.frontend}`,
      ],
    },
  ];
}

// deno-fmt-ignore: the columns are the point.
// deno-lint-ignore tunnel/function-length -- it is a table.
function routes(stage: MistakeStage): readonly Mistake[] {
  const dial = (
    what: string,
    exit: 1 | 2 | 3,
    words: readonly string[],
    says: RegExp,
    next: RegExp,
  ): Mistake => ({
    what,
    args: ["dial", "db:5432", ...words],
    exit,
    says,
    next,
  });
  const { ca, client, server: foreign } = stage.workspace.certificates;
  const tls = [
    `--ca-cert=${ca}`,
    `--cert=${client.cert}`,
    `--key=${client.key}`,
  ];
  const text = stage.file("egress.yaml", "- a\n");
  return [
    dial("no tunnel to be found", 2, [`--state-dir=${stage.path("none")}`], /no identity/, /tunnel join|--state-dir/),
    dial(
      "a socket that is not there",
      1,
      ["--server=unix:/nowhere.sock"],
      /\/nowhere\.sock/,
      /no such|is the server running/i,
    ),
    dial("a socket's path that is empty", 2, ["--server=unix:"], /"unix:"/, /unix:\/path/),
    dial("certificates for a socket", 2, [`--server=${stage.frontend}`, ...tls], /unix socket/, /remove/),
    dial(
      "a frontend on a port without certificates",
      2,
      ["--server=127.0.0.1:8090"],
      /without --ca-cert/,
      /give all three/,
    ),
    dial(
      "a frontend where nobody listens",
      1,
      [`--server=127.0.0.1:${stage.closedPort}`, ...tls],
      /connection refused/,
      /is the server running there/,
    ),
    dial(
      "a frontend's CA that is missing",
      1,
      [
        `--server=127.0.0.1:${stage.closedPort}`,
        "--ca-cert=/nowhere.pem",
        ...tls.slice(1),
      ],
      /\/nowhere\.pem/,
      /no such file/i,
    ),
    dial(
      "a frontend's key of another certificate",
      1,
      [
        `--server=127.0.0.1:${stage.closedPort}`,
        ...tls.slice(0, 2),
        `--key=${foreign.key}`,
      ],
      /does not belong/,
      /key/,
    ),
    dial(
      "the agents' port with a user's certificate",
      1,
      [`--server=${stage.server}`, ...tls],
      /certificate|CA/,
      /CA|--ca-cert|agents/,
    ),
    dial("an egress file that is missing", 2, ["--egress-config=/nowhere.yaml"], /\/nowhere\.yaml/, /no such file/i),
    dial("an egress file that is none", 1, [`--egress-config=${text}`], /egress\.yaml/, /wanted|EgressSelector/),
    dial(
      "an egress file and a server",
      2,
      [`--egress-config=${text}`, "--server=unix:/x"],
      /--server together/,
      /remove one/,
    ),
    dial("a network without a file", 2, ["--network=etcd"], /--network alone/, /--egress-config/),
    dial("a network that is none", 2, ["--network=edge"], /edge/, /cluster/),
  ];
}

function nodes(stage: MistakeStage): readonly Mistake[] {
  const identity = `--state-dir=${stage.nodeDirectory("node1")}`;
  return [
    {
      what: "another node's service without a policy",
      args: ["dial", "127.0.0.1:22", "--node=node2", "--as-node", identity],
      exit: 3,
      says: /node1|nodes|dials/,
      next: /policy|dials/,
    },
    {
      what: "a forward to a port that is taken",
      args: [
        "forward",
        `${stage.takenPort}:a:80`,
        `--server=${stage.frontend}`,
      ],
      exit: 1,
      says: /another process listens there/,
      next: /other port|PORT|free/,
    },
    {
      what: "a forward on an address that is not here",
      args: ["forward", "192.0.2.1:8080:a:80", `--server=${stage.frontend}`],
      exit: 1,
      says: /no such address/,
      next: /192\.0\.2\.1/,
    },
    {
      what: "a bench of a node that is not there",
      args: ["bench", "--node=warehouse", `--server=${stage.frontend}`],
      exit: 3,
      says: /warehouse/,
      next: /connected: node1, node2|node list/,
    },
  ];
}
