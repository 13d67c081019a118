import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import {
  failure,
  FakeApiServer,
  plainClient,
} from "../../tests/support/peers/fake_apiserver.ts";
import {
  FakeSigner,
  REQUESTS,
} from "../../tests/support/memory/fake_signer.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  generateKeyPair,
  publicKeyInfo,
  sha256Hex,
} from "../../platform/pki/key_pair.ts";
import type { KubernetesClient } from "./client.ts";
import {
  API_CLIENT_SIGNER,
  CLIENT_USAGES,
  CsrError,
  ISSUE_TIMEOUT_MS,
  requestCertificate,
} from "./csr.ts";
import { KubernetesError } from "./errors.ts";

const SPEC = {
  signerName: API_CLIENT_SIGNER,
  usages: CLIENT_USAGES,
  commonName: "tunnel-agent-client",
  organizations: ["openyurt:yurttunnel"],
  dnsNames: ["edge1"],
  ipAddresses: ["10.0.0.7"],
  expirationSeconds: 3600,
};

/** A fake API server, its signer, and a way to ask it. */
class Rig implements AsyncDisposable {
  readonly timers = new FakeTimers();
  readonly #client: KubernetesClient;

  private constructor(
    readonly server: FakeApiServer,
    readonly signer: FakeSigner,
  ) {
    this.#client = plainClient(server.url, this.timers);
  }

  static async open(): Promise<Rig> {
    const server = FakeApiServer.start();
    return new Rig(server, await FakeSigner.of(server));
  }

  /** Asks; `pending` is the request's name once it is written. */
  ask(keys: CryptoKeyPair, signal: AbortSignal = new AbortController().signal) {
    const { promise: pending, resolve } = Promise.withResolvers<string>();
    const certificate = requestCertificate(keys, SPEC, {
      client: this.#client,
      timers: this.timers,
      random: () => 0,
      signal,
      onPending: resolve,
    });
    certificate.catch(() => {});
    return { pending, certificate };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client[Symbol.dispose]();
    await this.server[Symbol.asyncDispose]();
    assertEquals(this.timers.pendingCount, 0, "a timer is left");
  }
}

const keys = await generateKeyPair();

Deno.test("a certificate comes of a request that is approved and signed", async () => {
  await using rig = await Rig.open();
  const { pending, certificate } = rig.ask(keys);
  const name = await pending;
  assertEquals(rig.signer.find(name).spec.usages, CLIENT_USAGES);
  await rig.server.nextWatch();
  rig.signer.decide(name, "Approved");
  await rig.signer.grant(name);
  const [leaf] = await certificate;
  const info = await publicKeyInfo(keys.publicKey);
  assertEquals(leaf!.publicKeySha256, sha256Hex(info));
  assertStringIncludes(leaf!.x509.subject, "tunnel-agent-client");
});

Deno.test("asking again with the same key finds the request that is there", async () => {
  await using rig = await Rig.open();
  const stopping = new AbortController();
  const first = rig.ask(keys, stopping.signal);
  const name = await first.pending;
  await rig.server.nextWatch();
  stopping.abort(new CsrError("stopped"));
  await assertRejects(() => first.certificate, CsrError, "stopped");
  await rig.signer.grant(name);
  const again = rig.ask(keys);
  assertEquals(await again.pending, name);
  await again.certificate;
  const third = rig.ask(await generateKeyPair());
  assert(await third.pending !== name);
  await rig.server.nextWatch();
  await rig.signer.grant(await third.pending);
  await third.certificate;
});

Deno.test("a request that is denied, or cannot be signed, says whose reason", async () => {
  await using rig = await Rig.open();
  for (const [type, words] of [["Denied", "denied"], ["Failed", "failed"]]) {
    const { pending, certificate } = rig.ask(await generateKeyPair());
    const name = await pending;
    await rig.server.nextWatch();
    rig.signer.decide(name, type!);
    const error = await assertRejects(() => certificate, CsrError, words!);
    assertStringIncludes(error.message, "Test: why");
    assertStringIncludes(error.message, `kubectl delete csr ${name}`);
    assertEquals(error.needsNewKey, false);
  }
});

Deno.test("a wait that is over says for whom it was", async () => {
  await using rig = await Rig.open();
  const first = rig.ask(keys);
  const name = await first.pending;
  await rig.server.nextWatch();
  rig.timers.advance(ISSUE_TIMEOUT_MS);
  await assertRejects(
    () => first.certificate,
    CsrError,
    `kubectl certificate approve ${name}`,
  );
  rig.signer.decide(name, "Approved");
  const second = rig.ask(keys);
  await rig.server.nextWatch();
  rig.timers.advance(ISSUE_TIMEOUT_MS);
  await assertRejects(() => second.certificate, CsrError, "but not signed");
});

Deno.test("a missing right is named at once", async () => {
  await using rig = await Rig.open();
  const forbidden = (verb: string) => () =>
    failure(403, "Forbidden", `edge1 cannot ${verb} resource`);
  rig.server.failNext(forbidden("create"));
  await assertRejects(
    () => rig.ask(keys).certificate,
    KubernetesError,
    "cannot create resource; grant this user that verb",
  );
  const second = rig.ask(keys);
  await second.pending;
  rig.server.failNext(forbidden("list"));
  await assertRejects(
    () => second.certificate,
    KubernetesError,
    "cannot list resource; grant this user that verb",
  );
});

Deno.test("a request that is deleted or replaced is waited for no longer", async () => {
  await using rig = await Rig.open();
  const first = rig.ask(keys);
  const name = await first.pending;
  await rig.server.nextWatch();
  rig.server.remove(REQUESTS, name);
  await assertRejects(() => first.certificate, CsrError, "deleted");
  const second = rig.ask(keys);
  await second.pending;
  await rig.server.nextWatch();
  const found = rig.signer.find(name);
  const metadata = { ...found.metadata, uid: "another" };
  rig.server.put(REQUESTS, { ...found, metadata });
  await assertRejects(() => second.certificate, CsrError, "deleted");
});

Deno.test("a certificate for another key, or none, is not taken", async () => {
  await using rig = await Rig.open();
  const { pending: otherPending, certificate: others } = rig.ask(
    await generateKeyPair(),
  );
  const otherName = await otherPending;
  await rig.server.nextWatch();
  const foreign = await rig.signer.sign(otherName, Date.now() + 3600_000);
  const { pending, certificate } = rig.ask(keys);
  const name = await pending;
  await rig.server.nextWatch();
  rig.signer.decide(name, "Approved", foreign);
  const error = await assertRejects(
    () => certificate,
    CsrError,
    "another key than ours",
  );
  assertEquals(error.needsNewKey, true);
  rig.signer.decide(otherName, "Approved", btoa("no certificate"));
  const damaged = await assertRejects(() => others, CsrError, "Cannot use");
  assertEquals(damaged.needsNewKey, true);
});

Deno.test("an API server that is away is reported at once, not after its deadline", async () => {
  const timers = new FakeTimers();
  // Nothing listens there.
  using client = plainClient("http://127.0.0.1:1", timers);
  await assertRejects(
    async () =>
      await requestCertificate(await generateKeyPair(), SPEC, {
        client,
        timers,
        random: () => 0,
        signal: new AbortController().signal,
      }),
    KubernetesError,
    "no answer from http://127.0.0.1:1",
  );
});
