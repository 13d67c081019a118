/** How requests, views and time decide what is sent: a row for each branch. */

import { transcripts } from "../../../tests/support/xds/transcripts.ts";
import { assertEquals } from "@std/assert";
import {
  inWorld,
  ScriptedSubscriber,
  viewOf,
  WORLD,
} from "../../../tests/support/xds/scripted_subscriber.ts";
import { SLOW_AFTER_MS } from "./ack_tracker.ts";

Deno.test("a client that takes nothing keeps no old state, though nobody asks what to send", () => {
  for (const mode of ["sotw", "delta"] as const) {
    const client = inWorld(mode);
    client.ask("endpoints", ["a", "b"]);
    client.settle();
    const { state } = client;
    state.onView(viewOf({ ...WORLD, endpoints: { a: "2", b: "1" } }), 0);
    state.onView(viewOf({ ...WORLD, endpoints: { a: "3" } }), SLOW_AFTER_MS);
    state.onView(viewOf(WORLD), SLOW_AFTER_MS);
    const sent = client.pass(SLOW_AFTER_MS);
    assertEquals(sent, ["endpoints a=1 b=1"]);
  }
});

Deno.test("a refusal names resources as clients do", () => {
  const cases: ReadonlyArray<readonly [string, readonly string[]]> = [
    ["Error adding/updating cluster(s) default/web:80: no good", [
      "default/web:80",
    ]],
    ["Error adding/updating listener(s) default/web:8080: bind", [
      "default/web:8080",
    ]],
    ["in default/web:80, and in default/web:80/udp.", [
      "default/web:80",
      "default/web:80/udp",
    ]],
    ["'default/web:80/udp'", ["default/web:80/udp"]],
    ['xds: resource "web" is bad', ["web"]],
    ["It is web.", ["web"]],
    ["other/web:80", []],
    ["web-2, web_3, web/4, 5web, web:9, web.default", []],
    ["", []],
  ];
  const names = [
    "default/web:80",
    "default/web:8080",
    "default/web:80/udp",
    "web",
  ];
  for (const [message, named] of cases) {
    const client = new ScriptedSubscriber("sotw");
    client.see({
      cluster: Object.fromEntries(names.map((name) => [name, "1"])),
    });
    client.ask("cluster");
    client.nack("cluster", message);
    assertEquals(client.statusOf("cluster").nackedNames, named, message);
    const blamed = named.length > 0 ? named : names;
    assertEquals(client.statusOf("cluster").nacked?.names, blamed);
  }
});

Deno.test("refused endpoints that were never good are not sent when their cluster changes", () => {
  for (const mode of ["sotw", "delta"] as const) {
    const client = inWorld(mode);
    client.ask("cluster");
    client.ack("cluster");
    client.ask("endpoints", ["a"]);
    client.nack("endpoints", "no");
    client.see({ ...WORLD, cluster: { a: "2", b: "1" } });
    assertEquals(client.ack("cluster"), []);
    assertEquals(client.statusOf("endpoints").responses, 1);
  }
});

