/**
 * Twenty things that people do with kubectl, and what has to come of them.
 *
 * @module
 */

import { createHash, randomBytes } from "node:crypto";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { findPeer } from "../../../tests/support/program/peers.ts";
import {
  type Ended,
  type RunOptions,
  runToEnd,
} from "../../../tests/support/program/run.ts";
import { ran, Running } from "../kubectl.ts";
import { NODE } from "./places.ts";
import type { Stage } from "./stage.ts";

type Check = (stage: Stage) => Promise<void>;

const MANY_BYTES = 20_000_000;
const FILE_BYTES = 5_000_000;

/** At once, of each of three kinds. */
const AT_ONCE = 4;

/** What kubectl speaks to kube-apiserver, which speaks SPDY to kubelets. */
const WEBSOCKET = { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: "true" };
const SPDY = { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: "false" };

/** See the module description. */
export const CHECKS: Readonly<Record<string, Check>> = {
  "logs": async (stage) => {
    const said = await good(stage, ["logs", "web"]);
    assertMatch(said.stdout, /^the first line\n/);
  },
  "logs of the last line": async (stage) => {
    const line = await writesLog(stage);
    const said = await good(stage, ["logs", "web", "--tail=1"]);
    assertEquals(said.stdout, `${line}\n`);
  },
  "logs as they come": async (stage) => {
    const words = ["logs", "web", "--follow"];
    await using running = await Running.start(stage.cluster, words);
    await running.until(/^the first line\n/);
    for (let each = 0; each < 3; each++) {
      const line = await writesLog(stage);
      await running.until(new RegExp(`^${line}\n`, "m"));
    }
  },
  "exec by WebSocket": (stage) => echoes(stage, WEBSOCKET),
  "exec by SPDY": (stage) => echoes(stage, SPDY),
  "exec gives the exit code": async (stage) => {
    const left = await exec(stage, ["sh", "-c", "exit 7"]);
    assertEquals([left.code, left.stdout], [7, ""], left.stderr);
  },
  "exec keeps errors apart": async (stage) => {
    const said = await exec(stage, ["sh", "-c", "echo out; echo bad >&2"]);
    assertEquals([said.code, said.stdout, said.stderr], [0, "out\n", "bad\n"]);
  },
  "exec ends the input and goes on": async (stage) => {
    const script = "wc -c; sleep 1; echo after it";
    const input = new TextEncoder().encode("typed in\n");
    const said = await exec(stage, ["sh", "-c", script], { input });
    assertEquals([said.code, said.stdout], [0, "9\nafter it\n"], said.stderr);
  },
  "exec gives 20 MB": async (stage) => {
    const path = `/tmp/${crypto.randomUUID()}`;
    const make = `head -c ${MANY_BYTES} /dev/urandom >${path}`;
    const bytes = await many(stage, `${make}; cat ${path}; cat`);
    assertEquals(digest(bytes), await digestInside(stage, path));
  },
  "exec takes 20 MB": async (stage) => {
    const input = random(MANY_BYTES);
    const said = await exec(stage, ["sha256sum"], { input });
    assertEquals(said.stdout.slice(0, 64), digest(input), said.stderr);
  },
  "exec takes and gives 20 MB, by WebSocket": (stage) =>
    mirrors(stage, WEBSOCKET),
  "exec takes and gives 20 MB, by SPDY": (stage) => mirrors(stage, SPDY),
  "exec in a terminal": async (stage) => {
    const script = 'until [ "$(stty size)" = "33 101" ]; do sleep 0.1; done;' +
      " tty";
    const kubectl = `${await findPeer(
      "kubectl",
    )} --kubeconfig=${stage.cluster.adminKubeconfig}`;
    const command = `stty rows 33 cols 101; exec ${kubectl} exec -it web -- ` +
      `sh -c '${script}'`;
    const { stdout, code } = await runToEnd(
      ["timeout", "60", "script", "-qec", command, "/dev/null"],
    );
    assertEquals(code, 0, stdout);
    assertMatch(stdout, /\/dev\/pts\/\d+\r\n/);
  },
  "attach gives what is said": async (stage) => {
    await using running = await Running.start(stage.cluster, [
      "attach",
      "talk",
    ]);
    await using talking = await attached(stage);
    const word = crypto.randomUUID();
    // Nothing says when the first one is attached.
    const timer = setInterval(() => void talking.type(`${word}\n`), 300);
    try {
      await running.until(new RegExp(`^heard ${word}\n`, "m"));
    } finally {
      clearInterval(timer);
    }
  },
  "attach is heard": async (stage) => {
    await using running = await attached(stage);
    for (let each = 0; each < 3; each++) {
      const word = crypto.randomUUID();
      await running.type(`${word}\n`);
      await running.until(new RegExp(`^heard ${word}\n`, "m"));
    }
  },
  "cp into a pod": async (stage) => {
    const path = stage.workspace.path("sent");
    const bytes = random(FILE_BYTES);
    await Deno.writeFile(path, bytes);
    const there = `/tmp/${crypto.randomUUID()}`;
    await good(stage, ["cp", path, `web:${there}`]);
    assertEquals(await digestInside(stage, there), digest(bytes));
  },
  "cp out of a pod": async (stage) => {
    const there = `/tmp/${crypto.randomUUID()}`;
    const script = `head -c ${FILE_BYTES} /dev/urandom >${there}`;
    await exec(stage, ["sh", "-c", script]);
    const path = stage.workspace.path("fetched");
    await good(stage, ["cp", `web:${there}`, path]);
    const bytes = await Deno.readFile(path);
    assertEquals(bytes.length, FILE_BYTES);
    assertEquals(digest(bytes), await digestInside(stage, there));
  },
  "port-forward": async (stage) => {
    const words = ["port-forward", "pod/web", ":8080"];
    await using running = await Running.start(stage.cluster, words);
    const [, port] = await running.until(/127\.0\.0\.1:(\d+) -> 8080\n/);
    const pages = Array.from({ length: AT_ONCE }, async () => {
      const response = await fetch(`http://127.0.0.1:${port}/`);
      return [response.status, await response.text()];
    });
    for (const page of await Promise.all(pages)) {
      assertEquals(page, [200, "the page\n"]);
    }
  },
  "a node's proxy": async (stage) => {
    const path = `/api/v1/nodes/${NODE}/proxy`;
    const health = await good(stage, ["get", "--raw", `${path}/healthz`]);
    assertEquals(health.stdout, "ok");
    const pods = await good(stage, ["get", "--raw", `${path}/pods`]);
    assertEquals(JSON.parse(pods.stdout).kind, "PodList");
    const metrics = await good(stage, ["get", "--raw", `${path}/metrics`]);
    assertMatch(metrics.stdout, /^kubelet_running_pods /m);
  },
  "twelve at once": async (stage) => {
    const path = `/api/v1/nodes/${NODE}/proxy/healthz`;
    const each = Array.from({ length: AT_ONCE }, () => [
      echoes(stage, WEBSOCKET),
      good(stage, ["logs", "web"]),
      good(stage, ["get", "--raw", path]),
    ]);
    await Promise.all(each.flat());
  },
};

