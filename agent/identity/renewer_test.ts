import { assertEquals, assertRejects } from "@std/assert";
import { CertificateAuthority } from "../../platform/pki/authority.ts";
import {
  type CertificateFacts,
  certificateFacts,
  CLOCK_SKEW_MS,
} from "../../platform/pki/certificate.ts";
import { generateKeyPair } from "../../platform/pki/key_pair.ts";
import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  DOUBT_MS,
  REFUSED_RETRY_MS,
  RENEWAL_LOOK_MS,
  type RenewalMeans,
  Renewer,
} from "./renewer.ts";

const HOUR_MS = 3600_000;
const DAY_MS = 24 * HOUR_MS;
const LIFE_MS = 9 * DAY_MS;
/** Two thirds of that, and half of the spread. */
const DUE_MS = LIFE_MS * 0.7;
const BIRTH_MS = Date.UTC(2026, 0, 1);

const authorities = await Promise.all(
  ["one", "two"].map((name) =>
    CertificateAuthority.create({
      commonName: () => name,
      notAfter: new Date(BIRTH_MS + 4000 * DAY_MS),
    })
  ),
);
const [one, two] = authorities as [CertificateAuthority, CertificateAuthority];
const { publicKey } = await generateKeyPair();

/** Of each authority a real one: whose it is counts, and its dates. */
const templates = new Map<CertificateAuthority, CertificateFacts>();
for (const authority of [one, two]) {
  const pem = await authority.issue({
    publicKey,
    commonName: "node:n",
    usage: "client",
    notAfter: new Date(BIRTH_MS + LIFE_MS),
  });
  templates.set(authority, certificateFacts(pem));
}

function issue(of: CertificateAuthority, atMs: number): CertificateFacts {
  return {
    ...templates.get(of)!,
    notBeforeMs: atMs - CLOCK_SKEW_MS,
    notAfterMs: atMs + LIFE_MS,
  };
}

/** A renewer, a server, and two clocks of which one can be set. */
class World {
  readonly timers = new FakeTimers();
  readonly means: RenewalMeans[] = [];
  /** Which server was asked, where one was named. */
  readonly asked: (string | undefined)[] = [];
  readonly log: string[] = [];
  /** What the server says instead. */
  refusals: Error[] = [];
  issuer = one;
  /** Another process had asked before. */
  isOthers = false;
  /** Who is trusted after a renewal; the issuer when absent. */
  answered: CertificateFacts[] | undefined;
  /** What the server's clock says, less elapsed time. */
  readonly serverMs: number;
  wallMs: number;
  readonly renewer: Renewer;

  /** @param ageMs Of the certificate at the start. */
  constructor(ageMs = 0, wallErrorMs = 0) {
    this.serverMs = BIRTH_MS + ageMs - this.timers.now();
    this.wallMs = this.serverMs + wallErrorMs;
    this.renewer = new Renewer({
      timers: this.timers,
      now: () => this.wallMs + this.timers.now(),
      random: () => 0.5,
      certificate: issue(one, BIRTH_MS),
      authorities: [one.facts],
      renew: (means, at) => {
        this.asked.push(at?.host);
        return this.#renew(means);
      },
      log: {
        event: (_message, { by } = {}) => this.log.push(`renewed by ${by}`),
        warn: (message) => this.log.push(message.split(";", 1)[0]!),
      },
      node: "edge-7",
    });
  }

  #renew(means: RenewalMeans) {
    this.means.push(means);
    const refusal = this.refusals.shift();
    if (refusal !== undefined) return Promise.reject(refusal);
    const nowMs = this.serverMs + this.timers.now();
    const certificate = issue(this.issuer, nowMs);
    const authorities = this.answered ?? [this.issuer.facts];
    const { isOthers } = this;
    return Promise.resolve({ certificate, authorities, isOthers });
  }

  /** Lets time pass and what was begun come to its end. */
  async pass(durationMs: number): Promise<void> {
    for (let leftMs = durationMs; leftMs > 0;) {
      const stepMs = Math.min(leftMs, HOUR_MS);
      this.timers.advance(stepMs);
      leftMs -= stepMs;
      await settle();
    }
  }
}

