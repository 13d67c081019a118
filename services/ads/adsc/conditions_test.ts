import { assertEquals, assertThrows } from "@std/assert";
import type { ResourceKind } from "../../../proto/xds/resource.ts";
import type { DecodedResource } from "../read_resource.ts";
import { ConditionError, parseCount, parseExpectation } from "./conditions.ts";
import type { SeenBy } from "./subscriber.ts";

const at = (address: string, portValue: number, healthStatus?: number) => ({
  endpoint: { address: { socketAddress: { address, portValue } } },
  ...healthStatus === undefined ? {} : { healthStatus },
});

/** Holds two clusters and one assignment, and misses one. */
const CLIENT: SeenBy = {
  held(kind) {
    const of = (messages: readonly DecodedResource[]) =>
      new Map(messages.map((content) => {
        const { message } = content;
        const name = "clusterName" in message
          ? message.clusterName!
          : (message as { name: string }).name;
        const rest = { version: "1", value: new Uint8Array(0), needs: [] };
        return [name, { name, content, ...rest }];
      }));
    const all: Readonly<Record<ResourceKind, readonly DecodedResource[]>> = {
      cluster: ["a", "b"]
        .map((name) => ({ kind: "cluster", message: { name } })),
      endpoints: [{
        kind: "endpoints",
        message: {
          clusterName: "a",
          endpoints: [{
            lbEndpoints: [at("10.0.0.2", 80), at("10.0.0.1", 80, 1)],
          }, { lbEndpoints: [at("::1", 81), at("10.0.0.3", 80, 2)] }],
        },
      }],
      listener: [],
      route: [],
      service: [],
    };
    return of(all[kind]);
  },
  absent: (kind) => new Set(kind === "endpoints" ? ["b"] : []),
  status: {
    cluster: {
      ...{ isWildcard: true, wanted: 0, held: 2, awaited: 0, absent: [] },
      ...{ version: "1", responses: 3, accepted: 2, refused: 1 },
    },
  },
};

Deno.test("numbers of things are compared", () => {
  const held: readonly string[] = [
    ...["clusters==2", "clusters = 2", "clusters>=2", "clusters<=2"],
    ...["clusters>1", "clusters<3", "clusters!=3", "assignments=1"],
    ...["endpoints=3", "absent=1", "responses=3", "refused=1", "routes=0"],
  ];
  for (const text of held) {
    assertEquals(parseCount(text).check(CLIENT), undefined, text);
  }
  const unmet = [["clusters>=3", "2 clusters"], ["listeners>0", "0 listeners"]];
  for (const [text, seen] of unmet) {
    assertEquals(parseCount(text!).check(CLIENT), seen);
  }
});

Deno.test("what is there, and what it says, is compared", () => {
  const held: readonly string[] = [
    ...["cluster a", "no cluster c", "endpoints a", "no listener a"],
    ...["endpoints a=10.0.0.1:80,[::1]:81,10.0.0.2:80"],
    ...["a=10.0.0.1:80,10.0.0.2:80,[::1]:81"],
  ];
  for (const text of held) {
    assertEquals(parseExpectation(text).check(CLIENT), undefined, text);
  }
  const unmet = [
    ["cluster c", "no cluster c"],
    ["no cluster a", "a cluster a"],
    ["endpoints b", "the server has no such endpoints"],
    ["endpoints b=", "the server has no such endpoints"],
    ["endpoints c=1.1.1.1:1", "no endpoints c"],
    ["endpoints a=10.0.0.1:80", "a=10.0.0.1:80,10.0.0.2:80,[::1]:81"],
  ];
  for (const [text, seen] of unmet) {
    assertEquals(parseExpectation(text!).check(CLIENT), seen);
  }
});

Deno.test("what is no condition is refused", () => {
  for (const text of ["", "clusters", "clusters>=", "dogs>1", "clusters>=-1"]) {
    assertThrows(() => parseCount(text), ConditionError, "clusters>=3");
  }
  const wrongs = ["", "cluster", "dog a", "no", "cluster a b", "cluster a=b"];
  for (const text of [...wrongs, "no endpoints a=b:1"]) {
    assertThrows(() => parseExpectation(text), ConditionError);
  }
});
