import tls from "node:tls";
import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import type { AddressInfo } from "node:net";
import { TLS } from "../../net/libc/choices.ts";
import { oddCertificates } from "../../tests/support/certificates/odd_certificates.ts";
import { EnrolmentError, PinError } from "./enrolment_error.ts";
import { enrol, pinnedAuthority } from "./identity_calls.ts";
import { TlsHandshakeError } from "../../net/tls/trust/tls_errors.ts";
import { ConnectError } from "../../net/dial/server_connect.ts";
import { NoServerError } from "../../net/dial/server_addresses.ts";
import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import type { EnrolmentOutcome } from "../../proto/identity/enrolment.ts";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";

/** As far as each engine shows such certificates to anybody. */
const SHOWN = {
  platform: [
    "an empty subject",
    "an empty subject and issuer",
    "a T61String",
    "broken UTF-8",
    "dates that are none",
    "control characters",
  ],
  openssl: [
    "an empty subject",
    "an empty subject and issuer",
    "a T61String",
    "dates that are none",
    "control characters",
  ],
} as const;

for (const choice of TLS.words) {
  Deno.test(`a server whose certificate is odd is told about in a sentence, ${choice}`, async () => {
    for (const { name, cert, key } of oddCertificates()) {
      if (!(SHOWN[choice] as readonly string[]).includes(name)) continue;
      const server = tls.createServer({ cert, key });
      server.on("tlsClientError", () => {});
      await new Promise<void>((resolve) =>
        server.listen(0, "127.0.0.1", () => resolve())
      );
      const { port } = server.address() as AddressInfo;
      const error = await assertRejects(
        () =>
          pinnedAuthority({
            host: "127.0.0.1",
            port,
            tls: choice,
            alpn: ["h2"],
            proxyEnv: {},
            timeoutMs: 10_000,
          }, "no such pin"),
        PinError,
        undefined,
        name,
      );
      assertMatch(
        error.message,
        /^Cannot join at 127\.0\.0\.1:\d+: the server there \([^\n]+\) is not the/,
      );
      await new Promise((resolve) => server.close(resolve));
    }
  });
}

const ENROLMENT = {
  node: "n",
  certificate: new Uint8Array(0),
  authorities: new Uint8Array(0),
  identifiers: "",
};

/** Asks and is given these answers, one after the other. */
async function asked(
  answers: readonly (EnrolmentOutcome | Error)[],
  isPatient = true,
) {
  const timers = new FakeTimers();
  const waits: number[] = [];
  const left = [...answers];
  const enrolment = await enrol({
    ask: () => {
      const answer = left.shift()!;
      return answer instanceof Error
        ? Promise.reject(answer)
        : Promise.resolve(answer);
    },
    timers,
    random: () => 1,
    isPatient,
    waiting: (_reason, retryMs) => {
      waits.push(Math.round(retryMs));
      void settled().then(() => timers.advance(retryMs));
    },
  });
  return { enrolment, waits };
}

const away = () => new NoServerError([new ConnectError("away")]);
const pending = (retryAfterMs: number) => ({
  pending: { reason: "wait", retryAfterMs },
});

Deno.test("a server that is away is asked again, ever more seldom", async () => {
  const { enrolment, waits } = await asked([
    away(),
    new GrpcError(StatusCode.UNAVAILABLE, "restarting"),
    new GrpcError(StatusCode.RESOURCE_EXHAUSTED, "too many"),
    { enrolment: ENROLMENT },
  ]);
  assertEquals(enrolment.node, "n");
  assertEquals(waits, [100, 150, 225]);
});

Deno.test("who has to wait for approval asks when it was told to, within reason", async () => {
  const { waits } = await asked([
    pending(5_000),
    pending(0),
    pending(2 ** 31),
    { enrolment: ENROLMENT },
  ]);
  assertEquals(waits, [5_000, 1_000, 60_000]);
});

Deno.test("a refusal that stays ends it", async () => {
  for (
    const error of [
      new GrpcError(StatusCode.UNAUTHENTICATED, "used up"),
      new GrpcError(StatusCode.PERMISSION_DENIED, "revoked"),
      new GrpcError(StatusCode.NOT_FOUND, "forgotten"),
      new GrpcError(StatusCode.UNIMPLEMENTED, "no identity"),
      new NoServerError([new PinError("not the one"), new PinError("nor it")]),
    ]
  ) await assertRejects(() => asked([error]), EnrolmentError);
});

Deno.test("another's server beside one that is away is no refusal", async () => {
  const mixed = new NoServerError([new PinError("x"), new ConnectError("y")]);
  const { waits } = await asked([mixed, { enrolment: ENROLMENT }]);
  assertEquals(waits.length, 1);
});

Deno.test("a person's join that is cut off is tried again, and told of at the third time", async () => {
  const closed = new TlsHandshakeError("closed", "it closed");
  const cutOff = [
    new GrpcError(StatusCode.UNAVAILABLE, "the peer closed the connection"),
    new NoServerError([new ConnectError("away"), closed]),
  ];
  const { waits } = await asked([...cutOff, { enrolment: ENROLMENT }], false);
  assertEquals(waits, [1_000, 1_000]);
  const last = new GrpcError(StatusCode.UNAVAILABLE, "once more");
  const { tunnelCode } = await assertRejects(
    () => asked([...cutOff, last, { enrolment: ENROLMENT }], false),
    EnrolmentError,
    "once more",
  );
  assertEquals(tunnelCode, "TUN403");
});

Deno.test("a person is told at once that nobody answers", async () => {
  await assertRejects(() => asked([away()], false), EnrolmentError, "away");
  const { waits } = await asked(
    [pending(5_000), { enrolment: ENROLMENT }],
    false,
  );
  assertEquals(waits, [5_000]);
});
