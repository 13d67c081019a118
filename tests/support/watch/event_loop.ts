/**
 * Turns of the event loop, for tests that wait for what it has to bring.
 *
 * @module
 */

/** The next turn: promises alone would starve sockets. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

/** As many turns as it takes until `isSo`. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await nextTurn();
}

/** Whether `isSo` comes true within some turns. */
export async function soon(isSo: () => boolean): Promise<boolean> {
  for (let turn = 0; turn < 20; turn++) {
    if (isSo()) return true;
    await nextTurn();
  }
  return isSo();
}

/** Real time, for programs that measure what happens in it. */
export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
