/**
 * The admin port for other machines, of real servers: certificates, and what the
 * policy says of their owners.
 */

import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { AdminClient, AdminError } from "../../admin/ask/admin_client.ts";
import type { ConduitsAnswer } from "../../proto/admin/node_answer.ts";
import type { SessionAnswer } from "../../proto/admin/api.ts";
import {
  type CertificateSpec,
  ThrowawayCa,
} from "../support/certificates/throwaway_ca.ts";
import { TunnelProcesses } from "../support/rigs/tunnel_processes.ts";

const POLICY = `
frontends:
  - { socket: "*", allow: ["*:*:*"] }
admins:
  - { commonName: alice, role: operate }
  - { organization: "support", role: view }
`;

/** A server with such a port, and people who ask there. */
class Stage implements AsyncDisposable {
  readonly policy: string;

  private constructor(
    readonly servers: TunnelProcesses,
    readonly people: ThrowawayCa,
    readonly others: ThrowawayCa,
    readonly flags: readonly string[],
    readonly port: string,
  ) {
    this.policy = servers.workspace.path("policy.yaml");
    Deno.writeTextFileSync(this.policy, POLICY);
  }

  static async open(...flags: readonly string[]): Promise<Stage> {
    const servers = await TunnelProcesses.open();
    const { workspace } = servers;
    const people = await ThrowawayCa.create("people");
    const caFile = workspace.path("people.crt");
    Deno.writeTextFileSync(caFile, people.cert);
    const others = await ThrowawayCa.create("others");
    const policy = workspace.path("policy.yaml");
    Deno.writeTextFileSync(policy, POLICY);
    const all = [
      "--admin-remote-port=0",
      "--admin-remote-bind-address=127.0.0.1",
      `--admin-client-ca-file=${caFile}`,
      `--policy-file=${policy}`,
      `--audit-log=${workspace.path("audit.log")}`,
      ...flags,
    ];
    const server = servers.start(...all);
    const printed = /adminRemote="?127\.0\.0\.1:(\d+)/;
    const [, port] = await server.untilPrinted(printed);
    return new Stage(servers, people, others, all, port!);
  }

  async as(
    spec: Pick<CertificateSpec, "commonName" | "organizations">,
    ca = this.people,
  ): Promise<AdminClient> {
    const { workspace } = this.servers;
    const pair = await ca.issue({ ...spec, usage: "client" });
    const files = {
      cert: workspace.path("c.crt"),
      key: workspace.path("c.key"),
    };
    Deno.writeTextFileSync(files.cert, pair.cert);
    Deno.writeTextFileSync(files.key, pair.key, { mode: 0o600 });
    return new AdminClient("server", {
      kind: "tcp",
      host: "127.0.0.1",
      port: Number(this.port),
      tls: { ca: workspace.certificates.ca, ...files },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.servers[Symbol.asyncDispose]();
  }
}

for (const workers of [1, 2]) {
  Deno.test(`a certificate is who the policy says, ${workers} workers`, async () => {
    await using stage = await Stage.open(`--workers=${workers}`);
    const alice = await stage.as({ commonName: "alice" });
    assertEquals(await alice.get<SessionAnswer>("/v1/session"), {
      name: "CN=alice",
      role: "operate",
    });
    const list = await alice.get<ConduitsAnswer>("/v1/conduits");
    assertEquals(list.conduits, []);
    const operated = await assertRejects(
      () => alice.post("/v1/conduits/0123456789abcdef/kill"),
      AdminError,
    );
    assertEquals(operated.status, 404);
    const bob = await stage.as({
      commonName: "bob",
      organizations: ["support"],
    });
    assertEquals((await bob.get<SessionAnswer>("/v1/session")).role, "view");
    const refused = await assertRejects(
      () => bob.post("/v1/conduits/0123456789abcdef/kill"),
      AdminError,
      "CN=bob may look here",
    );
    assertEquals(refused.status, 403);
  });
}

for (const workers of [1, 2]) {
  Deno.test(`what loopback tells everybody takes a role there, ${workers} workers`, async () => {
    await using stage = await Stage.open(
      ...["--enable-profiling", `--workers=${workers}`],
    );
    const eve = await stage.as({ commonName: "eve" });
    const paths = ["/metrics", "/dashboard/", "/debug/pprof/", "/nothing"];
    const statuses = async (client: AdminClient) =>
      await Promise.all(paths.map(async (path) => {
        const error = await assertRejects(() => client.get(path), AdminError);
        return error.status;
      }));
    assertEquals(await statuses(eve), [403, 403, 403, 403]);
    const node = { commonName: "alice", organizations: ["tunnel:agents"] };
    assertEquals(await statuses(await stage.as(node)), [403, 403, 403, 403]);
    // Who may look gets what is no JSON, and no profile.
    const bob = { commonName: "bob", organizations: ["support"] };
    const seen = await statuses(await stage.as(bob));
    assertEquals(seen, [undefined, undefined, 403, 404]);
    const alice = await statuses(await stage.as({ commonName: "alice" }));
    assertEquals(alice, [undefined, undefined, undefined, 404]);
  });
}

Deno.test("nobody else is answered there", async () => {
  await using stage = await Stage.open();
  const status = async (client: AdminClient) => {
    const error = await assertRejects(
      () => client.get("/v1/session"),
      AdminError,
    );
    return error.status ?? error.message;
  };
  assertEquals(await status(await stage.as({ commonName: "eve" })), 403);
  const node = { commonName: "alice", organizations: ["tunnel:agents"] };
  assertEquals(await status(await stage.as(node)), 403);
  const forged = await stage.as({ commonName: "alice" }, stage.others);
  assertMatch(`${await status(forged)}`, /certificate|authority|TLS|trust/i);
  // Without one there is no handshake, and plain HTTP is none.
  const plain = new AdminClient("server", {
    kind: "tcp",
    host: "127.0.0.1",
    port: Number(stage.port),
  });
  assertMatch(`${await status(plain)}`, /^Cannot ask/);
  const noCertificate = await new Deno.Command("curl", {
    args: ["-sk", `https://127.0.0.1:${stage.port}/v1/status`],
  }).output();
  assertEquals(new TextDecoder().decode(noCertificate.stdout), "");
});