transcripts(
  `
# sotw world: a NACK that adds nothing is not answered, and one that adds names is
ask endpoints a -> endpoints a=1
nack endpoints "no"
ask endpoints a b error="no" -> endpoints b=1

# sotw world: an ACK clears the refusal before it
ask endpoints a -> endpoints a=1
nack endpoints "no"
see endpoints a=2 b=1 -> endpoints a=2
ack endpoints
status endpoints nacked=undefined nacks=1 nackedNames=[]

# sotw world: no response yet: all that is wanted and exists is sent
ask endpoints a none -> endpoints a=1
ask route none
ask listener none -> listener

# sotw world: added to LDS or CDS: all that is wanted is sent
ask cluster a -> cluster a=1
settle
ask cluster a b -> cluster a=1 b=1

# sotw world: added to EDS or RDS: what is added and exists is sent
ask endpoints a -> endpoints a=1
settle
ask endpoints a b none -> endpoints b=1
settle
ask endpoints a b none nor this

# sotw world: dropping names is not answered
ask cluster a b -> cluster a=1 b=1
ask endpoints a b -> endpoints a=1 b=1
settle
ask cluster b
ask endpoints b

# both world: one response in inFlight per type: the next goes when it is answered
ask endpoints a b -> endpoints a=1 b=1
see endpoints a=2 b=1
ack endpoints -> endpoints a=2

# both world: one response in inFlight per type: or when 10 s have passed
ask endpoints a b -> endpoints a=1 b=1
due Infinity
see endpoints a=2 b=1
due 10000
pass 9999
pass 1 -> endpoints a=2
due Infinity
// What is said about the first one now is late.
ack endpoints nonce=1
status endpoints stale=1
ack endpoints
status endpoints inFlightSinceMs=undefined

# sotw world: a response in inFlight of one type isNacked up no other
ask cluster -> cluster a=1 b=1
ask endpoints a -> endpoints a=1
ack endpoints
see endpoints a=2 b=1 -> endpoints a=2

# sotw world: listeners and routes wait while clusters that they could lead to cannot be sent
ask cluster -> cluster a=1 b=1
ask listener -> listener a=1
ask route r -> route r=1
ack listener
ack route
see cluster a=1 b=1 c=1 listener a=1 c=1 route r=2
ack cluster -> cluster a=1 b=1 c=1 | listener a=1 c=1 | route r=2

# sotw world: listeners that are asked for do not wait for clusters
ask cluster -> cluster a=1 b=1
see cluster a=2 b=1
ask listener -> listener a=1

# both world: a slow client keeps no old state: what came and went may be sent twice
ask endpoints a -> endpoints a=1
pass 1000
see endpoints a=2 b=1
see endpoints a=1 b=1
ack endpoints -> endpoints a=1
ack endpoints

# sotw world: a refused resource of a whole state stays as the client had it
ask cluster -> cluster a=1 b=1
settle
see cluster a=2 b=2 c=1 -> cluster a=2 b=2 c=1
nack cluster "a: no"
see cluster a=2 b=3 c=1 -> cluster a=1 b=3 c=1
settle
// It changed, so it is sent, and if it is what the client had before.
see cluster a=3 b=3 c=1 -> cluster a=3 b=3 c=1

# sotw world: a refused resource that a client never had is left out of the whole state
ask cluster -> cluster a=1 b=1
settle
see cluster a=1 b=1 c=1 -> cluster a=1 b=1 c=1
nack cluster "c: no"
see cluster a=2 b=1 c=1 -> cluster a=2 b=1

# sotw world: a refused resource that a client may have from an earlier stream is not removed
ask cluster version="of an earlier stream" -> cluster a=1 b=1
nack cluster "a: no"
see cluster a=1 b=2 c=1 -> cluster a=1 b=2 c=1
nack cluster "a: no; c: no"
// What is new on this stream it cannot have from an earlier one.
see cluster a=1 b=3 c=1 -> cluster a=1 b=3

# sotw world: what was taken before a chain of refusals is still what stands in
ask cluster -> cluster a=1 b=1
settle
see cluster a=2 b=1 -> cluster a=2 b=1
nack cluster "a: no"
see cluster a=3 b=1 -> cluster a=3 b=1
nack cluster "a: no"
see cluster a=3 b=2 -> cluster a=1 b=2

# sotw world: without a name in the refusal a whole state is sent again when anything changes
ask cluster -> cluster a=1 b=1
nack cluster "no"
status cluster nackedNames=[]
see cluster a=1 b=2 -> cluster a=1 b=2

# both world: a NACK may have been applied in part: what was good before is sent again
ask endpoints a -> endpoints a=1
ask listener -> listener a=1
settle
see endpoints a=2 b=1 listener a=2 -> endpoints a=2 | listener a=2
nack endpoints "no"
nack listener "a: no"
see endpoints a=1 b=1 listener a=1 -> endpoints a=1 | listener a=1

# sotw world: refused endpoints are not sent when their cluster changes, but what was good is
ask cluster -> cluster a=1 b=1
ask endpoints a b -> endpoints a=1 b=1
settle
see endpoints a=2 b=1 -> endpoints a=2
nack endpoints "a: no"
see cluster a=2 b=2 -> cluster a=2 b=2 | endpoints a=1 b=1

# sotw world: a refused name is sent to a client that unsubscribes and asks again
ask endpoints a b -> endpoints a=1 b=1
nack endpoints "a: no"
ask endpoints b
ask endpoints a b -> endpoints a=1

# sotw world: a request that repeats an answered nonce is answered
ask endpoints a b -> endpoints a=1 b=1
settle
ack endpoints -> endpoints a=1 b=1

# sotw world: a request that repeats an answered nonce is answered once a second at most
ask endpoints a -> endpoints a=1
settle
ack endpoints -> endpoints a=1
settle
ack endpoints
due 1000
pass 1000 -> endpoints a=1

# sotw world: a request that repeats an answered nonce of LDS or CDS is not answered
ask cluster -> cluster a=1 b=1
settle
ack cluster

# sotw world: a request without nonce and without news is answered: the client may have forgotten
ask cluster -> cluster a=1 b=1
settle
ask cluster nonce= -> cluster a=1 b=1

# sotw world: a view that changes nothing of interest is no event
ask endpoints a -> endpoints a=1
settle
see endpoints a=1 b=2 c=1
status endpoints isBehind=false
due Infinity
`,
);
