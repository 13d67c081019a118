/**
 * What stands above a list: a field to search it, and choices of which one is
 * taken. The choice is in the place, so that it can be linked to.
 *
 * @module
 */

import type { Signal } from "@preact/signals";
import type { VNode } from "preact";
import { goTo, place } from "./place.ts";
import { countText } from "../../platform/text/quantities.ts";

/** One choice. */
export interface FilterChoice {
  readonly value: string;
  readonly title: string;
  readonly count?: number;
}

/** A field to search with; `/` goes there. */
export function Search(
  { label, hint, text }: {
    readonly label: string;
    readonly hint: string;
    readonly text: Signal<string>;
  },
): VNode {
  return (
    <label class="search">
      <span class="unseen">{label}</span>
      <input
        type="search"
        data-search
        placeholder={`${label}: ${hint}`}
        value={text.value}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => text.value = event.currentTarget.value}
      />
    </label>
  );
}

/** Choices of which one is taken, `?state=` in the place. */
export function Filters(
  { label, choices, chosen, as = "state" }: {
    readonly label: string;
    readonly choices: readonly FilterChoice[];
    readonly chosen: string;
    readonly as?: string;
  },
): VNode {
  return (
    <div class="filters" role="group" aria-label={label}>
      {choices.map(({ value, title, count }) => (
        <button
          key={value}
          type="button"
          aria-pressed={value === chosen}
          onClick={() => {
            const { view, query } = place.value;
            const others = Object.fromEntries(query);
            delete others[as];
            goTo(view, "", value === "" ? others : { ...others, [as]: value });
          }}
        >
          {title}
          {count !== undefined && <span class="count">{countText(count)}</span>}
        </button>
      ))}
    </div>
  );
}
