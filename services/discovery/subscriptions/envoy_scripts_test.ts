/** What Envoy 1.40 was seen to do, replayed. */

import { transcripts } from "../../../tests/support/xds/transcripts.ts";
import { assert, assertEquals } from "@std/assert";
import { ScriptedSubscriber } from "../../../tests/support/xds/scripted_subscriber.ts";

const WORLD = {
  cluster: { a: "1", b: "1" },
  endpoints: { a: "1", b: "1" },
  listener: { a: "1", b: "1" },
} as const;

function envoy(mode: "sotw" | "delta"): ScriptedSubscriber {
  const client = new ScriptedSubscriber(mode);
  client.see(WORLD);
  client.ask("cluster");
  client.ask("endpoints", ["a", "b"]);
  client.ask("listener");
  client.settle();
  return client;
}

Deno.test("Envoy cannot bind a listener: it counts as refused, and others go on", () => {
  const client = envoy("sotw");
  client.see({ ...WORLD, listener: { a: "1", b: "2" } });
  client.nack(
    "listener",
    "Error adding/updating listener(s) b: cannot bind '127.0.0.1:80': Address already in use\n",
  );
  const status = client.statusOf("listener");
  assertEquals([status.nackedNames, status.nacked?.names], [["b"], ["b"]]);
  assertEquals(client.see({ ...WORLD, listener: { a: "2", b: "2" } }), [
    "listener a=2 b=1",
  ]);
  client.ack("listener");
  assert(!client.statusOf("listener").isBehind);
});

transcripts(
  `
# sotw: Envoy starts: clusters, then endpoints before it has answered about clusters, then listeners
see cluster a=1 b=1 endpoints a=1 b=1 listener a=1 b=1
ask cluster -> cluster a=1 b=1
ask endpoints a b -> endpoints a=1 b=1
ack endpoints
ack cluster
ask listener -> listener a=1 b=1

# sotw envoy: Envoy isNacked its answer about a changed cluster, and has its endpoints without it
see cluster a=2 b=1 -> cluster a=2 b=1 | endpoints a=1
// It repeats its request with the old nonce, which crosses the endpoints.
ask endpoints a b nonce=2
status endpoints stale=1
ack endpoints
// And repeats it with the new one: only the cluster that warms is sent.
ack endpoints -> endpoints a=1
settle

# sotw envoy: Envoy isNacked its answer about clusters for 15 s: endpoints go on, and clusters after 10 s
see cluster a=2 b=1 -> cluster a=2 b=1 | endpoints a=1
ack endpoints
see endpoints a=2 b=1 -> endpoints a=2
ack endpoints
see cluster a=2 b=2
pass 10000 -> cluster a=2 b=2 | endpoints a=2 b=1

# sotw envoy: Envoy has a new cluster: its longer list comes with the old nonce
see cluster a=1 b=1 c=1 endpoints a=1 b=1 c=1 -> cluster a=1 b=1 c=1
ask endpoints a b c -> endpoints c=1
ack endpoints

# sotw envoy: Envoy has a new cluster while endpoints are under way: its list is stale, and the next is not
see cluster a=1 b=1 c=1 endpoints a=2 b=1 c=1 -> cluster a=1 b=1 c=1 | endpoints a=2
ask endpoints a b c nonce=2
ask endpoints a b c -> endpoints c=1

# delta envoy: Envoy over Delta unsubscribes from a removed cluster's endpoints without a nonce
see cluster a=1 endpoints a=1 listener a=1 -> listener -b
ack listener -> cluster -b
ask endpoints -b
ack cluster

# sotw: Envoy comes back over SotW: the version kept, no nonce, all kinds at once
see cluster a=1 b=1 endpoints a=1 b=1 listener a=1 b=1
ask cluster nonce= version="of an earlier stream" -> cluster a=1 b=1
// Endpoints come after clusters, so whatever warms is served by this.
ask endpoints a b nonce= version="of an earlier stream" -> endpoints a=1 b=1
ask listener nonce= version="of an earlier stream" -> listener a=1 b=1
settle

# delta: Envoy reconnects over Delta: it sends what it has, and receives what differs
see cluster a=1 b=1 endpoints a=1 b=1 listener a=1 b=1
ask cluster has=a=1,b=0 -> cluster b=1
ask endpoints a b has=a=1,b=1 -> endpoints a=1 b=1
ask listener has=a=1,b=1 -> listener
`,
  {
    envoy: `
    see cluster a=1 b=1 endpoints a=1 b=1 listener a=1 b=1
    ask cluster
    ask endpoints a b
    ask listener
    settle
  `,
  },
);
