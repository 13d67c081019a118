import { assertEquals, assertThrows } from "@std/assert";
import { fields } from "../../tests/support/memory/fake_stream.ts";
import { forAll } from "../../tests/support/memory/prng.ts";
import type { HeaderField } from "../hpack/header_field.ts";
import { appendMetadata, decodeMetadata, Metadata } from "./metadata.ts";
import { GrpcError } from "./status.ts";

function encode(metadata: Metadata): HeaderField[] {
  const section: HeaderField[] = [];
  appendMetadata(section, metadata);
  return section;
}

Deno.test("custom metadata is read, what gRPC and HTTP/2 keep is not", () => {
  const metadata = decodeMetadata(fields({
    ":path": "/a/b",
    "content-type": "application/grpc",
    "te": "trailers",
    "grpc-timeout": "1S",
    "grpc-status": "0",
    "grpc-encoding": "gzip",
    "user-agent": "grpc-go/1.83.0",
    "agentid": "a",
  }));
  assertEquals([...metadata], [
    ["grpc-encoding", "gzip"],
    ["user-agent", "grpc-go/1.83.0"],
    ["agentid", "a"],
  ]);
});

Deno.test("-bin values are base64, padded or not, several in one field", () => {
  const metadata = decodeMetadata([
    { name: "a-bin", value: "AQI=" },
    { name: "a-bin", value: "AQI" },
    { name: "b-bin", value: "AQ==,Ag, AwQF" },
    { name: "c-bin", value: "" },
  ]);
  assertEquals(metadata.all("a-bin"), [
    Uint8Array.of(1, 2),
    Uint8Array.of(1, 2),
  ]);
  assertEquals(metadata.all("b-bin"), [
    Uint8Array.of(1),
    Uint8Array.of(2),
    Uint8Array.of(3, 4, 5),
  ]);
  assertEquals(metadata.all("c-bin"), [new Uint8Array(0)]);
});

Deno.test("a -bin value that is not base64 is the peer's fault", () => {
  for (const value of ["!", "A", "AQI=x", "AQ=I"]) {
    assertThrows(
      () => decodeMetadata([{ name: "a-bin", value }]),
      GrpcError,
      "metadata a-bin",
    );
  }
});

Deno.test("text that gRPC does not allow is left out", () => {
  const metadata = decodeMetadata([
    { name: "a", value: "gr\xc3\xb6" },
    { name: "a", value: "tab\there" },
    { name: "a", value: "fine" },
  ]);
  assertEquals(metadata.texts("a"), ["fine"]);
});

Deno.test("metadata is written without padding, secrets never indexed", () => {
  const metadata = new Metadata({ authorization: "Bearer x", A: " y " });
  metadata.add("k-bin", Uint8Array.of(1, 2));
  assertEquals(encode(metadata), [
    { name: "authorization", value: "Bearer x", neverIndex: true },
    { name: "a", value: "y" },
    { name: "k-bin", value: "AQI" },
  ]);
});

Deno.test("reserved names are skipped, so that read metadata can be sent on", () => {
  const metadata = new Metadata({
    ":path": "/x",
    "grpc-encoding": "gzip",
    "te": "x",
    "content-type": "x",
    "connection": "close",
    "ok": "1",
  });
  assertEquals(encode(metadata), fields({ ok: "1" }));
});

Deno.test("metadata that gRPC cannot carry is a bug of the caller", () => {
  const broken: Record<string, string | Uint8Array>[] = [
    { "a b": "x" },
    { "ä": "x" },
    { "": "x" },
    { a: "ö" },
    { a: "line\nbreak" },
    { a: Uint8Array.of(1) },
    { "a-bin": "text" },
  ];
  for (const record of broken) {
    assertThrows(
      () => encode(new Metadata(record)),
      TypeError,
      "Cannot send metadata",
    );
  }
});

Deno.test("bytes of any kind come back as they were", async () => {
  await forAll(100, (prng) => {
    const metadata = new Metadata();
    for (let left = prng.below(5); left >= 0; left--) {
      metadata.add("x-bin", prng.bytes(prng.below(50)));
    }
    assertEquals([...decodeMetadata(encode(metadata))], [...metadata]);
  });
});
