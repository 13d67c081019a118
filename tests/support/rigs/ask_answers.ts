/**
 * Answers of the admin API for golden texts: a server with something of
 * everything, an agent with a link that fails, a proxy with an ill endpoint.
 *
 * @module
 */

import type {
  ConduitInfo,
  ConduitsAnswer,
  NodeDetail,
  NodesAnswer,
} from "../../../proto/admin/node_answer.ts";
import type { StatusAnswer } from "../../../proto/admin/status_answer.ts";

export const NOW = "2026-11-22T10:03:12.345Z";

const STILL = { toTargetRate: 0, fromTargetRate: 0 };

const CONDUITS: readonly ConduitInfo[] = [
  {
    id: "00c0ffee00c0ffee",
    state: "open",
    caller: "alice",
    from: "10.1.2.3:50412",
    node: "edge-7",
    service: "default/db",
    target: "tcp 10.0.0.7:5432",
    startedAt: "2026-11-22T09:59:59.000Z",
    ageMs: 193_345,
    dialMs: 412,
    toTargetBytes: 12_400,
    fromTargetBytes: 9_234_567,
    toTargetRate: 120,
    fromTargetRate: 1_234_567,
    roundTripMs: 812,
    windowBytes: 65_536,
    queuedBytes: 1_048_576,
    waitsFor: "caller",
    idleMs: 2_100,
  },
  {
    id: "1111111111111111",
    state: "dialing",
    caller: "node:edge-8",
    node: "節点-9",
    target: "tcp web.internal:443",
    startedAt: "2026-11-22T10:03:10.000Z",
    ageMs: 2_345,
    ...{ toTargetBytes: 0, fromTargetBytes: 0, ...STILL },
    idleMs: 2_345,
  },
  {
    id: "2222222222222222",
    state: "open",
    caller: "eve\x1b[2J\u202e",
    node: "edge-1",
    target: "udp 10.0.0.9:53",
    startedAt: "2026-11-19T10:03:12.000Z",
    ageMs: 259_200_345,
    dialMs: 1,
    toTargetBytes: 40,
    fromTargetBytes: 400,
    ...STILL,
    waitsFor: "nothing",
    idleMs: 60_000,
  },
];

export const CONDUITS_ANSWER: ConduitsAnswer = {
  conduits: CONDUITS,
  total: 10_003,
};

export const SERVER_STATUS: StatusAnswer = {
  program: {
    program: "server",
    id: "hub-1",
    version: "0.1.0",
    pid: 4711,
    startedAt: "2026-11-19T06:00:00Z",
    now: NOW,
    isReady: true,
    isDraining: false,
    addresses: {
      agents: "0.0.0.0:8091",
      frontend: "unix:/var/lib/tunnel/server/frontend.sock",
      admin: "127.0.0.1:8095",
    },
  },
  warnings: [
    {
      severity: "error",
      code: "TUN203",
      message:
        "The frontend's certificate expires in 2d3h and no program renews " +
        "it; replace /etc/tunnel/frontend.crt and send SIGHUP",
    },
    {
      severity: "warning",
      code: "TUN313",
      message:
        "Two machines use the identity of edge-7; join one of them again",
      since: "2026-11-22T10:00:00Z",
      node: "edge-7",
    },
    {
      severity: "notice",
      message: 'A node that calls itself "\x1b]0;pwned\x07" was refused',
    },
  ],
  traffic: {
    conduits: 10_003,
    pendingDials: 1,
    toTargetBytes: 4e12,
    fromTargetBytes: 9e12,
    toTargetRate: 3_400_000,
    fromTargetRate: 12_345_678,
    dialRate: 412,
    failedDials: 17,
    dialP50Ms: 1.2,
    dialP99Ms: 9.13,
  },
  expiries: [
    {
      what: "frontend certificate",
      at: "2026-11-24T13:03:12Z",
      renewal: "by hand",
    },
    {
      what: "certificate of node edge-7",
      at: "2026-11-26T10:00:00Z",
      renewal: "by itself",
    },
  ],
  nodes: {
    online: 4_812,
    offline: 23,
    pending: 1,
    revoked: 2,
    links: 9_624,
    lastGone: [
      {
        name: "edge-9",
        since: "2026-11-22T09:51:08Z",
        reason: "the link was silent for 30 s",
      },
      { name: "節点-12", since: "2026-11-01T00:00:00Z" },
    ],
    slowest: [
      {
        name: "edge-7",
        roundTripMs: 812,
        why: "a round trip takes 812 ms, 40 times the least one seen; 1.0 MB " +
          "wait in its link",
        conduits: 12,
        callers: ["alice", "node:edge-8"],
      },
    ],
  },
  servers: [
    { id: "hub-2", address: "10.0.0.2:8091", agents: 4_810 },
    { id: "hub-3", address: "10.0.0.3:8091", problem: "connection refused" },
  ],
  sources: [
    { name: "file services.yaml", isSynced: true },
    { name: "etcd", isSynced: false, problem: "etcd: connection refused" },
  ],
  discovery: { clients: 50, inSync: 49, refused: 1 },
  top: CONDUITS,
};