async function good(stage: Stage, args: readonly string[]): Promise<Ended> {
  const said = await ran(stage.cluster, args);
  assertEquals(said.code, 0, said.stderr);
  return said;
}

/** Runs a command in the pod, with an input that is there and ends. */
async function exec(
  { cluster }: Stage,
  command: readonly string[],
  options: RunOptions = {},
): Promise<Ended> {
  const flags = options.input === undefined ? [] : ["-i"];
  const words = ["exec", ...flags, "web", "--", ...command];
  return await ran(cluster, words, options);
}

async function echoes(
  stage: Stage,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  const word = crypto.randomUUID();
  const said = await exec(stage, ["echo", word], { env });
  assertEquals([said.code, said.stdout], [0, `${word}\n`], said.stderr);
}

async function mirrors(
  stage: Stage,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  const input = random(MANY_BYTES);
  const bytes = await many(stage, "cat", { env, input });
  assert(digest(bytes) === digest(input), "other bytes");
}

/**
 * What a script prints that ends with its input, which ends when all is here:
 * of one that ends before, Kubernetes may lose the last bytes and say that it
 * went well (kubernetes/kubernetes#124571).
 */
async function many(
  { cluster }: Stage,
  script: string,
  { env, input = new Uint8Array() }: {
    readonly env?: Readonly<Record<string, string>>;
    readonly input?: Uint8Array;
  } = {},
): Promise<Uint8Array<ArrayBuffer>> {
  const words = ["exec", "-i", "web", "--", "sh", "-c", script];
  await using running = await Running.start(cluster, words, env);
  const sending = running.send(input);
  const bytes = await running.take(MANY_BYTES);
  await sending;
  assertEquals(await running.end(), 0);
  return bytes;
}

/** Adds a line to the log of `web`, and gives it. */
async function writesLog(stage: Stage): Promise<string> {
  const line = crypto.randomUUID();
  const said = await exec(stage, ["sh", "-c", `echo ${line} >>/more`]);
  assertEquals(said.code, 0, said.stderr);
  // The log is written by containerd, when `tail` has looked again.
  for (;;) {
    const log = await good(stage, ["logs", "web"]);
    if (log.stdout.includes(line)) return line;
  }
}

/** Attached to `talk`, which says what it hears. */
async function attached({ cluster }: Stage): Promise<Running> {
  return await Running.start(cluster, ["attach", "-i", "talk"]);
}

async function digestInside(stage: Stage, path: string): Promise<string> {
  const said = await exec(stage, ["sha256sum", path]);
  return said.stdout.slice(0, 64);
}

function digest(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

function random(length: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(randomBytes(length));
}
