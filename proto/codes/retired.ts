/**
 * Codes of older versions: their names, and the codes that say the same now. Old
 * logs stay explainable, and peers of an older version understood. None of them
 * may come back with another meaning.
 *
 * @module
 */

/** By the code that replaces it; a test checks that the table has that code. */
const BY_SUCCESSOR: Readonly<Record<string, string>> = {
  TUN101:
    "TUN102 unknown-flag, TUN103 value-missing, TUN104 flags-contradict, " +
    "TUN105 flag-lacks-another, TUN106 given-twice, TUN107 not-built, " +
    "TUN108 unknown-command, TUN109 unexpected-word, TUN110 argument-missing, " +
    "TUN113 unknown-variable, TUN120 unknown-code, TUN216 tls-option, " +
    "TUN514 target-unreadable, TUN611 rule-wrong",
  TUN114: "TUN111 config-unreadable",
  TUN115: "TUN713 answers-from-anywhere",
  TUN119: "TUN118 interrupted, TUN520 caller-gone, TUN718 expectation-failed",
  TUN121: "TUN812 server-not-here",
  TUN122: "TUN331 identity-forbidden",
  TUN123: "TUN328 no-such-token, TUN716 service-unknown, TUN717 client-unknown",
  TUN124:
    "TUN112 config-wrong, TUN116 config-not-reloaded, TUN605 policy-wrong, " +
    "TUN702 entry-unusable, TUN704 catalog-file-wrong",
  TUN201: "TUN211 not-yet-valid",
  TUN202: "TUN315 renewal-failed",
  TUN203: "TUN204 key-mismatch, TUN213 wrong-usage, TUN214 certificate-odd",
  TUN205: "TUN306 pin-mismatch",
  TUN206: "TUN215 certificate-missing-at-peer",
  TUN208:
    "TUN209 handshake-unfinished, TUN420 wrong-port, TUN424 handshake-cut",
  TUN210: "TUN410 datagrams-cut, TUN411 announcement-unheard",
  TUN302:
    "TUN301 token-unreadable, TUN303 token-expired, TUN304 token-used-up, " +
    "TUN305 token-of-other-node",
  TUN309: "TUN308 joined-already, TUN332 join-unfinished",
  TUN313: "TUN406 server-id-shared",
  TUN320: "TUN321 identifiers-not-granted, TUN324 csr-denied, " +
    "TUN329 enrolment-refused, TUN404 link-refused",
  TUN333: "TUN212 kubelets-unverified, TUN319 anonymous-agents, " +
    "TUN322 agent-impostor, TUN714 proxy-exposed, TUN803 keys-readable",
  TUN401: "TUN412 http-proxy, TUN413 server-name-unresolved, " +
    "TUN415 frontend-unreachable, TUN418 server-filtered, " +
    "TUN419 server-unroutable, TUN426 loopback-only",
  TUN403: "TUN405 link-declined, TUN407 server-linked-again, " +
    "TUN416 server-draining, TUN510 dial-link-lost, TUN511 dial-closed, " +
    "TUN516 conduit-lost, TUN609 audit-written-again, TUN910 worker-back",
  TUN409: "TUN512 dial-limit, TUN715 relay-limit",
  TUN417: "TUN408 peer-breaks-rules",
  TUN421: "TUN920 loop-busy",
  TUN425: "TUN423 handshake-swallowed",
  TUN501: "TUN519 forwarding-refused",
  TUN506: "TUN504 target-unreachable, TUN522 kubelet-failed",
  TUN509: "TUN523 ended-by-operator",
  TUN513: "TUN414 accept-failed, TUN915 few-descriptors",
  TUN521: "TUN518 no-virtual-address",
  TUN601: "TUN602 server-rule-missing, TUN610 announcement-refused, " +
    "TUN613 dial-forbidden",
  TUN603: "TUN604 agent-rule-missing",
  TUN701: "TUN703 source-fell-behind, TUN709 discovery-not-ready, " +
    "TUN711 discovery-unreachable",
  TUN708: "TUN705 unserved-resource, TUN706 resource-rejected, " +
    "TUN707 discovery-lines-omitted",
  TUN801: "TUN804 state-not-ours, TUN813 state-copy, TUN814 state-key",
  TUN802: "TUN323 csr-undecided, TUN326 token-unreviewed, " +
    "TUN719 registration-failed, TUN805 peers-unknown, " +
    "TUN806 lease-unpublished, TUN808 service-discovery, " +
    "TUN809 kubernetes-failed, TUN810 etcd-failed",
  TUN904:
    "TUN712 service-port-unopened, TUN901 port-in-use, TUN902 port-forbidden, " +
    "TUN903 address-not-here",
  TUN905: "TUN317 key-unwritable, TUN318 authorities-not-taken, " +
    "TUN330 duplicate-unkept, TUN606 audit-unwritable, " +
    "TUN607 audit-incomplete, TUN608 audit-unrotated, " +
    "TUN710 membership-unsaved, TUN807 debug-token, TUN914 lines-missing, " +
    "TUN918 disk-full, TUN919 disk-read-only",
  TUN906: "TUN316 identity-repaired, TUN325 csr-renewed",
  TUN907: "TUN517 internal-error",
  TUN908: "TUN909 worker-silent, TUN911 parent-ended",
  TUN913: "TUN811 server-running, TUN912 no-takeover, TUN917 process-unusable",
};

/** Code to its name and its successor. */
export const RETIRED: Readonly<Record<string, readonly [string, string]>> =
  Object.fromEntries(
    Object.entries(BY_SUCCESSOR).flatMap(([successor, older]) =>
      older.split(", ").map((one) => {
        const [code = "", slug = ""] = one.split(" ");
        return [code, [slug, successor] as const] as const;
      })
    ).sort(([one], [other]) => one < other ? -1 : 1),
  );
