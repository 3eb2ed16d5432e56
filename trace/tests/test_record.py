"""What is recorded of programs that use every entry point, many threads, and every way to end."""

import glob
import os
import shutil
import signal
import stat
import subprocess
import unittest

from recording import PROGRAMS, RECORDER, Recording, main


class EntryPoints(Recording):
    def test_every_function_is_one_event(self):
        ran = self.record(self.program("everything"))
        self.assertEqual(ran.returncode, 7, ran.stderr)
        kinds = self.stats()["kinds"]
        wanted = {"malloc": 102, "calloc": 102, "realloc": 206, "reallocarray": 104,
                  "aligned_alloc": 105,
                  "posix_memalign": 106, "memalign": 107, "valloc": 108, "pvalloc": 109, "mmap": 110,
                  "munmap": 110, "free": sum(range(101, 110))}
        self.assertEqual(kinds, wanted)

    def test_marks_and_text_are_escaped(self):
        self.record(self.program("everything"))
        shown = self.tenure("stats", self.trace).stdout
        self.assertEqual([m["name"] for m in self.stats()["marks"]], ["request\x1b[31m"])
        self.assertNotIn("\x1b", shown)

    def test_new_and_delete(self):
        ran = self.record(self.program("objects"))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        kinds = self.stats()["kinds"]
        for kind, count in {"new[]": 52, "new nothrow": 53, "new[] nothrow": 54, "new aligned": 55,
                            "new[] aligned": 56, "delete nothrow": 53, "delete[]": 52}.items():
            self.assertEqual(kinds[kind], count, kind)
        self.assertEqual(kinds["new"], 51 + 57 + 1)

    def test_stacks_name_the_caller(self):
        self.record(self.program("everything"))
        site = self.stats()["top_by_bytes"][0]
        self.assertIn("main", " ".join(site["stack"]))

    def test_counts_equal_valgrinds(self):
        if shutil.which("valgrind") is None:
            self.skipTest("no valgrind")
        for command in ([self.program("ends"), "exit"], ["/bin/ls", "/"], ["/usr/bin/sort", __file__],
                        ["/usr/bin/find", "/etc/apt"]):
            counted = subprocess.run(["valgrind", *command], capture_output=True, text=True).stderr
            line = next(l for l in counted.splitlines() if "total heap usage" in l).replace(",", "")
            wanted = int(line.split("usage:")[1].split()[0])
            self.record(*command)
            self.assertEqual(self.stats()["allocations"], wanted, command)


class Threads(Recording):
    def test_all_events_of_all_threads(self):
        ran = self.record(self.program("threads"), "32", "8")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        found = self.stats()
        self.assertGreaterEqual(found["allocations"], int(ran.stdout))
        self.assertEqual(found["threads"], 1 + 32 * 8)
        self.assertEqual((found["lost"], found["missed"], found["unknown_frees"]), (0, 0, 0))
        self.assertGreater(found["cross_thread_frees"], 10000)


