import type { ResponseBody } from "./discovery.ts";
import { encodeBody, encodeHead } from "./response_encoder.ts";
import { RequestDecoder } from "./request_decoder.ts";
import { type Resource, TYPE_URLS } from "./resource.ts";
import { encodeAny } from "./any.ts";
import {
  ClusterLoadAssignment,
  DiscoveryRequestMessage,
} from "./xds_messages.ts";

/** As many as the benchmark of whole servers has. */
const CLUSTERS = 200;

const NAMES = Array.from(
  { length: CLUSTERS },
  (_, index) => `default/service-${String(index).padStart(4, "0")}:80`,
);

const ASSIGNMENTS = NAMES.map((clusterName) => ({
  clusterName,
  endpoints: [{
    locality: {},
    loadBalancingWeight: { value: 1 },
    lbEndpoints: [1, 2, 3].map((last) => ({
      endpoint: {
        address: {
          socketAddress: { address: `10.0.0.${last}`, portValue: 8080 },
        },
      },
      healthStatus: 1,
    })),
  }],
}));

const RESOURCES: readonly Resource[] = ASSIGNMENTS.map((message) => ({
  kind: "endpoints",
  name: message.clusterName,
  version: "0123456789abcdef0123456789abcdef",
  any: encodeAny(ClusterLoadAssignment, message),
}));

const BODY: ResponseBody = {
  typeUrl: TYPE_URLS.endpoints,
  resources: RESOURCES,
  removed: [],
  version: "0123456789abcdef0123456789abcdef",
};

{
  const decoder = new RequestDecoder();
  const ack = DiscoveryRequestMessage.encode({
    versionInfo: "0123456789abcdef0123456789abcdef",
    resourceNames: NAMES,
    typeUrl: TYPE_URLS.endpoints,
    responseNonce: "1-17",
  });
  // The list is in use, as by a stream.
  const known = decoder.decode("sotw", ack);
  Deno.bench(`decode an ACK of ${CLUSTERS} known names`, () => {
    decoder.decode("sotw", ack);
  });
  Deno.bench(`decode an ACK of ${CLUSTERS} new names`, () => {
    new RequestDecoder().decode("sotw", ack);
  });
  Deno.bench("decode the same by protobufjs", () => {
    DiscoveryRequestMessage.decode(ack);
  });
  Deno.bench("decode an ACK without names", () => {
    decoder.decode("sotw", SHORT_ACK);
  });
  globalThis.addEventListener("unload", () => known);
}

const SHORT_ACK = DiscoveryRequestMessage.encode({
  versionInfo: "0123456789abcdef0123456789abcdef",
  typeUrl: TYPE_URLS.cluster,
  responseNonce: "1-18",
});

for (const mode of ["sotw", "delta"] as const) {
  Deno.bench(
    `${mode}: encode ${CLUSTERS} assignments for one more client`,
    () => {
      encodeHead("sotw", "1-17", "server");
      encodeBody(mode, BODY);
    },
  );
  Deno.bench(
    `${mode}: encode ${CLUSTERS} assignments for the first client`,
    () => {
      encodeBody(mode, { ...BODY, resources: [...RESOURCES] });
    },
  );
}

Deno.bench("encode an assignment of three endpoints", () => {
  encodeAny(ClusterLoadAssignment, ASSIGNMENTS[0]!);
});
