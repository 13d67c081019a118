import { assertEquals } from "@std/assert";
import {
  LeaseKeepAliveRequest,
  PutRequest,
  WatchRequest,
  WatchResponse,
} from "./etcd_messages.ts";

Deno.test("a lease id of 63 bits comes through unchanged", () => {
  for (const ID of ["7587887887887887001", "9223372036854775807", "-1", "0"]) {
    const bytes = LeaseKeepAliveRequest.encode({ ID });
    assertEquals(LeaseKeepAliveRequest.decode(bytes).ID, ID);
  }
});

Deno.test("a put is written as etcd's rpc.proto numbers it", () => {
  const bytes = PutRequest.encode({
    key: Uint8Array.of(0x61),
    value: Uint8Array.of(0x62),
    lease: "300",
  });
  assertEquals([...bytes], [10, 1, 0x61, 18, 1, 0x62, 24, 0xac, 2]);
});

Deno.test("a watch request is one of its kinds, not both", () => {
  assertEquals(
    [...WatchRequest.encode({ progressRequest: {} })],
    [26, 0],
  );
  const create = WatchRequest.encode({
    createRequest: {
      key: Uint8Array.of(0x61),
      rangeEnd: Uint8Array.of(0x62),
      startRevision: "2",
      progressNotify: true,
      fragment: true,
    },
  });
  assertEquals(
    [...create],
    [10, 12, 10, 1, 0x61, 18, 1, 0x62, 24, 2, 32, 1, 64, 1],
  );
});

Deno.test("a refused watch is read, with fields that are not known here", () => {
  const bytes = Uint8Array.of(
    ...[10, 2, 24, 7], // header { revision: 7 }
    ...[16, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1], // watch_id: -1
    ...[24, 1, 32, 1, 40, 5], // created, canceled, compact_revision
    ...[50, 2, 0x6e, 0x6f], // cancel_reason
    ...[98, 1, 0xff], // 12 is not used
  );
  const { header, ...rest } = WatchResponse.decode(bytes);
  assertEquals(header?.revision, "7");
  assertEquals<Omit<WatchResponse, "header">>({ ...rest }, {
    watchId: "-1",
    created: true,
    canceled: true,
    compactRevision: "5",
    cancelReason: "no",
    fragment: false,
    events: [],
  });
});
