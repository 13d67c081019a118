/**
 * Asks the API server whose a bearer token is: one TokenReview.
 *
 * @module
 */

import type { KubernetesClient } from "./client.ts";
import type { TokenReview } from "./objects.ts";
import { objectPathOf, TOKEN_REVIEWS } from "./paths.ts";

/** The claim with the node of a bound token's Pod (since 1.30). */
export const NODE_NAME = "authentication.kubernetes.io/node-name";
const POD_NAME = "authentication.kubernetes.io/pod-name";
const POD_UID = "authentication.kubernetes.io/pod-uid";

/** The result. */
export type ReviewedToken =
  | {
    readonly kind: "service-account";
    readonly namespace: string;
    readonly name: string;
    /** The node that the token is bound to, if the token names it. */
    readonly nodeName?: string | undefined;
    /** The Pod, likewise. */
    readonly podName?: string | undefined;
    readonly podUid?: string | undefined;
  }
  /** A valid token of a user that is not a ServiceAccount. */
  | { readonly kind: "other-user"; readonly username: string }
  /** It is not good; `why` is a part of a sentence. */
  | { readonly kind: "invalid"; readonly why: string };

/**
 * Has a token reviewed. The API server must repeat the audience: one that does
 * not know audiences leaves the field out, and would accept tokens for other
 * audiences.
 *
 * @throws {KubernetesError | NeighbourConfigError} When it cannot be asked.
 */
export async function reviewToken(
  client: Pick<KubernetesClient, "create">,
  token: string,
  audience: string,
  timeoutMs: number,
): Promise<ReviewedToken> {
  const { status = {} } = await client.create<TokenReview>(
    objectPathOf(TOKEN_REVIEWS),
    {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenReview",
      spec: { token, audiences: [audience] },
    },
    { timeoutMs, isRepeatable: true },
  );
  const { authenticated, audiences, user, error } = status;
  if (authenticated !== true) {
    return { kind: "invalid", why: error || "the API server does not know it" };
  }
  if (audiences?.includes(audience) !== true) {
    return {
      kind: "invalid",
      why: `it is not meant for audience "${audience}"`,
    };
  }
  const username = user?.username ?? "";
  const parts = username.split(":");
  const [system, kind, namespace = "", name = ""] = parts;
  const isServiceAccount = parts.length === 4 && system === "system" &&
    kind === "serviceaccount" && namespace !== "" && name !== "";
  if (!isServiceAccount) return { kind: "other-user", username };
  const nodeName = only(user?.extra?.[NODE_NAME]);
  const podName = only(user?.extra?.[POD_NAME]);
  const podUid = only(user?.extra?.[POD_UID]);
  return {
    kind: "service-account",
    namespace,
    name,
    nodeName,
    podName,
    podUid,
  };
}

/** Claims come as lists, of one. */
function only(values: readonly string[] | undefined): string | undefined {
  return values?.length === 1 && values[0] !== "" ? values[0] : undefined;
}
