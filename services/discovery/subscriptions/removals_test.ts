/** Make before break: what is gone stays until nothing leads to it. */

import { transcripts } from "../../../tests/support/xds/transcripts.ts";
import { REMOVAL_GRACE_MS } from "./removals.ts";

const BEFORE = `
  see cluster a=1 b=1 endpoints a=1 b=1 listener a=1 b=1 route a=1 b=1
`;
/** Without `b`. */
const AFTER = "see cluster a=1 endpoints a=1 listener a=1 route a=1";
const SOON = REMOVAL_GRACE_MS - 1;

transcripts(
  `
# sotw all: a cluster goes when listeners without it are acknowledged
${AFTER} -> listener a=1
ack listener -> cluster a=1
ack cluster

# delta all: routes go after listeners, clusters after both, endpoints last
${AFTER} -> listener -b
ack listener -> route -b
ack route -> cluster -b
ack cluster -> endpoints -b
ack endpoints

# delta all: endpoints that the client has unsubscribed from meanwhile are not sent as gone
${AFTER} -> listener -b
ack listener -> route -b
ack route -> cluster -b
ask endpoints -b
ack cluster

# sotw all: a cluster goes at once when nothing else changed
see cluster a=1 -> cluster a=1

# both clusters: a cluster goes at once where nobody asked for listeners or routes
${AFTER} -> cluster (a=1) [-b]

# sotw all: what is added goes at once, with all that is kept
see cluster a=1 c=1 endpoints a=1 c=1 listener a=1 c=1 route a=1 c=1 -> cluster a=1 b=1 c=1 | listener a=1 c=1
ask endpoints a b c -> endpoints c=1
ack cluster
ack listener -> cluster a=1 c=1

# both all: a client that refuses listeners keeps the cluster for 30 s
${AFTER} -> listener (a=1) [-b]
nack listener "no"
due ${REMOVAL_GRACE_MS}
pass ${SOON}
pass 1 -> cluster (a=1) [-b | endpoints -b | route -b]

# sotw all: a client that does not answer keeps the cluster for 30 s
${AFTER} -> listener a=1
pass ${SOON}
status cluster isBehind=true
pass 1 -> cluster a=1

# sotw all: later changes of listeners do not keep a cluster longer
${AFTER} -> listener a=1
see listener a=2
// The answer is about the first change, and the second one waits for it.
ack listener -> cluster a=1 | listener a=2

# both listeners: a cluster that comes back was never gone
${AFTER} -> listener (a=1) [-b]
${BEFORE.trim()}
ack listener -> listener (a=1) b=1
settle
pass ${REMOVAL_GRACE_MS}

# delta all: who asks for a kept cluster by name gets it, and its endpoints
${AFTER} -> listener -b
ask cluster b -> cluster b=1 | endpoints b=1

# sotw all: Pilot: a cluster that is removed with its listener is in the last but one CDS
see cluster a=2 endpoints a=1 listener a=1 route a=1 -> cluster a=2 b=1 | endpoints a=1 | listener a=1
`,
  {
    all: `${BEFORE}
      ask cluster
      ask endpoints a b
      ask listener
      ask route a b
      settle
    `,
    clusters: `${BEFORE}
      ask cluster
      settle
    `,
    listeners: `${BEFORE}
      ask cluster
      ask listener
      settle
    `,
  },
);
