/**
 * Light, dark, or the machine's setting.
 *
 * @module
 */

import { type Signal, signal } from "@preact/signals";

/** The user's choice. */
export type Theme = "auto" | "light" | "dark";

const KEPT_AS = "tunnel-theme";
const DARK = matchMedia("(prefers-color-scheme: dark)");

/** The user's choice. */
export const theme: Signal<Theme> = signal(kept());
/** Changes with each change of colours; canvases are drawn again. */
export const isDark: Signal<boolean> = signal(false);

DARK.addEventListener("change", show);
show();

/** Takes it, and keeps it for the next time. */
export function chooseTheme(chosen: Theme): void {
  theme.value = chosen;
  try {
    localStorage.setItem(KEPT_AS, chosen);
  } catch {
    // A browser that keeps nothing.
  }
  show();
}

/** The present value of a colour of the style sheet, for canvases. */
export function colour(name: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function show(): void {
  const { dataset } = document.documentElement;
  if (theme.value === "auto") delete dataset["theme"];
  else dataset["theme"] = theme.value;
  isDark.value = theme.value === "auto" ? DARK.matches : theme.value === "dark";
}

function kept(): Theme {
  try {
    const text = localStorage.getItem(KEPT_AS);
    return text === "light" || text === "dark" ? text : "auto";
  } catch {
    return "auto";
  }
}
