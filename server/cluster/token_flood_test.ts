/** Unauthenticated peers with made-up tokens beside an agent with a good one. */

import { assertEquals, assertStringIncludes } from "@std/assert";
import { reviewToken } from "../../neighbours/kubernetes/token_review.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { StatusCode } from "../../proto/grpc/status.ts";
import { NO_IDENTIFIERS } from "../../proto/peer/identifiers.ts";
import type { LinkRefusal } from "../../proto/link/link.ts";
import {
  FakeApiServer,
  plainClient,
} from "../../tests/support/peers/fake_apiserver.ts";
import { tokenSaying } from "../../tests/support/peers/service_account_tokens.ts";
import { ANONYMOUS } from "../../proto/peer/peer_identity.ts";
import { authorize } from "../links/authorizer.ts";
import { NodeAddresses, PodNodes } from "./cluster_nodes.ts";
import { tokenAuthenticator } from "./token_authenticator.ts";
import { TokenReviews } from "./token_reviews.ts";

const AUDIENCE = "tunnel";
const USER = "system:serviceaccount:kube-system:agent";
const GOOD = tokenSaying({ sub: USER, aud: [AUDIENCE] }, "good");

/** A server's authenticator, with an API server on loopback. */
class Rig implements AsyncDisposable {
  readonly api = FakeApiServer.start();
  readonly #client = plainClient(this.api.url, systemTimers, {
    random: Math.random,
    rate: { perSecond: 10_000, burst: 10_000 },
  });
  readonly #authorizer = tokenAuthenticator({
    wanted: {
      namespace: "kube-system",
      serviceAccount: "agent",
      audience: AUDIENCE,
    },
    reviews: new TokenReviews(
      (token) => reviewToken(this.#client, token, AUDIENCE, 7_000),
      systemTimers,
    ),
    addresses: new NodeAddresses(this.#client, systemTimers),
    pods: new PodNodes(this.#client, systemTimers),
    binding: "warn",
    wallClock: Date.now,
    observer: { reviewed() {}, mismatched() {}, warn() {} },
  });

  async show(token: string, from: string): Promise<LinkRefusal | undefined> {
    return await authorize([this.#authorizer], {
      token,
      peer: {
        agentId: "agent",
        identifiers: NO_IDENTIFIERS,
        identity: ANONYMOUS,
        remoteAddress: `${from}:1`,
        carrier: "packets",
        software: "",
      },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client[Symbol.dispose]();
    await this.api[Symbol.asyncDispose]();
  }
}

Deno.test("thousands of made-up tokens that nobody answers about keep no agent out", async () => {
  await using rig = new Rig();
  const over = Promise.withResolvers<void>();
  rig.api.onTokenReview = async ({ token }) => {
    if (token !== GOOD) {
      await over.promise;
      return { authenticated: false };
    }
    return {
      authenticated: true,
      audiences: [AUDIENCE],
      user: { username: USER },
    };
  };
  const attackers = Array.from({ length: 3_000 }, (_, index) =>
    rig.show(
      tokenSaying({ sub: USER, aud: [AUDIENCE] }, `bad ${index}`),
      `203.0.113.${index % 3}`,
    ));
  assertEquals(await rig.show(GOOD, "10.0.0.7"), undefined);
  over.resolve();
  const codes = new Set((await Promise.all(attackers)).map((one) => one?.code));
  assertEquals(
    codes,
    new Set([StatusCode.UNAVAILABLE, StatusCode.UNAUTHENTICATED]),
  );
});

Deno.test("the API server is not asked about what is no token for this server", async () => {
  await using rig = new Rig();
  for (const token of ["t", tokenSaying({ sub: USER, aud: ["vault"] })]) {
    const refusal = await rig.show(token, "203.0.113.1");
    assertEquals(refusal?.code, StatusCode.UNAUTHENTICATED);
  }
  const sub = "system:serviceaccount:default:default";
  const other = await rig.show(tokenSaying({ sub }), "203.0.113.1");
  assertEquals(other?.code, StatusCode.PERMISSION_DENIED);
  assertStringIncludes(
    other!.message,
    "its token is of ServiceAccount default/default, wanted one of",
  );
  assertEquals(rig.api.log, []);
});
