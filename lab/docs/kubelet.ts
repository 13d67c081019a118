// deno-lint-ignore-file no-console -- its parent waits for the line.
/**
 * Answers where a kubelet would, by TLS, with no pods.
 *
 * Usage: `deno run --allow-net --allow-read lab/docs/kubelet.ts`, in a folder
 * that has `kubelet.crt` and `kubelet.key`.
 *
 * @module
 */

Deno.serve({
  hostname: "127.0.0.1",
  port: 10_250,
  cert: Deno.readTextFileSync("kubelet.crt"),
  key: Deno.readTextFileSync("kubelet.key"),
  onListen: () => console.log("answering"),
}, () => Response.json({ kind: "PodList", apiVersion: "v1", items: [] }));
