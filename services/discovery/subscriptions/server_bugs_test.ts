/** The known bugs of such servers, each of which is none here. */

import { transcripts } from "../../../tests/support/xds/transcripts.ts";
import { assert, assertEquals, assertNotEquals } from "@std/assert";
import {
  ScriptedSubscriber,
  viewOf,
} from "../../../tests/support/xds/scripted_subscriber.ts";
import { changedNames } from "../view/view.ts";
import { RESPONSE_PART_BYTES_MAX } from "./selection.ts";

Deno.test("endpoints follow each change of their cluster, in the same version and with a new nonce", () => {
  for (const mode of ["sotw", "delta"] as const) {
    const client = new ScriptedSubscriber(mode);
    client.see({ cluster: { a: "1", b: "1" }, endpoints: { a: "1", b: "1" } });
    client.ask("cluster");
    client.ask("endpoints", ["a", "b"]);
    client.settle();
    const nonce = client.nonceOf("endpoints");
    const sent = client.see({
      cluster: { a: "2", b: "1" },
      endpoints: { a: "1", b: "1" },
    });
    assertEquals(sent, [
      mode === "sotw" ? "cluster a=2 b=1" : "cluster a=2",
      "endpoints a=1",
    ]);
    assertNotEquals(client.nonceOf("endpoints"), nonce);
    // Without waiting for the answer about clusters.
    assert(client.statusOf("cluster").inFlightSinceMs !== undefined);
  }
});

Deno.test("nonces of two streams differ when they are sent apart", () => {
  const nonces = ["x-", "y-"].map((noncePrefix) => {
    const client = new ScriptedSubscriber("sotw", { noncePrefix });
    client.see({ cluster: { a: "1" } });
    client.ask("cluster");
    return client.nonceOf("cluster");
  });
  assertEquals(nonces, ["x-1", "y-1"]);
});

Deno.test("versions are not used again for something else after a restart", () => {
  const versionAfter = (version: string) => {
    const client = new ScriptedSubscriber("sotw");
    client.see({ cluster: { a: version } });
    client.ask("cluster");
    return client.versionOf("cluster");
  };
  assertEquals(versionAfter("1"), versionAfter("1"));
  assertNotEquals(versionAfter("1"), versionAfter("2"));
});

Deno.test("what piles up for a slow client is one response, however much happens", () => {
  for (const mode of ["sotw", "delta"] as const) {
    const client = new ScriptedSubscriber(mode);
    client.see({ endpoints: { a: "0", b: "0" } });
    client.ask("endpoints", ["a", "b"]);
    for (let i = 1; i <= 100; i++) {
      assertEquals(client.see({ endpoints: { a: `${i}`, b: "0" } }), []);
      client.pass(50);
    }
    assertEquals(client.ack("endpoints"), ["endpoints a=100"]);
    assertEquals(client.ack("endpoints"), []);
  }
});

Deno.test("a response over 4 MiB is split where it can be", () => {
  const bytes = RESPONSE_PART_BYTES_MAX / 3;
  const world = viewOf({
    cluster: { a: "1", b: "1", c: "1", d: "1" },
    endpoints: { a: "1", b: "1", c: "1", d: "1" },
  }, bytes);
  const client = new ScriptedSubscriber("sotw");
  client.see(world);
  assertEquals(client.ask("endpoints", ["a", "b", "c", "d", "none"]), [
    "endpoints a=1 b=1",
  ]);
  assertEquals(client.ack("endpoints"), ["endpoints c=1 d=1"]);
  assertEquals(client.ack("endpoints"), []);
  const whole = new ScriptedSubscriber("sotw");
  whole.see(world);
  assertEquals(whole.ask("cluster"), ["cluster a=1 b=1 c=1 d=1"]);
  const delta = new ScriptedSubscriber("delta");
  delta.see(world);
  assertEquals(delta.ask("cluster"), ["cluster a=1 b=1"]);
  assertEquals(delta.ack("cluster"), ["cluster c=1 d=1"]);
  const names = ["a", "b", "c", "d", "none"];
  assertEquals(delta.ask("endpoints", names), ["endpoints a=1 b=1"]);
  assertEquals(delta.ack("endpoints"), ["endpoints c=1 d=1 -none"]);
});

Deno.test("a resource that is too large for any response is sent alone", () => {
  const client = new ScriptedSubscriber("delta");
  client.see(
    viewOf({ endpoints: { a: "1", b: "1" } }, RESPONSE_PART_BYTES_MAX + 1),
  );
  assertEquals(client.ask("endpoints", ["a", "b"]), ["endpoints a=1"]);
  assertEquals(client.ack("endpoints"), ["endpoints b=1"]);
});

Deno.test("a resource that was made again with the same content is not sent again", () => {
  const before = viewOf({ endpoints: { a: "1" } }).resources.endpoints;
  const after = viewOf({ endpoints: { a: "1" } }).resources.endpoints;
  assertEquals([...changedNames(before, after)], []);
});

transcripts(
  `
# both: no NACK loop: refused content is not sent again until it changes
see cluster a=1 endpoints a=1
ask cluster -> cluster a=1
ask endpoints a -> endpoints a=1
nack cluster "no"
nack endpoints "no"
see
pass 60000
see cluster a=2 endpoints a=2 -> cluster a=2 | endpoints a=2

# sotw: a NACK is detected by error_detail, not by version
see cluster a=1
ask cluster -> cluster a=1
ack cluster version="of long ago"
status cluster nacks=0
status cluster acks=1

# sotw: EDS with empty names is not a wildcard
see endpoints a=1
ask endpoints
see endpoints a=2

# sotw: subscriptions of resources that do not exist yet are not forgotten
see endpoints a=1
ask endpoints a later -> endpoints a=1
settle
see endpoints a=2 -> endpoints a=2
settle
see endpoints a=2 later=1 -> endpoints later=1

# sotw: a request for part of the endpoints is answered
see endpoints x=1 y=1
ask endpoints x -> endpoints x=1

# sotw: endpoints are not sent before their clusters
ask route r
ask listener
ask endpoints a
ask cluster
see cluster a=1 endpoints a=1 listener a=1 route r=1 -> cluster a=1 | endpoints a=1 | listener a=1 | route r=1

# sotw: endpoints are not sent after they were unsubscribed from
see endpoints a=1 b=1
ask endpoints a b -> endpoints a=1 b=1
see endpoints a=2 b=2
ask endpoints b -> endpoints b=2

# sotw: LDS and CDS are never sent in part in SotW
see listener a=1 b=1
ask listener -> listener a=1 b=1
settle
see listener a=1 b=2 -> listener a=1 b=2

# both: nothing is answered before there is a view, and everything then
ask cluster
ask endpoints a
pass 120000
due Infinity
see cluster a=1 endpoints a=1 -> cluster a=1 | endpoints a=1
`,
);
