/**
 * The body of an HTTP answer as text, up to a length.
 *
 * @module
 */

/**
 * Reads it all.
 *
 * @param bytesMax What a peer may make us keep; the rest is not read.
 * @returns Nothing if it is longer.
 * @throws As `fetch`, when the connection fails.
 */
export async function responseText(
  response: Response,
  bytesMax: number,
): Promise<string | undefined> {
  const decoder = new TextDecoder();
  let bytes = 0;
  let text = "";
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > bytesMax) return undefined;
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
