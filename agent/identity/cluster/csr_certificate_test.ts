import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import {
  API_CLIENT_SIGNER,
  CLIENT_USAGES,
  CsrError,
} from "../../../neighbours/kubernetes/csr.ts";
import { CertificateAuthority } from "../../../platform/pki/authority.ts";
import {
  type CertificateFacts,
  readCertificates,
} from "../../../platform/pki/certificate.ts";
import {
  exportPrivateKey,
  generateKeyPair,
  publicKeyInfo,
  sha256Hex,
} from "../../../platform/pki/key_pair.ts";
import { Credentials } from "../../../net/tls/trust/credentials.ts";
import { FakeTimers } from "../../../tests/support/memory/fake_timers.ts";
import { inMemoryFolder } from "../../../tests/support/memory/memory_folder.ts";
import { Transcript } from "../../../tests/support/watch/transcript.ts";
import { CertificateFiles } from "./certificate_files.ts";
import { CSR_RETRY_CAP_MS, CsrCertificate } from "./csr_certificate.ts";

const HOUR_MS = 3600_000;

const SPEC = {
  signerName: API_CLIENT_SIGNER,
  usages: CLIENT_USAGES,
  commonName: "tunnel-agent-client",
  organizations: ["openyurt:yurttunnel"],
  dnsNames: ["edge1"],
  ipAddresses: ["10.0.0.7", "fd00::7"],
  expirationSeconds: 3600,
};

const authority = await CertificateAuthority.create({
  commonName: () => "kubernetes",
  notAfter: new Date(Date.now() + 1000 * HOUR_MS),
});

/** A certificate as the cluster would issue it, good from `fromMs` on. */
async function issue(
  keys: CryptoKeyPair,
  fromMs: number,
  lifeMs = HOUR_MS,
  commonName = SPEC.commonName,
): Promise<CertificateFacts[]> {
  return readCertificates(
    await authority.issue({
      publicKey: keys.publicKey,
      commonName,
      organizations: SPEC.organizations,
      names: [
        { type: "dns", value: "edge1" },
        { type: "ip", value: "10.0.0.7" },
        { type: "ip", value: "fd00::7" },
      ],
      usage: "client",
      notBefore: new Date(fromMs),
      notAfter: new Date(fromMs + lifeMs),
    }),
  );
}

/** A request that was made; the test says what comes of it. */
interface Asked {
  readonly keys: CryptoKeyPair;
  readonly signal: AbortSignal;
  readonly onPending: (name: string) => void;
  answer(chain: readonly CertificateFacts[]): void;
  refuse(error: Error): void;
}

/** A certificate under care in `folder`, in time that a test moves. */
class Rig implements AsyncDisposable {
  readonly timers = new FakeTimers();
  readonly said = new Transcript();
  readonly certificate: CsrCertificate;
  readonly files: CertificateFiles;
  kept = 0;
  readonly #startMs = Date.now();
  readonly #asked: Asked[] = [];
  readonly #waiting: ((asked: Asked) => void)[] = [];
  /** The next wait is drawn at this point. */
  random = 0;

  constructor(folder: string, startMs = Date.now()) {
    this.#startMs = startMs - this.timers.now();
    const now = () => this.nowMs;
    this.files = new CertificateFiles(folder, "agent", now);
    this.certificate = new CsrCertificate({
      files: this.files,
      spec: SPEC,
      timers: this.timers,
      now,
      random: () => this.random,
      onKept: () => this.kept++,
      request: (keys, signal, onPending) =>
        new Promise((answer, refuse) => {
          signal.addEventListener("abort", () => refuse(signal.reason));
          const asked = { keys, signal, onPending, answer, refuse };
          const waiting = this.#waiting.shift();
          if (waiting === undefined) this.#asked.push(asked);
          else waiting(asked);
        }),
      log: {
        event: (_message, { request } = {}) => {
          if (request === undefined) this.askings++;
          else this.said.add(`pending ${request}`);
        },
        info: () => this.said.add("obtained"),
        warn: (message, { code }) =>
          this.said.add(`${code === "TUN202" ? "failed" : "warn"} ${message}`),
      },
    });
  }

