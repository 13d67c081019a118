/**
 * What keeps an agent from its server although the network is whole: the wrong
 * port, a proxy, certificates, clocks, an identity that is not there or not let
 * in.
 *
 * @module
 */

import { withoutPrivilege } from "../mistakes/without_privilege.ts";
import { ThrowawayCa } from "../support/certificates/throwaway_ca.ts";
import { ourCommand } from "../support/program/tunnel.ts";
import { Child } from "../support/program/child.ts";
import { IdentityServer } from "../support/rigs/node_stage.ts";
import { freePort } from "../support/program/ports.ts";
import type { DoctorStage } from "./doctor_stage.ts";
import type { Fault } from "./fault.ts";

const DAY_MS = 86_400_000;

/** Where something else than a server answers, or nothing. */
// deno-lint-ignore tunnel/function-length -- it is a table.
export async function placeFaults(
  stage: DoctorStage,
): Promise<readonly Fault[]> {
  const mine = `--state-dir=${await stage.joined("node1")}`;
  const at = (port: number) => `--server=127.0.0.1:${port}`;
  const silent = stage.service(() => new Promise(() => {}));
  const ssh = stage.service(async (conn) => {
    await conn.write(new TextEncoder().encode("SSH-2.0-OpenSSH_9.2\r\n"));
    await conn.read(new Uint8Array(512));
  });
  const proxy = stage.service(async (conn) => {
    await conn.read(new Uint8Array(1024));
    const answer = "HTTP/1.1 407 Proxy Authentication Required\r\n" +
      'Proxy-Authenticate: Basic realm="x"\r\nContent-Length: 0\r\n\r\n';
    await conn.write(new TextEncoder().encode(answer));
  });
  return [
    {
      what: "the server does not run",
      source: "fatedier/frp#177",
      args: ["agent", mine, at(stage.closedPort)],
      code: "TUN401",
      hop: "tcp",
      remedy: /tunnel server|--server/,
    },
    {
      what: "the server's name is no name",
      source: "cloudflare/cloudflared#939",
      args: ["agent", mine, "--server=no-such-host.invalid:8091"],
      code: "TUN401",
      hop: "dns",
      remedy: /getent hosts no-such-host\.invalid/,
    },
    {
      what: "the port is the health port",
      source: "daily use: join at the wrong port",
      args: ["agent", mine, at(stage.identity.healthPort)],
      code: "TUN208",
      hop: "tls",
      remedy: /--agent-port, 8091/,
    },
    {
      what: "the port is sshd's",
      source: "daily use: join at a port that speaks something else",
      args: ["agent", mine, at(ssh)],
      code: "TUN208",
      hop: "tls",
      remedy: /--agent-port, 8091/,
    },
    {
      what: "what accepts there says nothing",
      source: "daily use: silent peer",
      args: ["agent", mine, at(silent)],
      code: "TUN421",
      hop: "tls",
      remedy: /restart it|--agent-port/,
    },
    {
      what: "what has the port hangs up at once",
      source: "daily use: a balancer without a live server",
      args: ["agent", mine, at(stage.service(() => Promise.resolve()))],
      code: "TUN208",
      hop: "tls",
      remedy: /balancer.*--agent-port, 8091/,
    },
    {
      what: "the proxy wants a password (407)",
      source: "jpillora/chisel#294",
      args: ["agent", mine, "--server=tunnel.example:8091"],
      env: { HTTPS_PROXY: `http://127.0.0.1:${proxy}` },
      code: "TUN401",
      hop: "proxy",
      remedy: /HTTPS_PROXY=http:\/\/USER:PASSWORD@/,
    },
    {
      what: "the proxy is down",
      source: "daily use: HTTP proxy down",
      args: ["agent", mine, "--server=tunnel.example:8091"],
      env: { HTTPS_PROXY: `http://127.0.0.1:${stage.closedPort}` },
      code: "TUN401",
      hop: "proxy",
      remedy: /NO_PROXY=tunnel\.example/,
    },
    {
      what: "the server stands still",
      source: "daily use: a frontend that never answers",
      args: ["agent", mine],
      code: "TUN421",
      hop: "tls",
      remedy: /restart it/,
      around: async (run) => {
        stage.identity.child.signal("SIGSTOP");
        await run().finally(() => stage.identity.child.signal("SIGCONT"));
      },
    },
  ];
}

