import { assertEquals, assertStrictEquals } from "@std/assert";
import { forAll, type Prng } from "../../tests/support/memory/prng.ts";
import { decodeResponse } from "./client_codec.ts";
import type { DiscoveryMode, ResponseBody } from "./discovery.ts";
import { encodeBody, encodeHead } from "./response_encoder.ts";
import { type Resource, TYPE_URLS } from "./resource.ts";
import { encodeAny } from "./any.ts";
import {
  Any,
  Cluster,
  DeltaDiscoveryResponseMessage,
  DiscoveryResponseMessage,
} from "./xds_messages.ts";

function resource(name: string, version = "v"): Resource {
  return {
    ...{ kind: "cluster", name, version },
    any: encodeAny(Cluster, { name }),
  };
}

function bodySaying(changes: Partial<ResponseBody> = {}): ResponseBody {
  return {
    typeUrl: TYPE_URLS.cluster,
    resources: [resource("a", "1"), resource("b", "2")],
    removed: [],
    version: "7",
    ...changes,
  };
}

/** The message as a client gets it. */
function message(
  mode: DiscoveryMode,
  said: ResponseBody,
  nonce: string,
): Uint8Array {
  return Uint8Array.of(
    ...encodeHead(mode, nonce, ""),
    ...encodeBody(mode, said),
  );
}

Deno.test("clients receive who answers them", () => {
  const controlPlane = { identifier: "server-1" };
  const sotw = encodeHead("sotw", "n", "server-1");
  assertEquals(DiscoveryResponseMessage.decode(sotw), {
    nonce: "n",
    controlPlane,
  });
  const delta = encodeHead("delta", "n", "server-1");
  assertEquals(DeltaDiscoveryResponseMessage.decode(delta), {
    nonce: "n",
    controlPlane,
  });
});

Deno.test("a SotW response is what protobufjs reads in it", () => {
  const said = bodySaying();
  assertEquals(DiscoveryResponseMessage.decode(message("sotw", said, "n")), {
    versionInfo: "7",
    resources: said.resources.map(({ any }) => Any.decode(any)),
    typeUrl: TYPE_URLS.cluster,
    nonce: "n",
  });
});

Deno.test("a SotW response says what is not there, and why", () => {
  const said = bodySaying({ resources: [], absent: ["é", "b"] });
  const detail = { code: 5, message: "there is no such resource" };
  assertEquals(DiscoveryResponseMessage.decode(message("sotw", said, "n")), {
    ...{ versionInfo: "7", typeUrl: TYPE_URLS.cluster, nonce: "n" },
    resourceErrors: ["é", "b"].map((name) => ({
      resourceName: { name },
      errorDetail: detail,
    })),
  });
});

Deno.test("a Delta response is what protobufjs reads in it", () => {
  const said = bodySaying({ removed: ["x", "é"] });
  assertEquals(
    DeltaDiscoveryResponseMessage.decode(message("delta", said, "n")),
    {
      systemVersionInfo: "7",
      resources: said.resources.map(({ name, version, any }) => ({
        ...{ name, version },
        resource: Any.decode(any),
      })),
      typeUrl: TYPE_URLS.cluster,
      nonce: "n",
      removedResources: ["x", "é"],
    },
  );
});

Deno.test("a response without anything is one", () => {
  const said = bodySaying({ resources: [], version: "" });
  const received = { typeUrl: TYPE_URLS.cluster, nonce: "1" };
  assertEquals(
    DiscoveryResponseMessage.decode(message("sotw", said, "1")),
    received,
  );
  assertEquals(
    DeltaDiscoveryResponseMessage.decode(message("delta", said, "1")),
    received,
  );
});

Deno.test("one body serves all clients that are sent the same", () => {
  const said = bodySaying();
  const bytes = encodeBody("sotw", said);
  assertStrictEquals(encodeBody("sotw", { ...said }), bytes);
  // The other mode has a body of its own beside it.
  const delta = encodeBody("delta", said);
  assertEquals(delta === bytes, false);
  assertStrictEquals(encodeBody("delta", { ...said }), delta);
  assertStrictEquals(encodeBody("sotw", said), bytes);
});

Deno.test("one array in bodies that differ otherwise makes other bodies", () => {
  const said = bodySaying();
  for (
    const other of [
      { ...said, version: "8" },
      { ...said, typeUrl: TYPE_URLS.listener },
      { ...said, removed: ["gone"] },
      { ...said, resources: [] },
    ]
  ) {
    encodeBody("delta", said);
    const received = decodeResponse("delta", message("delta", other, "1"));
    assertEquals(received.version, other.version);
    assertEquals(received.typeUrl, other.typeUrl);
    assertEquals(received.removed, other.removed);
    assertEquals(received.resources.length, other.resources.length);
  }
});

Deno.test("whatever is said, both decoders read it", async () => {
  await forAll(200, (prng) => {
    const said = bodySaying({
      version: text(prng),
      removed: many(prng, () => text(prng)),
      resources: many(prng, () => resource(text(prng), text(prng))),
    });
    const nonce = text(prng);
    const sotw = decodeResponse("sotw", message("sotw", said, nonce));
    assertEquals(sotw, {
      ...{ typeUrl: said.typeUrl, version: said.version, nonce, removed: [] },
      resources: said.resources.map(({ name, any }) => ({
        ...{ name, version: said.version, typeUrl: TYPE_URLS.cluster },
        value: Any.decode(any).value ?? new Uint8Array(0),
      })),
    });
    const delta = decodeResponse("delta", message("delta", said, nonce));
    assertEquals(
      delta.resources.map(({ name, version }) => [name, version]),
      said.resources.map(({ name, version }) => [name, version]),
    );
    assertEquals(delta.removed, said.removed);
    const oracle = DeltaDiscoveryResponseMessage.decode(
      message("delta", said, nonce),
    );
    assertEquals(oracle.removedResources ?? [], said.removed);
    assertEquals(oracle.resources?.length ?? 0, said.resources.length);
  });
});

function many<T>(prng: Prng, make: () => T): T[] {
  return Array.from({ length: prng.below(5) }, make);
}

function text(prng: Prng): string {
  const letters = ["a", "/", ":", "é", "漢", "😀", "-"];
  return Array.from(
    { length: prng.below(prng.pick([4, 300])) },
    () => prng.pick(letters),
  ).join("");
}