/** What was begun has only promises to wait for. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

const away = () => new GrpcError(StatusCode.UNAVAILABLE, "away");
const revoked = () => new GrpcError(StatusCode.PERMISSION_DENIED, "revoked");

Deno.test("a certificate is renewed at two thirds of its life, again and again", async () => {
  const world = new World();
  world.renewer.start();
  await world.pass(DUE_MS - HOUR_MS);
  assertEquals(world.means, []);
  await world.pass(2 * HOUR_MS);
  assertEquals(world.means, ["certificate"]);
  await world.pass(DUE_MS - 2 * HOUR_MS);
  assertEquals(world.means.length, 1);
  await world.pass(3 * HOUR_MS);
  assertEquals(world.log, ["renewed by certificate", "renewed by certificate"]);
  world.renewer.stop();
  assertEquals(world.timers.pendingCount, 0);
});

Deno.test("what fails is tried again, and by the key when the certificate is not taken", async () => {
  const world = new World(DUE_MS);
  world.refusals = [away(), away(), away()];
  world.renewer.start();
  await settle();
  assertEquals(world.means, ["certificate", "proof"]);
  assertEquals(world.log, ["away"]);
  await world.pass(1_000);
  assertEquals(world.means.slice(2), ["certificate", "proof"]);
  assertEquals(world.log.at(-1), "renewed by proof");
  world.renewer.stop();
});

Deno.test("an expired certificate is renewed by the key, before it is shown", async () => {
  const world = new World(300 * DAY_MS);
  await world.renewer.ready();
  assertEquals(world.means, ["proof"]);
  await world.renewer.ready();
  assertEquals(world.means.length, 1);
});

Deno.test("a good certificate is shown at once", async () => {
  const world = new World();
  await world.renewer.ready();
  assertEquals(world.means, []);
});

Deno.test("a refusal is not asked for again at each attempt to link", async () => {
  const world = new World(300 * DAY_MS);
  world.refusals = [revoked()];
  for (let attempt = 0; attempt < 3; attempt++) {
    await assertRejects(() => world.renewer.ready(), GrpcError, "revoked");
  }
  assertEquals(world.means.length, 1);
  world.timers.advance(DOUBT_MS);
  await world.renewer.ready();
  assertEquals(world.means.length, 2);
});

Deno.test("who was refused by schedule waits for a person", async () => {
  const world = new World(DUE_MS);
  world.refusals = [revoked(), revoked()];
  world.renewer.start();
  await settle();
  await world.pass(REFUSED_RETRY_MS - RENEWAL_LOOK_MS);
  assertEquals(world.means.length, 2);
  await world.pass(2 * RENEWAL_LOOK_MS);
  assertEquals(world.log, ["revoked", "renewed by certificate"]);
  world.renewer.stop();
});

Deno.test("several who wait for one renewal share it", async () => {
  const world = new World(300 * DAY_MS);
  const { renewer } = world;
  renewer.start();
  await Promise.all([renewer.ready(), renewer.ready(), settle()]);
  assertEquals(world.means, ["proof"]);
  renewer.stop();
});

Deno.test("when another authority issues, the certificate is renewed soon", async () => {
  const world = new World();
  world.renewer.start();
  world.issuer = two;
  world.renewer.authoritiesChanged([one.facts, two.facts]);
  await world.pass(HOUR_MS);
  assertEquals(world.means, []);
  world.renewer.authoritiesChanged([two.facts, one.facts]);
  world.timers.advance(4_000);
  world.renewer.authoritiesChanged([two.facts, one.facts]);
  await settle();
  assertEquals(world.means, []);
  world.timers.advance(1_000);
  await settle();
  assertEquals(world.means, ["certificate"]);
  await world.pass(HOUR_MS);
  assertEquals(world.means.length, 1);
  world.renewer.stop();
});

Deno.test("an authority that changed while the old one answered is asked as well", async () => {
  const world = new World();
  world.renewer.start();
  world.answered = [two.facts, one.facts];
  world.renewer.replace();
  await settle();
  world.issuer = two;
  await world.pass(HOUR_MS);
  assertEquals(world.means.length, 2);
  world.renewer.stop();
});

Deno.test("a certificate whose file was damaged is replaced at once, but seldom", async () => {
  const world = new World();
  world.refusals = [away(), away()];
  world.renewer.start();
  assertEquals([world.renewer.replace(), world.renewer.replace()], [
    true,
    false,
  ]);
  await settle();
  await world.pass(RENEWAL_LOOK_MS);
  assertEquals(world.log, ["away", "renewed by certificate"]);
  assertEquals(world.renewer.replace(), true);
  world.renewer.authoritiesChanged([one.facts]);
  await world.pass(DOUBT_MS / 2);
  world.timers.advance(DOUBT_MS / 2);
  await settle();
  assertEquals(world.log.length, 3);
  world.renewer.stop();
});

Deno.test("a clock that goes forward is noticed within a minute", async () => {
  const world = new World();
  world.renewer.start();
  await world.pass(HOUR_MS);
  world.wallMs += DUE_MS;
  await world.pass(RENEWAL_LOOK_MS);
  assertEquals(world.means, ["certificate"]);
  // The new one is as old by the wrong clock, and not renewed for ever.
  await world.pass(DAY_MS);
  world.wallMs += 3_650 * DAY_MS;
  await world.pass(DAY_MS);
  assertEquals(world.means, ["certificate", "proof"]);
  await world.renewer.ready();
  assertEquals(world.means.length, 2);
  world.renewer.stop();
});

Deno.test("a clock that was in the future costs nothing when it comes back", async () => {
  const world = new World();
  world.renewer.start();
  world.refusals = Array.from({ length: 1_000 }, away);
  world.wallMs += 3_650 * DAY_MS;
  await world.pass(5 * RENEWAL_LOOK_MS);
  assertEquals(world.means[0], "proof");
  const tries = world.means.length;
  world.wallMs -= 3_650 * DAY_MS;
  await world.renewer.ready();
  await world.pass(HOUR_MS);
  assertEquals(world.means.length, tries);
  world.renewer.stop();
});

Deno.test("a clock that went back does not let a certificate run out", async () => {
  const world = new World(2 * DAY_MS, -30 * DAY_MS);
  world.renewer.start();
  await settle();
  // It begins in the future, so the clock says nothing: once is enough.
  assertEquals(world.means, ["certificate"]);
  await world.pass(DUE_MS - HOUR_MS);
  assertEquals(world.means.length, 1);
  await world.pass(2 * HOUR_MS);
  assertEquals(world.means.length, 2);
  world.renewer.stop();
});

Deno.test("a server that hangs up without a word makes the key speak, seldom", async () => {
  const world = new World();
  const { renewer } = world;
  renewer.doubt();
  await renewer.ready();
  assertEquals(world.means, ["proof"]);
  renewer.doubt();
  await renewer.ready();
  assertEquals(world.means.length, 1);
  world.timers.advance(DOUBT_MS);
  world.refusals = [away()];
  await renewer.ready();
  renewer.doubt();
  world.timers.advance(DOUBT_MS);
  world.refusals = [revoked()];
  await assertRejects(() => renewer.ready(), GrpcError, "revoked");
  assertEquals(world.means.length, 3);
});

Deno.test("servers whose clocks differ are each asked for what they accept", async () => {
  const { renewer, asked, timers } = new World();
  const [ahead, right] = ["ahead", "right"].map((host) => ({ host, port: 1 }));
  for (const refusing of [ahead, ahead, right, ahead, right]) {
    renewer.doubt(refusing);
    await renewer.ready();
  }
  assertEquals(asked, ["ahead", "right"]);
  timers.advance(DOUBT_MS);
  await renewer.ready();
  assertEquals(asked, ["ahead", "right", "right"]);
});

Deno.test("a certificate that another process has put in place is not renewed again", async () => {
  const world = new World(DUE_MS - HOUR_MS);
  world.renewer.start();
  world.renewer.adopt({
    certificate: {
      ...issue(one, BIRTH_MS + DUE_MS - HOUR_MS),
      x509: issue(two, 0).x509,
    },
    authorities: [two.facts],
  });
  world.timers.advance(2 * HOUR_MS);
  await settle();
  assertEquals(world.means, []);
  world.timers.advance(DUE_MS);
  await settle();
  assertEquals(world.means, ["certificate"]);
});

Deno.test("what another process was given instead of us is nothing to tell", async () => {
  const world = new World(DUE_MS);
  world.isOthers = true;
  world.renewer.start();
  await settle();
  assertEquals([world.means, world.log], [["certificate"], []]);
});

Deno.test("who runs for a moment renews at once what is due, and goes on if that fails", async () => {
  const world = new World(HOUR_MS);
  world.renewer.start();
  await world.renewer.renewDue();
  assertEquals(world.means, [], "nothing is due");
  world.issuer = two;
  world.answered = [two.facts, one.facts];
  world.renewer.authoritiesChanged([two.facts, one.facts]);
  world.refusals = [away(), away()];
  await world.renewer.renewDue();
  assertEquals(world.means, ["certificate", "proof"]);
  await world.renewer.renewDue();
  assertEquals(world.means.length, 2, "not again at once");
  await world.pass(HOUR_MS);
  assertEquals(world.log, ["renewed by certificate"]);
});
