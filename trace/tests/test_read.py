"""What the commands say of a trace."""

import json
import os
import shutil
import subprocess
import unittest

from recording import ROOT, Recording, main


class Memory(Recording):
    def test_programs_of_each_kind(self):
        for how in ("healthy", "leaking", "hoarding", "fragmented"):
            self.record(self.program("shapes"), how)
            ran = self.tenure("memory", "--json", self.trace)
            found = json.loads(ran.stdout)
            self.assertEqual(found["verdict"], how, found["sentence"])
            self.assertEqual(ran.returncode, 0 if how == "healthy" else 1)
            if how == "leaking":
                self.assertIn("leak", " ".join(found["survivors"][0]["stack"]))
            if how == "fragmented":
                self.assertIn("filled", found["pinning"][0]["stack"][0])

    def test_a_short_program_is_not_judged(self):
        self.record("/bin/true")
        ran = self.tenure("memory", self.trace)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("too short to tell", ran.stdout)

    def test_the_kernels_caches(self):
        if not os.access("/proc/slabinfo", os.R_OK):
            self.skipTest("/proc/slabinfo cannot be read")
        program = ("import os,time\nf=[os.open('/proc/self/stat',0) for i in range(10000)]\n"
                   "time.sleep(.3)")
        command = ["/bin/sh", "-c", 'ulimit -n 20000; exec /usr/bin/python3 -c "$0"', program]
        found = json.loads(self.tenure("memory", "--kernel", "--json", "--", *command).stdout)
        names = [c["cache"] for c in found["caches"]]
        self.assertIn("filp", names)
        filp = found["caches"][names.index("filp")]
        self.assertGreaterEqual(filp["active"], 9000)


class Export(Recording):
    def test_collapsed_and_speedscope(self):
        self.record(self.program("everything"))
        lines = self.tenure("export", self.trace, "--collapsed").stdout.splitlines()
        total = sum(int(line.rsplit(" ", 1)[1]) for line in lines)
        self.assertEqual(total, self.stats()["bytes"])
        self.assertTrue(any("main" in line for line in lines))
        document = json.loads(self.tenure("export", self.trace, "--speedscope").stdout)
        profile = document["profiles"][0]
        self.assertEqual(sum(profile["weights"]), total)
        self.assertEqual(len(profile["samples"]), len(profile["weights"]))

    def test_pprof_opens_in_go(self):
        self.record(self.program("everything"))
        path = self.trace + ".pprof"
        self.tenure("export", self.trace, "--pprof", "-o", path)
        go = os.path.join(ROOT, "tools", "go.sh")
        shown = subprocess.run([go, "tool", "pprof", "-top", "-sample_index=alloc_objects", path],
                               capture_output=True, text=True)
        if shown.returncode != 0 and "pprof" in shown.stderr and "no such tool" in shown.stderr:
            self.skipTest("this Go has no pprof")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("main", shown.stdout)


class Diff(Recording):
    def test_a_larger_trace_is_a_finding(self):
        self.record(self.program("ends"), "exit")
        more = self.trace + ".more"
        shutil.copy(self.trace, more)
        os.unlink(self.trace)
        self.record(self.program("ends"), "atexit")
        def diff(expression, before=more, after=self.trace):
            return self.tenure("diff", before, after, "--json", "--fail-on", expression)
        grown = diff("count > 999")
        self.assertEqual(grown.returncode, 1)
        found = json.loads(grown.stdout)
        self.assertEqual(found["after"]["count"] - found["before"]["count"], 1000)
        self.assertEqual(diff("count > 2%").returncode, 0)
        self.assertEqual(diff("count > 2% or new_sites > 0").returncode, 1)
        self.assertEqual(diff("count > 0", self.trace, self.trace).returncode, 0)
        self.assertEqual(diff("words > 0").returncode, 2)


class Command(Recording):
    def test_completions_and_manual(self):
        self.assertIn("record", self.tenure("completions", "bash").stdout)
        self.tenure("man", self.folder.name)
        self.assertTrue(os.path.exists(os.path.join(self.folder.name, "tenure-record.1")))

    def test_each_command_names_the_next(self):
        ran = self.record("/bin/true")
        for _ in range(3):
            words = ran.stderr.strip().splitlines()[-1].split("next: tenure ")[1].split()
            ran = self.tenure(*words)
            self.assertEqual(ran.returncode, 0, ran.stderr)


if __name__ == "__main__":
    main()