  /** How often it was said that the API server is asked. */
  askings = 0;

  get nowMs(): number {
    return this.#startMs + this.timers.now();
  }

  /** The next time that a certificate is asked for. */
  asked(): Promise<Asked> {
    const asked = this.#asked.shift();
    if (asked !== undefined) return Promise.resolve(asked);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Until that many things were said in all. */
  async until(count: number): Promise<string> {
    const said = await this.said.nth(count);
    // What follows is under way when the words are said.
    await new Promise((resolve) => setImmediate(resolve));
    return said;
  }

  /** Moves time minute by minute, as the clock is looked at. */
  async pass(durationMs: number): Promise<void> {
    for (let leftMs = durationMs; leftMs > 0; leftMs -= 60_000) {
      this.timers.advance(Math.min(leftMs, 60_000));
      await Promise.resolve();
      await Promise.resolve();
      await Promise.resolve();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.certificate.stop();
    assertEquals(this.timers.pendingCount, 0, "a timer is left");
  }
}

async function hashOf({ publicKey }: CryptoKeyPair): Promise<string> {
  return sha256Hex(await publicKeyInfo(publicKey));
}

async function names(folder: string): Promise<string[]> {
  const found = await Array.fromAsync(Deno.readDir(folder));
  return found.map(({ name }) => name).sort();
}

Deno.test("the first certificate is asked for, kept, and there for TLS", () =>
  inMemoryFolder(async (folder) => {
    await using rig = new Rig(folder);
    rig.certificate.start();
    const { keys, answer, onPending } = await rig.asked();
    assertStringIncludes(rig.certificate.problem!, "has not answered yet");
    assertEquals(rig.askings, 1);
    onPending("tunnel-1");
    assertStringIncludes(rig.certificate.problem!, "tunnel-1 waits");
    const chain = await issue(keys, rig.nowMs);
    answer(chain);
    await rig.certificate.first();
    assertEquals([rig.certificate.problem, rig.kept], [undefined, 1]);
    const { current } = rig.files;
    const loaded = Credentials.load({ cert: current, key: current });
    assertEquals(loaded.current.cert, chain[0]!.pem);
    const link = await Deno.readLink(current);
    assert(/^agent-\d{4}(-\d\d){5}\.pem$/.test(link), link);
    assertEquals(await names(folder), [link, "agent-current.pem"].sort());
    assertEquals((await Deno.stat(current)).mode! & 0o777, 0o600);
  }));

Deno.test("the same key is used until it has a certificate, also after a restart", () =>
  inMemoryFolder(async (folder) => {
    let hash: string;
    {
      await using rig = new Rig(folder);
      rig.certificate.start();
      const first = await rig.asked();
      hash = await hashOf(first.keys);
      first.refuse(new CsrError("denied"));
      // Drawn at its shortest: a right is not granted within milliseconds.
      assertEquals(await rig.until(1), "failed denied; trying again in 500 ms");
      rig.timers.advance(CSR_RETRY_CAP_MS);
      const second = await rig.asked();
      assertEquals(await hashOf(second.keys), hash);
    }
    await using again = new Rig(folder);
    again.certificate.start();
    const third = await again.asked();
    assertEquals(await hashOf(third.keys), hash);
    third.refuse(new CsrError("of another key", true));
    await again.until(1);
    again.timers.advance(CSR_RETRY_CAP_MS);
    assert(await hashOf((await again.asked()).keys) !== hash);
  }));

Deno.test("waits between attempts grow to half a minute and no further", () =>
  inMemoryFolder(async (folder) => {
    await using rig = new Rig(folder);
    rig.random = 0.999_999;
    rig.certificate.start();
    let waitMs = 0;
    for (let attempt = 1; attempt <= 20; attempt++) {
      (await rig.asked()).refuse(new CsrError("away"));
      waitMs = Number((await rig.until(attempt)).split(" ").at(-2));
      // Rounded for people.
      rig.timers.advance(waitMs + 1);
    }
    assertEquals(Math.round(waitMs), CSR_RETRY_CAP_MS);
  }));

Deno.test("a certificate is renewed between 70 and 90 % of its life, with a new key", async (t) => {
  for (const [random, part] of [[0, 0.7], [0.999, 0.9]] as const) {
    await t.step(`at ${part}`, () =>
      inMemoryFolder(async (folder) => {
        await using rig = new Rig(folder);
        rig.random = random;
        rig.certificate.start();
        const first = await rig.asked();
        first.answer(await issue(first.keys, rig.nowMs));
        await rig.until(1);
        let isAsked = false;
        const asking = rig.asked().then((asked) => {
          isAsked = true;
          return asked;
        });
        await rig.pass(part * HOUR_MS - 60_000);
        assertEquals(isAsked, false);
        await rig.pass(2 * 60_000);
        const second = await asking;
        assert(await hashOf(second.keys) !== await hashOf(first.keys));
        assertEquals(rig.certificate.problem, undefined, "the old one is good");
        second.answer(await issue(second.keys, rig.nowMs));
        assertEquals(await rig.until(2), "obtained");
        assertEquals(rig.kept, 2);
      }));
  }
});

Deno.test("a short certificate that begins in the past is renewed before it ends", () =>
  inMemoryFolder(async (folder) => {
    await using rig = new Rig(folder);
    rig.random = 0.999;
    rig.certificate.start();
    const first = await rig.asked();
    const minuteMs = 60_000;
    const fromMs = rig.nowMs - 5 * minuteMs;
    first.answer(await issue(first.keys, fromMs, 15 * minuteMs));
    await rig.until(1);
    await rig.pass(10 * minuteMs - 30_000);
    const second = await rig.asked();
    assertEquals(rig.certificate.problem, undefined, "the old one is good");
    await rig.pass(minuteMs);
    assertStringIncludes(rig.certificate.problem!, "expired on");
    second.answer(await issue(second.keys, rig.nowMs));
    await rig.until(2);
    assertEquals(rig.certificate.problem, undefined);
  }));

Deno.test("what was kept is used again at the next start", () =>
  inMemoryFolder(async (folder) => {
    const nowMs = Date.now();
    const keys = await generateKeyPair();
    const files = new CertificateFiles(folder, "agent", () => nowMs);
    await files.keep(await issue(keys, nowMs), keys);
    await using rig = new Rig(folder, nowMs);
    rig.certificate.start();
    await rig.certificate.first();
    assertEquals([rig.said.lines, rig.kept], [[], 1]);
  }));

Deno.test("a certificate that has expired is replaced before anything is shown", () =>
  inMemoryFolder(async (folder) => {
    const nowMs = Date.now();
    const keys = await generateKeyPair();
    const files = new CertificateFiles(folder, "agent", () => nowMs);
    await files.keep(await issue(keys, nowMs - 2 * HOUR_MS), keys);
    await using rig = new Rig(folder, nowMs);
    rig.certificate.start();
    const asked = await rig.asked();
    assertStringIncludes(rig.certificate.problem!, "expired on");
    assertEquals(rig.kept, 0);
    asked.answer(await issue(asked.keys, nowMs));
    await rig.certificate.first();
  }));

Deno.test("damaged files cost a warning and a new certificate", async (t) => {
  const keys = await generateKeyPair();
  const [leaf] = await issue(keys, Date.now());
  const whole = leaf!.pem + await exportPrivateKey(keys.privateKey);
  const other = await exportPrivateKey((await generateKeyPair()).privateKey);
  const damaged = {
    "empty": "",
    "cut off": whole.slice(0, 300),
    "without a key": leaf!.pem,
    "with another key": leaf!.pem + other,
    "something else": "hello",
  };
  for (const [what, text] of Object.entries(damaged)) {
    await t.step(what, () =>
      inMemoryFolder(async (folder) => {
        await Deno.writeTextFile(`${folder}/agent-current.pem`, text);
        await using rig = new Rig(folder);
        rig.certificate.start();
        const asked = await rig.asked();
        assertStringIncludes(rig.said.lines[0]!, "agent-current.pem: ");
        asked.answer(await issue(asked.keys, rig.nowMs));
        await rig.certificate.first();
      }));
  }
});

Deno.test("a certificate for somebody else is used until there is one for us", () =>
  inMemoryFolder(async (folder) => {
    const nowMs = Date.now();
    const keys = await generateKeyPair();
    const files = new CertificateFiles(folder, "agent", () => nowMs);
    await files.keep(await issue(keys, nowMs, HOUR_MS, "somebody"), keys);
    await using rig = new Rig(folder, nowMs);
    rig.certificate.start();
    await rig.certificate.first();
    const asked = await rig.asked();
    assertStringIncludes(
      rig.said.lines[0]!,
      "is for O=openyurt:yurttunnel, CN=some",
    );
    asked.answer(await issue(asked.keys, nowMs));
    assertEquals(await rig.until(2), "obtained");
  }));

Deno.test("an answer to an old request may have expired, one to a new one has not", () =>
  inMemoryFolder(async (folder) => {
    const nowMs = Date.now();
    {
      await using rig = new Rig(folder, nowMs);
      rig.certificate.start();
      await rig.asked();
    }
    await using rig = new Rig(folder, nowMs);
    rig.certificate.start();
    const old = await rig.asked();
    old.answer(await issue(old.keys, nowMs - 2 * HOUR_MS));
    assertStringIncludes(await rig.until(1), "it expired on");
    rig.timers.advance(CSR_RETRY_CAP_MS);
    const fresh = await rig.asked();
    assert(await hashOf(fresh.keys) !== await hashOf(old.keys));
    // This machine's clock is an hour and more ahead of the cluster's.
    fresh.answer(await issue(fresh.keys, nowMs - 2 * HOUR_MS));
    await rig.certificate.first();
    assertEquals(rig.certificate.problem, undefined);
  }));

Deno.test("a file of Kubernetes' own components is read, and their old ones go", () =>
  inMemoryFolder(async (folder) => {
    const nowMs = Date.now();
    const keys = await generateKeyPair();
    const { privateKey } = keys;
    const jwk = await crypto.subtle.exportKey("jwk", privateKey);
    const { createPrivateKey } = await import("node:crypto");
    const sec1 = createPrivateKey({ key: jwk as never, format: "jwk" })
      .export({ type: "sec1", format: "pem" });
    const dated = `${folder}/agent-2026-01-01-00-00-00.pem`;
    const [leaf] = await issue(keys, nowMs);
    await Deno.writeTextFile(dated, leaf!.pem + sec1);
    await Deno.symlink(dated, `${folder}/agent-current.pem`);
    await Deno.writeTextFile(`${folder}/agent-2025-01-01-00-00-00.pem`, "");
    await Deno.writeTextFile(`${folder}/agent-other.pem`, "");
    await using rig = new Rig(folder, nowMs);
    rig.certificate.start();
    await rig.certificate.first();
    assertEquals(rig.said.lines, []);
    const { current } = rig.files;
    Credentials.load({ cert: current, key: current });
    await rig.files.keep([leaf!], keys);
    assertEquals((await names(folder)).filter((name) => /-\d/.test(name)), [
      "agent-2026-01-01-00-00-00.pem",
      await Deno.readLink(current),
    ]);
    assert((await names(folder)).includes("agent-other.pem"));
  }));
