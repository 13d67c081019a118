/**
 * The HTTP status of a dial that failed: what CONNECT is answered, and what
 * access logs say.
 *
 * Statuses follow Konnectivity's, with one difference: a missing agent is 503
 * (upstream: 500), since it is not the server that is broken.
 *
 * @module
 */

import { type DialError, lacksDescriptors } from "../proto/peer/dial_error.ts";
import { isRefusalByRule } from "./refusal.ts";

/** The status for a failed dial (Konnectivity classifies by the text, too). */
export function dialFailureStatus(error: DialError): number {
  const { reason, message } = error;
  switch (reason) {
    case "no-agent":
      return 503;
    case "timeout":
      return 504;
    case "refused":
      return 403;
    case "endpoint":
      // The packets carrier brings an agent's words and nothing else.
      if (isRefusalByRule(message)) return 403;
      if (/i\/o timeout|deadline exceeded|timeout/i.test(message)) return 504;
      return lacksDescriptors(error) ? 503 : 502;
    case "cancelled":
    case "link-lost":
    case "dial-closed":
      return 502;
  }
}