/** Certificates and clocks. */
// deno-lint-ignore tunnel/function-length -- it is a table.
export async function certificateFaults(
  stage: DoctorStage,
): Promise<readonly Fault[]> {
  const mine = `--state-dir=${await stage.joined("node1")}`;
  const ca = await ThrowawayCa.create("fault CA");
  const write = (name: string, text: string) => {
    const path = stage.path(name);
    Deno.writeTextFileSync(path, text, { mode: 0o600 });
    return path;
  };
  const caFile = write("ca.pem", ca.cert);
  const pair = async (
    name: string,
    from: number,
    until: number,
    names: readonly string[] = ["127.0.0.1"],
  ) => {
    const { cert, key } = await ca.issue({
      commonName: name,
      usage: "both",
      names,
      notBefore: new Date(Date.now() + from * DAY_MS),
      notAfter: new Date(Date.now() + until * DAY_MS),
    });
    return { cert: write(`${name}.pem`, cert), key: write(`${name}.key`, key) };
  };
  const good = await pair("good", -1, 1);
  const [expired, early, other] = await Promise.all([
    serverWith(stage, caFile, await pair("expired", -3, -1)),
    serverWith(stage, caFile, await pair("early", 2, 3)),
    serverWith(stage, caFile, await pair("other", -1, 1, ["other.example"])),
  ]);
  const files = (own: { readonly cert: string; readonly key: string }) => [
    `--ca-cert=${caFile}`,
    `--agent-cert=${own.cert}`,
    `--agent-key=${own.key}`,
  ];
  const old = await pair("old", -3, -1);
  const plain = await serverWith(stage, caFile, await pair("plain", -1, 1));
  const balancer = stage.balancer(await pair("balancer", -1, 1), caFile, plain);
  const website = stage.website(await pair("website", -1, 1));
  const ahead = await pair("ahead", 2, 3);
  return [
    {
      what: "the server has another CA than the one that is trusted",
      source: "cloudflare/cloudflared#1003",
      args: ["agent", mine, `--server=${other}`],
      code: "TUN205",
      hop: "tls",
      remedy: /--server|--ca-cert/,
    },
    {
      what: "the server's certificate has expired",
      source: "wazuh/wazuh#39314",
      args: ["agent", ...files(good), `--server=${expired}`],
      code: "TUN201",
      hop: "tls",
      remedy: /renew the server's certificate/,
    },
    {
      what: "the clock is behind: a certificate of tomorrow",
      source: "fatedier/frp#144",
      args: ["agent", ...files(good), `--server=${early}`],
      code: "TUN916",
      hop: "tls",
      remedy: /clock/,
    },
    {
      what: "the certificate is for another name",
      source: "cloudflare/cloudflared#1048",
      args: ["agent", ...files(good), `--server=${other}`],
      code: "TUN207",
      hop: "tls",
      remedy: /--server as its certificate/,
    },
    {
      what: "a load balancer ends TLS",
      source: "daily use: ALPN taken away on the way",
      args: ["agent", ...files(good), `--server=127.0.0.1:${balancer}`],
      code: "TUN210",
      hop: "identity",
      remedy: /pass TCP through/,
    },
    {
      what: "the port is another TLS service's",
      source: "daily use: wrong port",
      args: ["agent", ...files(good), `--server=127.0.0.1:${website}`],
      code: "TUN208",
      hop: "tls",
      remedy: /--agent-port, 8091/,
    },
    {
      what: "the agent's own certificate has expired",
      source: "daily use: expired certificate",
      args: ["agent", ...files(old), `--server=${stage.server}`],
      code: "TUN202",
      hop: "state",
      remedy: /issue another|clock/,
    },
    {
      what: "the clock is behind: the agent's certificate is of tomorrow",
      source: "geteduroam/linux-app#69",
      args: ["agent", ...files(ahead), `--server=${stage.server}`],
      code: "TUN916",
      hop: "state",
      remedy: /clock/,
    },
    {
      what: "certificate and key do not belong together",
      source: "daily use: key mismatch",
      args: [
        "agent",
        ...files({ cert: good.cert, key: old.key }),
        `--server=${stage.server}`,
      ],
      code: "TUN203",
      hop: "state",
      remedy: /--agent-key/,
    },
  ];
}

/** A server with certificates of somebody's own CA. @returns Where it is. */
async function serverWith(
  stage: DoctorStage,
  ca: string,
  { cert, key }: { readonly cert: string; readonly key: string },
): Promise<string> {
  const port = freePort();
  const log = stage.path("foreign.log");
  const server = new Child({
    name: "foreign server",
    command: [
      ...ourCommand("server"),
      `--cluster-cert=${cert}`,
      `--cluster-key=${key}`,
      `--cluster-ca-cert=${ca}`,
      `--uds-name=${stage.path("f.sock")}`,
      "--server-port=0",
      `--agent-port=${port}`,
      "--agent-bind-address=127.0.0.1",
      "--health-port=0",
      "--admin-port=0",
    ],
    logFile: log,
  });
  stage.ends(server);
  await server.untilPrinted(/server started/);
  return `127.0.0.1:${port}`;
}