class Ends(Recording):
    def end(self, how, **more):
        return self.record(self.program("ends"), how, **more)

    def test_a_signal_is_the_programs_own(self):
        for how, number in (("kill", signal.SIGKILL), ("abort", signal.SIGABRT),
                            ("fault", signal.SIGSEGV)):
            ran = self.end(how)
            self.assertEqual(ran.returncode, -number, how)
            self.assertGreaterEqual(self.stats()["kinds"]["malloc"], 100000, how)
            self.assertEqual(self.stats()["end"], "complete", how)

    def test_atexit_and_handlers(self):
        self.end("atexit")
        self.assertEqual(self.stats()["kinds"]["malloc"], 101000)
        self.end("signals")
        self.assertEqual(self.stats()["kinds"]["malloc"], 101000)

    def test_exec_keeps_both_images(self):
        said = self.end("exec").stderr
        self.assertIn(self.trace + ".1: ", said)
        self.assertEqual(self.stats()["kinds"]["malloc"], 100000)
        before = self.stats(self.trace + ".1")
        self.assertEqual(before["kinds"]["malloc"], 100000)
        self.assertIn("another program", before["end"])

    def test_every_file_is_named(self):
        script = f"i=0; while [ $i -lt 9 ]; do i=$((i+1)); done; exec {self.program('ends')} exit"
        said = self.record("/bin/sh", "-c", script).stderr
        self.assertIn("dash, ", said)
        self.assertIn("record-ends, 200,", said)
        self.assertEqual(said.strip().splitlines()[-1], f"next: tenure stats {self.trace}")

    def test_a_child_is_recorded_only_when_wanted(self):
        self.end("fork")
        self.assertEqual(glob.glob(self.trace + ".*"), [])
        self.assertEqual(self.stats()["kinds"]["malloc"], 100000)
        os.unlink(self.trace)
        self.end("fork", options=["--follow-fork"])
        children = glob.glob(self.trace + ".*")
        self.assertEqual(len(children), 1)
        self.assertEqual(self.stats(children[0])["kinds"]["malloc"], 5000)

    def test_vfork_deep_stacks_and_closed_descriptors(self):
        for how, count in (("vfork", 101000), ("deep", 101000), ("closefrom", 200000),
                           ("full", 101000)):
            self.assertEqual(self.end(how).returncode, 0, how)
            self.assertEqual(self.stats()["kinds"]["malloc"], count, how)

    def test_a_full_disk_ends_the_trace_only(self):
        limited = f"ulimit -f 16; exec {self.program('threads')} 16 4"
        ran = self.record("/bin/sh", "-c", limited)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("may not grow", ran.stderr)
        self.assertIn("disk was full", self.stats()["end"])

    def test_output_and_mode(self):
        ran = self.record("/bin/echo", "same words")
        self.assertEqual(ran.stdout, "same words\n")
        self.assertEqual(stat.S_IMODE(os.stat(self.trace).st_mode), 0o600)

    def test_without_the_command(self):
        environment = dict(os.environ, LD_PRELOAD=RECORDER, TENURE_TRACE=self.trace)
        subprocess.run([self.program("ends"), "exit"], env=environment, check=True)
        self.tenure("record", "-o", self.trace + ".other", "--", "/bin/true")  # takes some time
        self.assertEqual(self.stats()["kinds"]["malloc"], 100000)

    def test_another_allocator_below(self):
        library = "/usr/lib/x86_64-linux-gnu/libmimalloc.so.2.0"
        if not os.path.exists(library):
            self.skipTest("no mimalloc")
        ran = self.end("exit", env={"LD_PRELOAD": library})
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(self.stats()["kinds"]["malloc"], 100000)


class Refused(Recording):
    def refused(self, path, words):
        ran = self.record(path)
        self.assertEqual(ran.returncode, 2)
        self.assertIn(words, ran.stderr)
        self.assertFalse(os.path.exists(self.trace))

    def test_what_cannot_be_recorded_is_said(self):
        folder = self.folder.name
        plain = os.path.join(folder, "plain")
        with open(plain, "w", encoding="ascii") as f:
            f.write("text")
        self.refused(plain, "not executable")
        os.chmod(plain, 0o755)
        self.refused(plain, "neither a program nor a script")
        self.refused("/nowhere/at/all", "no such file")
        self.refused("no-such-program-here", "no such program")
        other = os.path.join(folder, "other")
        with open("/bin/true", "rb") as f:
            image = bytearray(f.read())
        image[18] = 183
        with open(other, "wb") as f:
            f.write(image)
        os.chmod(other, 0o755)
        self.refused(other, "another architecture")
        if os.geteuid() == 0:
            setuid = os.path.join(folder, "setuid")
            shutil.copy("/bin/true", setuid)
            os.chown(setuid, 1, 1)
            os.chmod(setuid, 0o4755)
            self.refused(setuid, "setuid")
        static = os.path.join(folder, "static")
        subprocess.run(["cc", "-static", "-x", "c", "-", "-o", static], input="int main(){return 0;}",
                       text=True, check=True)
        self.refused(static, "statically linked")


if __name__ == "__main__":
    assert PROGRAMS
    main()