export const AGENT_STATUS: StatusAnswer = {
  program: {
    program: "agent",
    id: "edge-7",
    version: "0.1.0",
    pid: 815,
    startedAt: "2026-11-22T10:00:00Z",
    now: NOW,
    isReady: true,
    isDraining: false,
    addresses: { health: "0.0.0.0:8093", admin: "127.0.0.1:8094" },
  },
  warnings: [],
  traffic: {
    ...SERVER_STATUS.traffic,
    conduits: 2,
    pendingDials: 0,
    dialRate: 0.5,
    failedDials: 0,
  },
  expiries: [],
  links: [
    {
      id: "1",
      peer: "hub-1",
      carrier: "streams",
      address: "10.0.0.1:8091",
      since: "2026-11-22T10:00:02Z",
      software: "tunnel/0.1.0",
      state: "linked",
      roundTripMs: 23,
      conduits: 2,
      bulkConduits: 0,
    },
    {
      id: "tunnel.example:8091",
      peer: "",
      carrier: "streams",
      address: "tunnel.example:8091",
      since: "2026-11-22T10:00:00Z",
      software: "",
      state: "waiting",
      conduits: 0,
      bulkConduits: 0,
      problem: "connection refused",
      nextAttemptMs: 1_500,
      failures: 12,
    },
  ],
  announced: [{ name: "default/db" }, {
    name: "default/web",
    problem: "another node has this name",
  }],
};

export const PROXY_STATUS: StatusAnswer = {
  program: { ...AGENT_STATUS.program, program: "proxy", isReady: false },
  warnings: [],
  traffic: { ...SERVER_STATUS.traffic, conduits: 0, pendingDials: 0 },
  expiries: [],
  services: {
    services: 3,
    ports: 4,
    endpoints: 9,
    endpointsInUse: 7,
    problems: [
      {
        service: "default/web",
        address: "10.0.0.4:80",
        problem: "its health check failed: connection refused",
      },
      { service: "default/dns", problem: "port 53 is in use" },
    ],
  },
  follows: {
    state: "waiting",
    problem: "no server answers at tunnel.example:8091",
    recalledFrom: "2026-11-22T09:00:00Z",
  },
};

/** What a node has that is not here. */
const UNLINKED = {
  ...{ links: 0, conduits: 0, servers: [] },
  ...STILL,
};

export const NODES: NodesAnswer = {
  total: 4,
  nodes: [
    {
      name: "edge-1",
      state: "online",
      since: "2026-11-19T06:00:10Z",
      isJoined: true,
      version: "0.1.0",
      address: "203.0.113.9:40112",
      links: 2,
      conduits: 1_204,
      toTargetRate: 12_000,
      fromTargetRate: 3_400_000,
      roundTripMs: 23.4,
      servers: ["hub-1", "hub-2"],
      certificateUntil: "2026-11-26T10:00:00Z",
    },
    {
      name: "edge-9",
      state: "offline",
      since: "2026-11-22T09:51:08Z",
      reason: "the link was silent for 30 s",
      isJoined: true,
      ...UNLINKED,
    },
    {
      name: "evil\x1b[31m\u202ename",
      state: "pending",
      isJoined: false,
      ...UNLINKED,
    },
    {
      name: "節点-with-a-name-that-is-longer-than-any-column",
      state: "revoked",
      since: "2026-11-21T00:00:00Z",
      reason: "stolen",
      isJoined: true,
      ...UNLINKED,
    },
  ],
};

export const NODE: NodeDetail = {
  ...NODES.nodes[0]!,
  name: "edge-7",
  joinedAt: "2026-10-01T12:00:00Z",
  joinedFrom: "203.0.113.9",
  grants: ["host=edge-7"],
  identifiers: ["host=edge-7", "ipv4=10.0.0.7"],
  linkDetails: [
    {
      id: "9",
      peer: "edge-7",
      carrier: "streams",
      address: "203.0.113.9:40112",
      since: "2026-11-19T06:00:10Z",
      software: "tunnel/0.1.0",
      state: "still",
      roundTripMs: 812,
      silentMs: 4_000,
      conduits: 2,
      bulkConduits: 1,
      toTargetRate: 120,
      fromTargetRate: 1_234_567,
      problem: "nothing came for 4 s",
    },
  ],
  services: [{ name: "default/db" }],
  warnings: [SERVER_STATUS.warnings[1]!],
  conduitDetails: CONDUITS.slice(0, 1),
  events: [
    {
      at: "2026-11-22T10:00:00Z",
      kind: "duplicate",
      code: "TUN313",
      message: "two machines use its identity",
      times: 3,
    },
    {
      at: "2026-11-19T06:00:10Z",
      kind: "linked",
      message: "from 203.0.113.9:40112",
    },
  ],
};
