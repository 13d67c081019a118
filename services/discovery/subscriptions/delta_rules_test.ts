/** The rules of Delta, in the order of the protocol's text. */

import { transcripts } from "../../../tests/support/xds/transcripts.ts";

transcripts(
  `
# delta world: Delta: nonces pair ACK and NACK with responses
ask cluster -> cluster a=1 b=1
ack cluster
status cluster acked.nonce="1"
see cluster a=2 b=1 -> cluster a=2
nack cluster "no"
status cluster nacked.nonce="2"

# delta world: Delta: a nonce is not used to reject a request: names on a stale one count
ask endpoints a -> endpoints a=1
settle
see endpoints a=2 b=1 -> endpoints a=2
ask endpoints b nonce=1
status endpoints stale=1
ack endpoints -> endpoints b=1

# delta world: Delta: names that ride on an ACK count
ask endpoints a -> endpoints a=1
ask endpoints b nonce=1 -> endpoints b=1
status endpoints acks=1

# delta world: Delta: a spontaneous request omits the nonce and answers nothing
ask endpoints a -> endpoints a=1
ask endpoints b
status endpoints acks=0
ack endpoints -> endpoints b=1

# delta world: Delta: subscribing to a name that is subscribed to sends it again
ask endpoints a b -> endpoints a=1 b=1
settle
ask endpoints a -> endpoints a=1

# delta world: Delta: an unknown name is answered with removed_resources, and sent when it appears
ask endpoints a new -> endpoints a=1 -new
settle
see endpoints a=1 b=1 new=1 -> endpoints new=1

# delta world: Delta: unsubscribing needs no answer
ask endpoints a b -> endpoints a=1 b=1
settle
ask endpoints -a
see endpoints a=2 b=2 -> endpoints b=2

# delta world: Delta: unsubscribing what nobody subscribed to is ignored
ask endpoints a -> endpoints a=1
settle
ask endpoints -x -*
ask cluster -> cluster a=1 b=1 | endpoints a=1
settle
ask cluster -a

# delta world: Delta: unsubscribing a name beside a wildcard is answered with it, or as removed
ask cluster * a new -> cluster a=1 b=1 -new
settle
ask cluster -a -new -> cluster a=1 -new

# delta world: Delta: a first request with initial_resource_versions is sent the differences
ask cluster has=a=0,b=1 -> cluster a=1
ask route r has=r=0 -> route r=1

# delta world: Delta: what is gone is removed, what is new is sent, with a wildcard as well
ask cluster * has=a=1,x=1 -> cluster b=1 -x

# delta world: Delta: names in initial_resource_versions that exist no longer are removed
ask cluster has=a=1,b=1,old=7 -> cluster -old
ask route r old has=r=1,old=7 -> route -old

# delta world: Delta: when nothing differs, all of a kind is answered with nothing, and names not at all
ask cluster has=a=1,b=1 -> cluster
ask listener * has=a=1 -> listener
ask route r has=r=1

# delta world: Delta: endpoints are sent in full to who comes back: a cluster may wait for them
ask endpoints a old has=a=1,old=1 -> endpoints a=1 -old

# delta world: Delta: initial_resource_versions count in a first request only
ask endpoints a -> endpoints a=1
settle
ask endpoints b has=b=1 -> endpoints b=1

# delta: Delta: an empty world is sent to who asks for all of it
see
ask cluster -> cluster
ask endpoints

# delta world: Delta: a NACK is of the response, and names the resource when it can
ask endpoints a b -> endpoints a=1 b=1
nack endpoints "bad: a: no such thing"
status endpoints nackedNames=["a"]
see endpoints a=1 b=2 -> endpoints b=2

# delta world: Delta: what is gone is sent by its name, once
ask listener -> listener a=1
settle
see listener - -> listener -a
settle
see cluster -

# delta world: Delta: nothing is sent of what came and went unseen
ask cluster -> cluster a=1 b=1
see cluster a=1 b=1 c=1
see cluster a=1 b=1
ack cluster

# delta world: Delta wildcard: a first request without names is all, and names come beside it
ask cluster -> cluster a=1 b=1
settle
ask cluster a -> cluster a=1
settle
ask cluster -*
see cluster a=2 b=2 -> cluster a=2
settle
ask cluster -a
see cluster a=3 b=3

# delta world: Delta wildcard: it is sent again to who asks for it again
ask cluster * -> cluster a=1 b=1
settle
ask cluster * -> cluster a=1 b=1

# delta world: Delta wildcard: for EDS a first request without names is nothing, and '*' does not exist
ask endpoints
ask endpoints * -> endpoints -*

# delta world: Delta wildcard: a first request that only unsubscribes is no wildcard
ask cluster -a
status cluster wildcard=false
`,
);
