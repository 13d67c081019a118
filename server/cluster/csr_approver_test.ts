import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import {
  API_CLIENT_SIGNER,
  CLIENT_USAGES,
} from "../../neighbours/kubernetes/csr.ts";
import { KubernetesError } from "../../neighbours/kubernetes/errors.ts";
import type { CertificateSigningRequest } from "../../neighbours/kubernetes/objects.ts";
import { generateKeyPair } from "../../platform/pki/key_pair.ts";
import { makeNamedRequest } from "../../platform/pki/named_request.ts";
import { NO_IDENTIFIERS } from "../../proto/peer/identifiers.ts";
import {
  failure,
  FakeApiServer,
  plainClient,
  type SeenRequest,
} from "../../tests/support/peers/fake_apiserver.ts";
import { REQUESTS } from "../../tests/support/memory/fake_signer.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { Transcript } from "../../tests/support/watch/transcript.ts";
import { CONFLICTS_MAX, CsrApprover, LOOK_AGAIN_MS } from "./csr_approver.ts";

const keys = await generateKeyPair();

async function encoded(...ipAddresses: string[]): Promise<string> {
  return btoa(
    await makeNamedRequest(keys, {
      commonName: "tunnel-agent-client",
      organizations: ["openyurt:yurttunnel"],
      dnsNames: ["edge1"],
      ipAddresses,
    }),
  );
}

const request = await encoded();

function csr(
  name: string,
  node = "edge1",
  changed: Partial<CertificateSigningRequest> = {},
): CertificateSigningRequest {
  return {
    metadata: { name },
    spec: {
      request,
      signerName: API_CLIENT_SIGNER,
      usages: CLIENT_USAGES,
      username: `system:node:${node}`,
      groups: ["system:nodes"],
    },
    ...changed,
  };
}

/** An approver of a fake API server; what it logged, as text. */
class Rig implements AsyncDisposable {
  readonly server = FakeApiServer.start();
  readonly timers = new FakeTimers();
  readonly said = new Transcript();
  /** Addresses of every node. */
  addresses: string[] = [];
  /** Why they cannot be had. */
  trouble: Error | undefined;
  readonly approver: CsrApprover;
  readonly #client = plainClient(this.server.url, this.timers);

  constructor() {
    const say = (kind: string) => (words: string) =>
      this.said.add(`${kind} ${words}`);
    this.approver = new CsrApprover({
      client: this.#client,
      timers: this.timers,
      random: () => 0,
      addresses: {
        of: () =>
          this.trouble === undefined
            ? Promise.resolve({ ...NO_IDENTIFIERS, ipv4: this.addresses })
            : Promise.reject(this.trouble),
      },
      observer: {
        decided: () => {},
        event: say("event"),
        detail: say("detail"),
        warn: say("warn"),
      },
    });
  }

  /** Conditions that were written, by request. */
  get written(): string[] {
    return this.server.requests.filter(({ method }) => method === "PUT")
      .map(({ path, body }) => {
        const { status } = body as CertificateSigningRequest;
        const types = status!.conditions!.map(({ type }) => type);
        return `${path.slice(REQUESTS.length + 1)} ${types}`;
      });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.approver.stop();
    this.#client[Symbol.dispose]();
    await this.server[Symbol.asyncDispose]();
    assertEquals(this.timers.pendingCount, 0, "a timer is left");
  }
}

/** What the API server's subresource does with a decision. */
function decide(seen: SeenRequest): Response {
  return Response.json(seen.body);
}

const conflict = () => failure(409, "Conflict", "modified");

Deno.test("requests are approved, denied or left alone, and that is logged", async () => {
  await using rig = new Rig();
  rig.server.put(REQUESTS, csr("good"));
  const spec = { ...csr("foreign").spec, request: btoa("nothing") };
  rig.server.put(REQUESTS, csr("foreign", "edge1", { spec }));
  rig.approver.start();
  await rig.server.nextWatch();
  await rig.said.containing("left CertificateSigningRequest foreign");
  rig.server.put(REQUESTS, csr("bad", "edge2"));
  const line = await rig.said.containing(
    "denied CertificateSigningRequest bad",
  );
  assertStringIncludes(line, 'of "system:node:edge2": it comes from node');
  // Both are decided side by side, so either may be first.
  await rig.said.containing("approved CertificateSigningRequest good");
  assertEquals(rig.written.toSorted(), [
    "bad/approval Denied",
    "good/approval Approved",
  ]);
});

Deno.test("what is decided already is not even looked at", async () => {
  await using rig = new Rig();
  const conditions = [{ type: "Denied", status: "True" }];
  rig.server.put(REQUESTS, csr("done", "edge1", { status: { conditions } }));
  rig.approver.start();
  await rig.server.nextWatch();
  rig.server.put(REQUESTS, csr("good"));
  await rig.said.containing("approved CertificateSigningRequest good");
  assertEquals(rig.written, ["good/approval Approved"]);
  assertEquals(rig.said.lines.length, 1);
});