/** Identities that are not there, not readable, or not let in. */
// deno-lint-ignore tunnel/function-length -- it is a table.
export async function identityFaults(
  stage: DoctorStage,
): Promise<readonly Fault[]> {
  const [root, exile, former] = await Promise.all([
    stage.joined("node1"),
    stage.joined("exile"),
    stage.joined("former"),
  ]);
  await stage.run("node", "revoke", "exile", "--reason=stolen");
  await stage.run("node", "forget", "former");
  const keyless = stage.copy("node1");
  Deno.removeSync(`${keyless}/key.pem`);
  const emptied = stage.copy("node1");
  Deno.writeTextFileSync(`${emptied}/cert.pem`, "");
  const begun = stage.path("begun");
  Deno.mkdirSync(begun, { mode: 0o700 });
  Deno.copyFileSync(`${root}/key.pem`, `${begun}/key.pem`);
  const forbidden = stage.copy("node1");
  return [
    {
      what: "the node has not joined",
      source: "daily use: agent without anything",
      args: ["agent", `--state-dir=${stage.path("none")}`],
      code: "TUN309",
      hop: "state",
      remedy: /tunnel token create.*tunnel join/,
    },
    {
      what: "the identity is another user's",
      source: "daily use: non-root on root's state",
      args: ["agent", `--state-dir=${forbidden}`],
      code: "TUN122",
      hop: "state",
      remedy: /run as its owner/,
      ...withoutPrivilege(forbidden),
    },
    {
      what: "the node waits for approval",
      source: "daily use: pending node",
      args: ["agent", `--state-dir=${begun}`],
      code: "TUN309",
      hop: "state",
      remedy: /tunnel node approve/,
    },
    {
      what: "the key was lost",
      source: "daily use: key.pem missing",
      args: ["agent", `--state-dir=${keyless}`],
      code: "TUN314",
      hop: "state",
      remedy: /backup.*tunnel node forget/,
    },
    {
      what: "the certificate's file is empty",
      source: "daily use: a disk that was full",
      args: ["agent", `--state-dir=${emptied}`],
      code: "TUN906",
      hop: "state",
      remedy: /rm .*cert\.pem/,
    },
    {
      what: "the node was revoked",
      source: "daily use: revoked node",
      args: ["agent", `--state-dir=${exile}`],
      code: "TUN311",
      hop: "identity",
      remedy: /tunnel node approve exile/,
    },
    {
      what: "the node was forgotten",
      source: "daily use: forgotten node",
      args: ["agent", `--state-dir=${former}`],
      code: "TUN312",
      hop: "identity",
      remedy: /--again/,
    },
    {
      what: "identifiers that were not granted",
      source: "daily use: identifiers not granted",
      args: [
        "agent",
        `--state-dir=${root}`,
        "--agent-identifiers=cidr=10.0.0.0/8",
      ],
      code: "TUN320",
      hop: "identity",
      remedy: /tunnel node approve node1/,
    },
  ];
}

/** Tokens that no node will join with. */
export async function tokenFaults(
  stage: DoctorStage,
): Promise<readonly Fault[]> {
  const [used, narrow, brief] = await Promise.all([
    stage.identity.createToken("--uses=1"),
    stage.identity.createToken("--node=edge-*"),
    stage.identity.createToken("--ttl=1s"),
    stage.joined("node1"),
  ]);
  await stage.agent("first", `--join=${used}`);
  const other = new IdentityServer(stage.workspace);
  stage.ends(await other.start());
  const foreign = await other.createToken();
  const join = (token: string, node: string) => [
    "agent",
    `--state-dir=${stage.path("fresh")}`,
    `--server=${stage.server}`,
    `--join=${token}`,
    `--node=${node}`,
  ];
  const fault = (
    what: string,
    args: readonly string[],
    code: Fault["code"],
    hop: string,
    remedy = /tunnel token create/,
  ): Fault => ({
    ...{ what, args, code, hop, remedy },
    source: "daily use: tokens expired, used up, of others",
  });
  const wrong = `${stage.token.slice(0, -4)}AAAA`;
  return [
    fault("the token was used", join(used, "late"), "TUN302", "token"),
    fault("the token is for others", join(narrow, "shop"), "TUN302", "token"),
    fault("the token has expired", join(brief, "late"), "TUN302", "token"),
    fault("the token was mistyped", join(wrong, "late"), "TUN302", "token"),
    fault(
      "the token is another server's",
      join(foreign, "late"),
      "TUN205",
      "tls",
    ),
    fault(
      "the node's name is taken",
      join(stage.token, "node1"),
      "TUN307",
      "token",
      /tunnel node forget node1/,
    ),
  ];
}
