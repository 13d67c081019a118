/**
 * `POST /v1/policy/test`: the rule for a dial that is not made.
 *
 * @module
 */

import {
  AdminFailure,
  type AdminRoute,
  isAskedText,
  postRoute,
} from "../../net/admin/admin_api.ts";
import { targetNamed } from "../../policy/target_address.ts";
import { ADMIN_ACTIONS, ADMIN_API } from "../../proto/admin/api.ts";
import type {
  PolicyAnswer,
  PolicyQuestion,
} from "../../proto/admin/path_check.ts";
import { quoted } from "../../proto/peer/quoted.ts";
import type { Authorization } from "../../server/policy/authorization.ts";
import { callerNamed } from "../../server/policy/rule_report.ts";
import type { Registry } from "../../server/routing/registry.ts";

/** Most that are taken. */
const GROUPS_MAX = 100;

/** What the route needs of the server. */
interface PolicyFacts {
  readonly authorization: Pick<Authorization, "report">;
  readonly registry: Pick<Registry, "pick">;
}

/** See the module description. */
export function policyRoute(
  { authorization, registry }: PolicyFacts,
): AdminRoute {
  return postRoute(
    `${ADMIN_API}/${ADMIN_ACTIONS.policyTest}`,
    ({ body }): PolicyAnswer => {
      const { as, groups, node, target } = policyQuestion(body);
      const wanted = targetNamed(target);
      const picked = registry.pick(wanted, node);
      const agent = picked.kind === "noAgent" ? undefined : picked.link.peer;
      const answer = authorization.report(
        { caller: callerNamed(as, groups), target: wanted, node },
        agent,
      );
      if (node === undefined || agent !== undefined) return answer;
      return {
        ...answer,
        message:
          `${answer.message}; no node ${quoted(node)} is linked to this ` +
          "server, so it would not be dialed now",
      };
    },
    "view",
  );
}

/** @throws {AdminFailure} */
function policyQuestion(body: unknown): PolicyQuestion {
  const { as, groups, node, target } = Object(body);
  const isList = groups === undefined ||
    Array.isArray(groups) && groups.length <= GROUPS_MAX &&
      groups.every(isAskedText);
  if (
    isAskedText(as) && isAskedText(target) && isList &&
    (node === undefined || isAskedText(node))
  ) {
    return { as, target, groups, node };
  }
  throw new AdminFailure(400, {
    code: "TUN123",
    message: "Cannot test the policy: wanted { as: NAME, target: HOST:PORT, " +
      "node?, groups? }",
  });
}