Deno.test("after a conflict the request is decided about as it is then", async () => {
  await using rig = new Rig();
  rig.approver.start();
  await rig.server.nextWatch();
  // Somebody writes something; the request stays as good as it was.
  rig.server.failNext(conflict);
  rig.server.put(REQUESTS, csr("good"));
  await rig.said.containing("approved CertificateSigningRequest good");
  // Another server was faster.
  const conditions = [{ type: "Approved", status: "True" }];
  rig.server.failNext(
    conflict,
    () => Response.json({ ...csr("fast"), status: { conditions } }),
  );
  rig.server.put(REQUESTS, csr("fast"));
  await rig.said.containing("left CertificateSigningRequest fast");
  // Somebody has put another request in its place.
  rig.server.failNext(
    conflict,
    () => Response.json(csr("swapped", "edge2")),
    decide,
  );
  rig.server.put(REQUESTS, csr("swapped"));
  await rig.said.containing("denied CertificateSigningRequest swapped");
  // Nobody waits for one that was deleted.
  for (const before of [[conflict], []]) {
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    rig.server.failNext(...before, () => {
      resolve();
      return failure(404, "NotFound", "gone");
    });
    rig.server.put(REQUESTS, csr("gone"));
    await asked;
  }
  rig.server.put(REQUESTS, csr("last"));
  await rig.said.containing("approved CertificateSigningRequest last");
  assert(
    !rig.said.lines.some((line) => line.includes("Request gone")),
    rig.said.lines[0],
  );
});

Deno.test("a request that may be good soon is looked at again, and that is logged once", async () => {
  await using rig = new Rig();
  rig.approver.start();
  await rig.server.nextWatch();
  const spec = { ...csr("early").spec, request: await encoded("10.0.0.7") };
  rig.server.put(REQUESTS, csr("early", "edge1", { spec }));
  const line = await rig.said.containing("early of");
  assertStringIncludes(line, "has to wait: 10.0.0.7 is no address of node");
  rig.timers.advance(LOOK_AGAIN_MS);
  rig.server.put(REQUESTS, csr("other"));
  await rig.said.containing("approved CertificateSigningRequest other");
  rig.addresses = ["10.0.0.7"];
  rig.timers.advance(LOOK_AGAIN_MS);
  await rig.said.containing("approved CertificateSigningRequest early");
  assertEquals(rig.said.lines.length, 3);
});

Deno.test("an API server that does not let us decide is asked again, later", async () => {
  await using rig = new Rig();
  rig.approver.start();
  await rig.server.nextWatch();
  rig.server.failNext(() => failure(403, "Forbidden", "cannot update"));
  rig.server.put(REQUESTS, csr("good"));
  const line = await rig.said.containing("cannot decide about");
  assertStringIncludes(line, "cannot update; grant this user that verb");
  rig.timers.advance(1_000);
  await rig.said.containing("approved CertificateSigningRequest good");
});

Deno.test("a request that always fails does not make the others wait ever longer", async () => {
  await using rig = new Rig();
  rig.trouble = new KubernetesError(0, "", "not now");
  const spec = { ...csr("bad").spec, request: await encoded("10.0.0.1") };
  rig.server.put(REQUESTS, csr("bad", "edge1", { spec }));
  for (let i = 0; i < 14; i++) rig.server.put(REQUESTS, csr(`csr-${i}`));
  rig.approver.start();
  // Each time seven others are approved beside it.
  const first = await rig.said.nth(8);
  assertStringIncludes(first, "Request bad: not now; trying again in 50 ms");
  rig.timers.advance(50);
  assertEquals(await rig.said.nth(16), first);
});

Deno.test("a whole cluster that asks at once is decided about, each once", async () => {
  await using rig = new Rig();
  const names = Array.from({ length: 50 }, (_, i) => `csr-${i}`);
  for (const name of names.slice(0, 40)) rig.server.put(REQUESTS, csr(name));
  rig.approver.start();
  await rig.server.nextWatch();
  for (const name of names.slice(40)) rig.server.put(REQUESTS, csr(name));
  for (const name of names) {
    await rig.said.containing(`approved CertificateSigningRequest ${name} `);
  }
  assertEquals(
    rig.written.sort(),
    names.map((n) => `${n}/approval Approved`).sort(),
  );
});

Deno.test("conflicts without end are given up for a while", async () => {
  await using rig = new Rig();
  rig.approver.start();
  await rig.server.nextWatch();
  for (let i = 0; i <= CONFLICTS_MAX; i++) {
    rig.server.failNext(conflict);
    if (i < CONFLICTS_MAX) rig.server.failNext(() => Response.json(csr("a")));
  }
  rig.server.put(REQUESTS, csr("a"));
  await rig.said.containing("cannot decide about CertificateSigningRequest a");
  rig.timers.advance(1_000);
  await rig.said.containing("approved CertificateSigningRequest a");
});
