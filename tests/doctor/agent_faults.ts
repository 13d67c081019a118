/**
 * What keeps an agent from its server although the network is whole: the wrong
 * port, a proxy, certificates, clocks, an identity that is not there or not let
 * in.
 *
 * @module
 */

import { whileStill, withoutPrivilege } from "../mistakes/surroundings.ts";
import { ThrowawayCa } from "../support/certificates/throwaway_ca.ts";
import { ourCommand } from "../support/program/tunnel.ts";
import { Child } from "../support/program/child.ts";
import { IdentityServer } from "../support/rigs/node_stage.ts";
import { freePort } from "../support/program/ports.ts";
import type { DoctorStage } from "./doctor_stage.ts";
import { type Fault, fault } from "./fault.ts";

const DAY_MS = 86_400_000;

/** Where something else than a server answers, or nothing. */
// deno-fmt-ignore: the columns are the point.
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
    fault("the server does not run", "fatedier/frp#177",
      "TUN401", "tcp", /tunnel server|--server/, ["agent", mine, at(stage.closedPort)]),
    fault("the server's name is no name", "cloudflare/cloudflared#939",
      "TUN401", "dns", /getent hosts no-such-host\.invalid/, ["agent", mine, "--server=no-such-host.invalid:8091"]),
    fault("the port is the health port", "daily use: join at the wrong port",
      "TUN208", "tls", /--agent-port, 8091/, ["agent", mine, at(stage.identity.healthPort)]),
    fault("the port is sshd's", "daily use: join at a port that speaks something else",
      "TUN208", "tls", /--agent-port, 8091/, ["agent", mine, at(ssh)]),
    fault("what accepts there says nothing", "daily use: silent peer",
      "TUN421", "tls", /restart it|--agent-port/, ["agent", mine, at(silent)]),
    fault("what has the port hangs up at once", "daily use: a balancer without a live server",
      "TUN208", "tls", /balancer.*--agent-port, 8091/, ["agent", mine, at(stage.service(() => Promise.resolve()))]),
    fault("the proxy wants a password (407)", "jpillora/chisel#294",
      "TUN401", "proxy", /HTTPS_PROXY=http:\/\/USER:PASSWORD@/, ["agent", mine, "--server=tunnel.example:8091"],
      { env: { HTTPS_PROXY: `http://127.0.0.1:${proxy}` } }),
    fault("the proxy is down", "daily use: HTTP proxy down",
      "TUN401", "proxy", /NO_PROXY=tunnel\.example/, ["agent", mine, "--server=tunnel.example:8091"],
      { env: { HTTPS_PROXY: `http://127.0.0.1:${stage.closedPort}` } }),
    fault("the server hangs", "daily use: a frontend that never answers",
      "TUN421", "tls", /restart it/, ["agent", mine], whileStill(() => stage.identity.child)),
  ];
}

