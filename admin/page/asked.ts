/**
 * An answer that a view needs, asked for when it is opened and again while it
 * stays open.
 *
 * @module
 */

import { useEffect, useState } from "preact/hooks";
import { ask } from "./ask.ts";
import { following } from "./server_state.ts";

/** What is known of it. */
export type Asked<T> =
  | { readonly kind: "waiting" }
  | { readonly kind: "known"; readonly answer: T; readonly atMs: number }
  | { readonly kind: "failed"; readonly message: string };

/**
 * @param everyMs How often it is asked for again.
 * @param then Told of each answer.
 */
export function useAsked<T>(
  path: string,
  everyMs: number,
  then?: (answer: T) => void,
): Asked<T> {
  const [asked, setAsked] = useState<Asked<T>>({ kind: "waiting" });
  const isLive = following.value.kind === "live";
  useEffect(() => {
    setAsked({ kind: "waiting" });
  }, [path]);
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const again = async () => {
      if (!document.hidden) {
        const next = await answerOf<T>(path, stop.signal);
        if (stop.signal.aborted) return;
        if (next.kind === "known") then?.(next.answer);
        // A failure does not take away what was known.
        setAsked((before) =>
          next.kind === "failed" && before.kind === "known" ? before : next
        );
      }
      timer = setTimeout(() => void again(), everyMs);
    };
    void again();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [path, everyMs, isLive]);
  return asked;
}

async function answerOf<T>(
  path: string,
  signal: AbortSignal,
): Promise<Asked<T>> {
  try {
    const answer = await ask<T>(path, signal);
    return { kind: "known", answer, atMs: Date.now() };
  } catch (error) {
    return { kind: "failed", message: (error as Error).message };
  }
}
