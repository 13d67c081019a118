/**
 * Real programs through `tunnel proxy` while the endpoints come and go by a file
 * that is rewritten several times a second: none of them may notice.
 *
 * Usage: `deno task lab proxy [REGEX]`; REGEX picks cases by their sentence.
 * Ends with `N passed, N failed, N skipped`; nothing is ever skipped.
 *
 * @module
 */

import { runCases } from "./case_runner.ts";
import { PROXY_AGENT_CASES } from "./proxy_agents.ts";
import { PROXY_DNS_CASES } from "./proxy_dns.ts";
import { PROXY_TCP_CASES } from "./proxy_tcp.ts";
import { PROXY_UDP_CASES } from "./proxy_udp.ts";

if (import.meta.main) {
  const code = await runCases({
    cases: {
      ...PROXY_TCP_CASES,
      ...PROXY_UDP_CASES,
      ...PROXY_DNS_CASES,
      ...PROXY_AGENT_CASES,
    },
    start: (workspace) => Promise.resolve(workspace),
    timeoutMs: 120_000,
  });
  Deno.exit(code);
}