/** Certificates and clocks. */
// deno-fmt-ignore: the columns are the point.
export async function certificateFaults(
  stage: DoctorStage,
): Promise<readonly Fault[]> {
  const mine = `--state-dir=${await stage.joined("node1")}`;
  const ca = await ThrowawayCa.create("fault CA");
  const caFile = stage.file("ca.pem", ca.cert);
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
    return { cert: stage.file(`${name}.pem`, cert), key: stage.file(`${name}.key`, key) };
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
    fault("the server has another CA than the one that is trusted", "cloudflare/cloudflared#1003",
      "TUN205", "tls", /--server|--ca-cert/, ["agent", mine, `--server=${other}`]),
    fault("the server's certificate has expired", "wazuh/wazuh#39314",
      "TUN201", "tls", /renew the server's certificate/, ["agent", ...files(good), `--server=${expired}`]),
    fault("the clock is behind: a certificate of tomorrow", "fatedier/frp#144",
      "TUN916", "tls", /clock/, ["agent", ...files(good), `--server=${early}`]),
    fault("the certificate is for another name", "cloudflare/cloudflared#1048",
      "TUN207", "tls", /--server as its certificate/, ["agent", ...files(good), `--server=${other}`]),
    fault("a load balancer ends TLS", "daily use: ALPN taken away on the way",
      "TUN210", "identity", /pass TCP through/, ["agent", ...files(good), `--server=127.0.0.1:${balancer}`]),
    fault("the port is another TLS service's", "daily use: wrong port",
      "TUN208", "tls", /--agent-port, 8091/, ["agent", ...files(good), `--server=127.0.0.1:${website}`]),
    fault("the agent's own certificate has expired", "daily use: expired certificate",
      "TUN202", "state", /issue another|clock/, ["agent", ...files(old), `--server=${stage.server}`]),
    fault("the clock is behind: the agent's certificate is of tomorrow", "geteduroam/linux-app#69",
      "TUN916", "state", /clock/, ["agent", ...files(ahead), `--server=${stage.server}`]),
    fault("certificate and key do not belong together", "daily use: key mismatch",
      "TUN203", "state", /--agent-key/,
      ["agent", ...files({ cert: good.cert, key: old.key }), `--server=${stage.server}`]),
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
  stage.keep(server);
  await server.untilPrinted(/server started/);
  return `127.0.0.1:${port}`;
}

/** Identities that are not there, not readable, or not let in. */
// deno-fmt-ignore: the columns are the point.
export async function identityFaults(
  stage: DoctorStage,
): Promise<readonly Fault[]> {
  const [root, exile, former] = await Promise.all(["node1", "exile", "former"].map((node) => stage.joined(node)));
  await stage.change("node", "revoke", "exile", "--reason=stolen");
  await stage.change("node", "forget", "former");
  const keyless = stage.copyOfNode("keyless", (path) => Deno.removeSync(`${path}/key.pem`));
  const emptied = stage.copyOfNode("emptied", (path) => Deno.writeTextFileSync(`${path}/cert.pem`, ""));
  const begun = stage.directory("begun", { "key.pem": Deno.readTextFileSync(`${root}/key.pem`) });
  const forbidden = stage.copyOfNode("forbidden");
  return [
    fault("the node has not joined", "daily use: agent without anything",
      "TUN309", "state", /tunnel token create.*tunnel join/, ["agent", `--state-dir=${stage.path("none")}`]),
    fault("the identity is another user's", "daily use: non-root on root's state",
      "TUN122", "state", /run as its owner/, ["agent", `--state-dir=${forbidden}`], withoutPrivilege(forbidden)),
    fault("the node waits for approval", "daily use: pending node",
      "TUN309", "state", /tunnel node approve/, ["agent", `--state-dir=${begun}`]),
    fault("the key was lost", "daily use: key.pem missing",
      "TUN314", "state", /backup.*tunnel node forget/, ["agent", `--state-dir=${keyless}`]),
    fault("the certificate's file is empty", "daily use: a disk that was full",
      "TUN906", "state", /rm .*cert\.pem/, ["agent", `--state-dir=${emptied}`]),
    fault("the node was revoked", "daily use: revoked node",
      "TUN311", "identity", /tunnel node approve exile/, ["agent", `--state-dir=${exile}`]),
    fault("the node was forgotten", "daily use: forgotten node",
      "TUN312", "identity", /--again/, ["agent", `--state-dir=${former}`]),
    fault("identifiers that were not granted", "daily use: identifiers not granted",
      "TUN320", "identity", /tunnel node approve node1/,
      ["agent", `--state-dir=${root}`, "--agent-identifiers=cidr=10.0.0.0/8"]),
  ];
}

/** Tokens that no node will join with. */
// deno-fmt-ignore: the columns are the point.
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
  stage.keep(await other.start());
  const foreign = await other.createToken();
  const source = "daily use: tokens expired, used up, of others";
  const join = (token: string, node = "late") => ["agent", ...stage.fresh(token, node)];
  const create = /tunnel token create/;
  const wrong = `${stage.token.slice(0, -4)}AAAA`;
  return [
    fault("the token was used", source, "TUN302", "token", create, join(used)),
    fault("the token is for others", source, "TUN302", "token", create, join(narrow, "shop")),
    fault("the token has expired", source, "TUN302", "token", create, join(brief)),
    fault("the token was mistyped", source, "TUN302", "token", create, join(wrong)),
    fault("the token is another server's", source, "TUN205", "tls", create, join(foreign)),
    fault("the node's name is taken", source,
      "TUN307", "token", /tunnel node forget node1/, join(stage.token, "node1")),
  ];
}
