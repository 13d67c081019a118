import { assertEquals } from "@std/assert";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import { RecordedSink } from "../../../tests/support/watch/recorded_sink.ts";
import { FileSource } from "./file.ts";

const text = (name: string) =>
  `services:\n- {name: ${name}, ports: [{port: 80}]}\n`;

Deno.test("a ConfigMap that is swapped in a Pod is seen by the watch", async () => {
  const folder = await Deno.makeTempDir();
  const sink = new RecordedSink();
  const path = `${folder}/services.yaml`;
  const put = async (version: string, name: string) => {
    await Deno.mkdir(`${folder}/${version}`);
    await Deno.writeTextFile(`${folder}/${version}/services.yaml`, text(name));
    await Deno.symlink(version, `${folder}/..tmp`);
    await Deno.rename(`${folder}/..tmp`, `${folder}/..data`);
  };
  await put("..1", "web");
  await Deno.symlink("..data/services.yaml", path);
  const source = new FileSource({ path, timers: systemTimers });
  try {
    for (
      const [version, name] of [["", "web"], ["..2", "db"], ["..3", "dns"]]
    ) {
      const synced = sink.next(/synced/);
      if (version === "") source.start(sink);
      else await put(version!, name!);
      await synced;
      assertEquals([...sink.entries.services.keys()], [`default/${name}`]);
    }
  } finally {
    await source.stop();
    await Deno.remove(folder, { recursive: true });
  }
});
