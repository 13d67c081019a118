/**
 * TUN9: the machine: ports, files, processes, clock.
 *
 * @module
 */

import type { Area } from "./problem.ts";

/** See the module description. */
export const MACHINE = {
  TUN901: {
    slug: "port-in-use",
    title: "Another process listens there",
    means: "The port or socket is taken; the program did not start.",
    causes: ["It runs already.", "Another program has that port."],
    mend: ["`ss -ltnp` shows who listens; change the flag in the line."],
    see: "operations.md",
  },
  TUN902: {
    slug: "port-forbidden",
    title: "This user may not listen there",
    means:
      "Ports below 1024 need a privilege; sockets need a folder that can " +
      "be written.",
    causes: ["The program does not run as root."],
    mend: [
      "`AmbientCapabilities=CAP_NET_BIND_SERVICE` in the unit, or a higher port.",
    ],
    see: "operations.md",
  },
  TUN903: {
    slug: "address-not-here",
    title: "This machine does not have that address",
    means: "Only own addresses can be listened on.",
    causes: ["A typing error.", "The interface is not up yet."],
    mend: ["`ip address` lists them."],
    see: "operations.md",
  },
  TUN904: {
    slug: "listen-failed",
    title: "A port or socket could not be opened",
    means: "The sentence has the system's words.",
    causes: ["See the sentence."],
    mend: ["Change the flag that the line names."],
    see: "operations.md",
  },
  TUN905: {
    slug: "file-unkept",
    title: "A file that is kept across restarts cannot be written",
    means: "The program works; after a restart it has to learn it again.",
    causes: ["A full disk.", "The owner or mode of the state directory."],
    mend: ["Put right what the line names."],
    see: "operations.md",
  },
  TUN906: {
    slug: "kept-file-unusable",
    title: "A file that was kept across restarts cannot be used",
    means: "The program starts as if it were not there.",
    causes: ["The file is damaged, or of a newer version."],
    mend: ["Nothing; it is written anew."],
    see: "operations.md",
  },
  TUN907: {
    slug: "slip",
    title: "An error in our own code",
    means: "One connection, stream or task was ended; all else goes on. The " +
      "line has a stack.",
    causes: ["A slip in our code."],
    mend: ["`tunnel support-bundle`, and report it."],
    see: "operations.md",
  },
  TUN908: {
    slug: "worker-ended",
    title: "A worker process has ended",
    means: "The connections that it carried are lost; another takes its place.",
    causes: ["The system killed it: out of memory?", "A slip in our code."],
    mend: ["`dmesg | grep -i oom`; see the lines before."],
    see: "operations.md",
  },
  TUN909: {
    slug: "worker-silent",
    title: "A worker process does not answer",
    means: "Others accept in its place until it answers again.",
    causes: ["An overloaded machine.", "A stopped process."],
    mend: ["`top`; see whether it comes back."],
    see: "operations.md",
  },
  TUN910: {
    slug: "worker-back",
    title: "A worker answers again",
    means: "It accepts again.",
    causes: ["The machine has time again."],
    mend: ["Nothing."],
    see: "operations.md",
  },
  TUN911: {
    slug: "parent-ended",
    title: "The parent process has ended",
    means:
      "This worker accepts nobody any more, and ends with what it carries.",
    causes: ["Somebody killed the parent only."],
    mend: ["Start the program again."],
    see: "operations.md",
  },
  TUN912: {
    slug: "no-takeover",
    title: "No other process can take over from this one",
    means: "The program works; an upgrade would drop connections.",
    causes: ["The socket for it cannot be opened."],
    mend: ["Put right what the line names."],
    see: "operations.md",
  },
  TUN913: {
    slug: "upgrade-failed",
    title: "The new process did not take over",
    means: "The old one goes on; nothing is lost.",
    causes: ["The new file or its flags do not work.", "It took too long."],
    mend: ["Start the new one by hand to see what it says."],
    see: "operations.md",
  },
  TUN914: {
    slug: "lines-missing",
    title: "Log lines are missing",
    means: "Nobody read standard error, and no room was left to keep them.",
    causes: ["A full disk of the journal.", "A stopped log collector."],
    mend: ["Look at who reads the log."],
    see: "operations.md",
  },
  TUN915: {
    slug: "few-descriptors",
    title: "The limit of open files is low",
    means: "Each connection takes one or two; dials will fail above it.",
    causes: ["`ulimit -n`, or `LimitNOFILE` of the unit."],
    mend: ["`LimitNOFILE=1048576` in the unit."],
    see: "operations.md",
  },
  TUN916: {
    slug: "clock-wrong",
    title: "The clock is wrong",
    means: "Certificates seem expired or not yet valid.",
    causes: ["No time service.", "A machine that was suspended."],
    mend: ["`timedatectl set-ntp true`."],
    see: "operations.md",
  },
  TUN917: {
    slug: "process-unusable",
    title: "The running process cannot be replaced",
    means: "There is none, or it is not ours to replace.",
    causes: ["It runs elsewhere or as another user."],
    mend: ["Give the same `--state-dir`, and run as its user."],
    see: "operations.md",
  },
  TUN918: {
    slug: "disk-full",
    title: "The disk of the state directory is full",
    means: "Tokens, nodes and certificates cannot be written.",
    causes: ["Logs, or other programs' files."],
    mend: ["Make room: `df -h`, `df -i`, `du -xhd1 /`."],
    see: "doctor.md",
  },
  TUN919: {
    slug: "disk-read-only",
    title: "The file system of the state directory is read-only",
    means: "Nothing can be written there, whoever asks.",
    causes: ["It is mounted so.", "The kernel found errors on the disk."],
    mend: ["See `dmesg`; mount it with `rw`, or name another directory."],
    see: "doctor.md",
  },
  TUN920: {
    slug: "loop-busy",
    title: "The program does not get to its work in time",
    means: "Its event loop was held up: everything that it carries waited.",
    causes: [
      "The machine has too little processor time, or swaps.",
      "The program has too much to do.",
    ],
    mend: [
      "`top`: who uses the processor? `vmstat 1`: is there swapping?",
      "Add a server, or start it with `--workers`.",
    ],
    see: "operations.md",
  },
} as const satisfies Area;
