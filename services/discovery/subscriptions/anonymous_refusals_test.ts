/**
 * Refusals that do not say what is bad: of a response with several resources
 * nobody knows which were taken, so what was there before must not come back.
 */

import { transcripts } from "../../../tests/support/xds/transcripts.ts";

transcripts(
  `
# both refused: a cluster that changes after an anonymous refusal gets no older endpoints
see cluster a=2 b=1 c=1 -> cluster a=2 (b=1 c=1) | endpoints a=2
settle
// It was not the one: from now on it is like any other.
status endpoints nackedNames=["b"]

# both refused: what may be bad is tried alone, beside all that is not
see cluster a=2 b=2 c=2 -> cluster a=2 b=2 c=2 | endpoints c=1
ack endpoints -> endpoints a=2
// Now it is known, and its cluster still waits for something.
nack endpoints "this one" -> endpoints a=1
ack endpoints -> endpoints b=2
ack endpoints
status endpoints nackedNames=["a"]

# both taken: what was refused alone is not tried again, and what it had comes back
see endpoints a=2 b=1 c=1 -> endpoints a=2
nack endpoints "bad"
see cluster a=2 b=1 c=1 -> cluster a=2 (b=1 c=1) | endpoints a=1
settle
see cluster a=3 b=1 c=1 -> cluster a=3 (b=1 c=1) | endpoints a=1

# both refused: a client that refuses all and names nothing is not asked for ever
see cluster a=2 b=2 c=1 -> cluster a=2 b=2 (c=1) | endpoints a=2
nack endpoints "no" -> endpoints a=1
nack endpoints "no" -> endpoints b=2
nack endpoints "no" -> endpoints b=1
nack endpoints "no"
settle
see cluster a=3 b=3 c=1 -> cluster a=3 b=3 (c=1) | endpoints a=1 b=1

# sotw refused: a name without endpoints does not hold up what may be bad
see endpoints a=2 b=2 c=2 -> endpoints c=2
see cluster a=2 b=1 c=1 -> cluster a=2 b=1 c=1
// The answer to c asks for one more, while the cluster of a has changed.
ask endpoints a b c none -> endpoints a=2

# both taken: a refusal by name is believed at once
see endpoints a=2 b=2 c=1 -> endpoints a=2 b=2
nack endpoints "a is bad"
see cluster a=2 b=2 c=1 -> cluster a=2 b=2 (c=1) | endpoints a=1 b=2

# both refused: content that changes is sent with the rest, whatever was refused before
see cluster a=2 b=2 c=1 endpoints a=3 b=3 c=1 -> cluster a=2 b=2 (c=1) | endpoints a=3 b=3
settle
status endpoints nackedNames=[]
`,
  {
    taken: `
      see cluster a=1 b=1 c=1 endpoints a=1 b=1 c=1
      ask cluster
      ask endpoints a b c
      settle
    `,
    refused: `
      see cluster a=1 b=1 c=1 endpoints a=1 b=1 c=1
      ask cluster
      ask endpoints a b c
      settle
      see endpoints a=2 b=2 c=1
      nack endpoints "one is bad"
    `,
  },
);
