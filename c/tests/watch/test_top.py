"""tenure-top from outside: what it prints, in all its forms, and how it ends.

    test_top.py TENURE-TOP TARGET LIBRARY [SANITIZER]

TARGET is top_target.c, linked with LIBRARY, which names the mode.
"""

import ctypes.util
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

from prometheus_client.parser import text_string_to_metric_families

TOP, TARGET, LIBRARY = sys.argv[1:4]
SANITIZED = len(sys.argv) > 4
MODE = {"tenure": "release", "tenure-hardened": "hardened", "tenure-debug": "debug"}[LIBRARY]
NOBODY = 65534
HARM = "evil\x1b[2J\"\\\n{}\ufffd\x9b"
HARMLESS = r'evil\x1b[2J"\\x0a{}\xff\xc2\x9b'


class Target:
    """The program that is looked at."""

    def __init__(self, *arguments, live="1", preload=""):
        environment = dict(os.environ, TENURE_LIVE=live, LD_PRELOAD=preload)
        self.process = subprocess.Popen([TARGET, *arguments], env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"ready\n"
        self.pid = str(self.process.pid)
        # Until all of it is in a snapshot.
        time.sleep(0.4 if live else 0)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.communicate()


def top(*arguments, locale="C.UTF-8", **options):
    environment = dict(os.environ, LC_ALL=locale)
    done = subprocess.run([TOP, *arguments], env=environment, capture_output=True, timeout=20,
                          **options)
    return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")


class Printed(unittest.TestCase):
    """One target for all: nothing changes in it."""

    @classmethod
    def setUpClass(cls):
        cls.target = Target()

    @classmethod
    def tearDownClass(cls):
        cls.target.__exit__()

    def print(self, *arguments, **options):
        status, out, err = top(*arguments, self.target.pid, **options)
        self.assertEqual((status, err), (0, ""))
        return out

    def row(self, table, name):
        """A line of the table, by the titles above it. No name in it has a blank."""
        titles = next(line for line in table.splitlines() if line.startswith("NAME")).split()
        line = next(line for line in table.splitlines() if line.startswith(name + " "))
        return dict(zip(titles, line.replace("shared slab", "shared-slab").split()))

    def test_table(self):
        table = self.print("--once")
        self.assertIn(f"process {self.target.pid}  {MODE}", table)
        nodes = self.row(table, "nodes")
        self.assertEqual((nodes["KIND"], nodes["ACTIVE"], nodes["LIVE"]),
                         ("slab", "600", "37.5K" if MODE != "debug" else nodes["LIVE"]))
        self.assertGreaterEqual(int(nodes["OBJSIZE"]), 64)
        self.assertGreaterEqual(int(nodes["TOTAL"]), 600)
        self.assertGreaterEqual(int(nodes["SLABS"]), int(nodes["ACTIVE-SLABS"]))
        self.assertEqual(self.row(table, "sessions")["ACTIVE"], "200")
        self.assertEqual(self.row(table, "sessions")["KIND"], "shared-slab")
        self.assertEqual(self.row(table, "buffers")["ACTIVE"], "1")
        self.assertEqual(self.row(table, "requests")["ACTIVE"], "-")
        self.assertIn("größe", table)

    def test_no_control_characters(self):
        for arguments in (("--once",), ("--once", "--tree"), ("--json",), ("--prometheus",)):
            for locale in ("C.UTF-8", "C"):
                text = self.print(*arguments, locale=locale)
                self.assertEqual(re.findall("[\x00-\x09\x0b-\x1f\x7f-\x9f]", text), [], arguments)
        self.assertIn(HARMLESS, self.print("--once"))
        self.assertIn(r"gr\xc3\xb6\xc3\x9fe", self.print("--once", locale="C"))

    def test_sorted(self):
        def names(key):
            lines = self.print("--once", "-s", key).splitlines()
            first = next(i for i, line in enumerate(lines) if line.startswith("NAME"))
            return [line.split()[0] for line in lines[first + 1:]]

        by_name = names("name")
        self.assertEqual(by_name, sorted(by_name))
        self.assertEqual(names("active")[:2], ["nodes", "sessions"])
        document = json.loads(self.print("--json"))
        for key in ("live", "cached", "committed"):
            rows = sorted(document["allocators"], key=lambda row: row[key + "_bytes"])
            most = [row["name"] for row in rows if row[key + "_bytes"] == rows[-1][key + "_bytes"]]
            self.assertIn(names(key)[0].replace(HARMLESS, HARM), most, key)

    def test_tree(self):
        lines = self.print("--once", "-t", "-s", "name").splitlines()
        at = next(i for i, line in enumerate(lines) if line.startswith("server"))
        shape = [re.sub(r" +scope +\d.*", "", line) for line in lines[at:at + 5]]
        clients = sorted(line[-14:] for line in shape[1:4:2])
        self.assertEqual(clients, ["192.0.2.1:4711", "192.0.2.2:4712"])
        self.assertEqual([line[:-14] for line in shape[1:4:2]], ["├─ connection ", "└─ connection "])
        self.assertEqual(shape[2], r"│  └─ request GET /\x1b]0;title\x07")
        self.assertEqual(shape[4], r"   └─ request GET /\x1b]0;title\x07")
        self.assertEqual(dict(zip(self.titles(lines), lines[at].split()))["EXTERNAL"], "121K")
        self.assertIn("|  `- request", self.print("--once", "-t", locale="C"))

    def titles(self, lines):
        return next(line for line in lines if line.startswith("NAME")).split()

    def test_json(self):
        document = json.loads(self.print("--json"))
        self.assertEqual(document["mode"], MODE)
        self.assertEqual(document["process"]["pid"], int(self.target.pid))
        self.assertEqual(document["left_out_count"], 0)
        self.assertGreater(document["process"]["resident_bytes"], 0)
        rows = document["allocators"]
        by_id = {row["id"]: row for row in rows}
        self.assertEqual(len(by_id), len(rows))
        self.assertIn(HARM, [row["name"] for row in rows])
        self.assertEqual([row["kind"] for row in rows if row["name"] == "documents"], ["heap"])
        request = next(row for row in rows if row["name"] == "request")
        self.assertEqual(request["ident"], "GET /\x1b]0;title\x07")
        self.assertGreaterEqual(request["live_bytes"], 3000)
        connection = by_id[request["parent_id"]]
        self.assertEqual((connection["name"], connection["depth"]), ("connection", 1))
        self.assertEqual(by_id[connection["parent_id"]]["name"], "server")
        for row in rows:
            self.assertLessEqual(row["live_bytes"] + row["cached_bytes"], row["reserved_bytes"], row)
            most = max(row["committed_bytes"], row["cached_bytes"])
            self.assertLessEqual(sum(row["node_bytes"]), most, row)
        sessions = next(row for row in rows if row["name"] == "sessions")
        self.assertEqual(sum(sessions["node_bytes"]) > 0, MODE != "debug")

    def test_prometheus(self):
        text = self.print("--prometheus")
        families = {family.name: family for family in text_string_to_metric_families(text)}
        rows = json.loads(self.print("--json"))["allocators"]
        for name, family in families.items():
            self.assertTrue(name.startswith("tenure_") and family.documentation, name)
            self.assertIn(family.type, ("gauge", "counter"))
            of_process = {"process", "pid"}
            labels = {frozenset(sample.labels) for sample in family.samples}
            self.assertTrue(labels <= {frozenset(of_process), frozenset(of_process | {"allocator"}),
                                       frozenset(of_process | {"kind", "name"})})
            self.assertEqual({sample.labels["pid"] for sample in family.samples}, {self.target.pid})
            self.assertEqual({sample.labels["process"] for sample in family.samples},
                             {os.path.basename(TARGET)[:15]})
            keys = [(sample.name, *sorted(sample.labels.items())) for sample in family.samples]
            self.assertEqual(len(keys), len(set(keys)), "one sample for each set of labels")
        self.assertEqual(text.count("# HELP"), len(families))
        self.assertEqual(text.count("# TYPE"), len(families))
        for figure in ("live_bytes", "committed_bytes", "cached_bytes", "reserved_bytes"):
            samples = families["tenure_" + figure].samples
            self.assertEqual(sum(sample.value for sample in samples), sum(row[figure] for row in rows))
        sample = {(s.labels["kind"], s.labels["name"]): s.value
                  for s in families["tenure_allocators"].samples}
        self.assertEqual((sample["arena", "twin"], sample["scope", "connection"]), (2, 2))
        self.assertEqual(sample["arena", HARMLESS], 1)
        self.assertEqual([s.name for s in families["tenure_resets"].samples][0], "tenure_resets_total")
        self.assertNotIn("192.0.2.1", text)

    def test_json_as_a_tree(self):
        flat = json.loads(self.print("--json"))["allocators"]
        by_id = {row["id"]: row for row in flat}
        seen = []

        def visit(rows, parent, depth):
            committed = 0
            for row in rows:
                seen.append(row["id"])
                self.assertIn(row["parent_id"], (parent, 0) if depth == 0 else (parent,))
                self.assertEqual(row["depth"], depth)
                below = visit(row.pop("below"), row["id"], depth + 1)
                self.assertEqual(row.pop("subtree_committed_bytes"), row["committed_bytes"] + below)
                committed += row["committed_bytes"] + below
                self.assertEqual(set(row), set(by_id[row["id"]]))
            return committed

        for arguments in (("-t", "--json"), ("--json", "--tree")):
            seen.clear()
            document = json.loads(self.print(*arguments))
            total = visit(document["allocators"], 0, 0)
            self.assertEqual(sorted(seen), sorted(by_id))
            self.assertEqual(total, sum(row["committed_bytes"] for row in flat))

    def test_labels(self):
        text = self.print("--prometheus", "--label", "node=a\"b\\c\nd\x1b\u202e", "--label", "zone=")
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self.assertEqual(sample.labels["node"], "a\"b\\c\\x0ad\\x1b\\xe2\\x80\\xae")
                self.assertEqual(sample.labels["zone"], "")
        for wrong in ("node", "=x", "1a=x", "a-b=x", "__a=x", "pid=1", "process=x", "kind=x", "name=x",
                      "a" * 129 + "=x"):
            status, out, err = top("--prometheus", "--label", wrong, self.target.pid)
            self.assertEqual((status, out), (2, ""), wrong)
        status, out, err = top("--prometheus", "--label", "a=1", "--label", "a=2", self.target.pid)
        self.assertEqual((status, out), (2, ""))
        self.assertIn("tenure-top: not a label that can be added: a=2\n", err)
        self.assertEqual(top("--json", "--label", "a=1", self.target.pid)[0], 2)

    @unittest.skipIf(shutil.which("promtool") is None, "promtool is not installed")
    def test_promtool(self):
        """Its own check; it only advises against names of counts that do not end in a base unit."""
        for arguments in ((), ("--label", "node=\"\\")):
            text = self.print("--prometheus", *arguments)
            done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True,
                                  text=True, timeout=20)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_ident_in_the_table(self):
        self.assertIn("connection 192.0.2.1:4711 ", self.print("--once"))
        self.assertIn(r"request GET /\x1b]0;title\x07", self.print("--once"))

    def test_growth(self):
        """Nothing grows here; that it is measured, test_live.cpp shows."""
        titles = self.titles(self.print("--once").splitlines())
        self.assertNotIn("GROWTH/S", titles)
        for arguments in (("-d", "0.3"), ("-s", "growth"), ("-t", "-d", "0.3")):
            table = self.print("--once", *arguments)
            self.assertEqual(self.row(table, "nodes")["GROWTH/S"], "0")

    def test_wrong_usage(self):
        for arguments in (("0",), ("-1",), ("x",), ("1", "2"), ("99999999999",), ("-d", "0", "1"),
                          ("-d", "x", "1"), ("-s", "size", "1"), ("--nonsense", "1"), (" 1",),
                          ("--prometheus", "1", "1")):
            status, out, err = top(*arguments)
            self.assertEqual((status, out), (2, ""), arguments)
            self.assertIn("usage: tenure-top", err)

    def test_help(self):
        status, out, err = top("--help")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("usage: tenure-top", out)
        self.assertLessEqual(max(map(len, out.splitlines())), 100)
        on_screen = out[out.index("Keys:"):out.index("Exit status")].splitlines()
        self.assertLessEqual(max(map(len, on_screen)), 80)
        self.assertLessEqual(len(on_screen), 24)
        self.assertRegex(top("--version")[1], r"^tenure-top \d+\.\d+\.\d+\n$")

    def test_a_full_disk(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([TOP, "--json", self.target.pid], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, b"tenure-top: cannot write: No space left on device\n")


class Several(unittest.TestCase):
    def test_processes(self):
        with Target() as one, Target() as other:
            both = [one.pid, other.pid]
            listed = [line.split() for line in top()[1].splitlines()]
            self.assertEqual(listed[0], ["PID", "NAME", "MODE", "ALLOCATORS", "LIVE", "COMMITTED",
                                         "RESIDENT"])
            found = {words[0]: words[1:] for words in listed[1:]}
            self.assertEqual([found[pid][:2] for pid in both],
                             2 * [[os.path.basename(TARGET)[:15], MODE]])
            rows = json.loads(top("--json", one.pid)[1])["allocators"]
            document = {str(row["pid"]): row for row in json.loads(top("--json")[1])["processes"]}
            self.assertEqual(document[one.pid]["allocator_count"], len(rows))
            self.assertEqual(document[one.pid]["committed_bytes"],
                             sum(row["committed_bytes"] for row in rows))
            single = top("--prometheus", one.pid)[1]
            for arguments in (both, ()):
                text = top("--prometheus", *arguments)[1]
                lines = text.splitlines()
                self.assertEqual(len(lines), len(set(lines)), "no series twice")
                self.assertTrue({line for line in single.splitlines()} <= set(lines) or not arguments)
                families = {family.name: family for family in text_string_to_metric_families(text)}
                self.assertEqual(text.count("# TYPE"), len(families))
                for family in families.values():
                    self.assertTrue({sample.labels["pid"] for sample in family.samples} >= set(both))
        status, out, err = top("--prometheus", one.pid, str(os.getpid()))
        self.assertEqual((status, out), (1, ""))


class Names(unittest.TestCase):
    def test_many(self):
        with Target("300") as target:
            text = top("--prometheus", target.pid)[1]
            rows = json.loads(top("--json", target.pid)[1])["allocators"]
        families = {family.name: family for family in text_string_to_metric_families(text)}
        for family in families.values():
            self.assertLessEqual(len({s.labels.get("name") for s in family.samples}), 201)
        samples = families["tenure_allocators"].samples
        self.assertEqual(sum(s.value for s in samples), len(rows))
        other = [s.value for s in samples if (s.labels["kind"], s.labels["name"]) == ("arena", "other")]
        self.assertEqual(len(other), 1)
        self.assertGreater(other[0], 100)


@unittest.skipIf(SANITIZED, "malloc is the sanitizer's")
class Malloc(unittest.TestCase):
    def told(self, preload):
        with Target(preload=preload) as target:
            return json.loads(top("--json", target.pid)[1])["malloc"]

    def test_of_another_library(self):
        known = {"jemalloc": {"allocated_bytes", "active_bytes", "held_bytes"},
                 "mimalloc": {"held_bytes"}}
        for name, figures in known.items():
            library = ctypes.util.find_library(name)
            with self.subTest(name):
                if library is None:
                    self.skipTest("it is not installed")
                told = self.told(library)
                self.assertEqual(told.pop("name"), name)
                self.assertEqual({key for key, value in told.items() if value}, figures)


class Refused(unittest.TestCase):
    def refused(self, pid, message, **options):
        for form in ("--once", "--json", "--prometheus"):
            status, out, err = top(form, str(pid), **options)
            self.assertEqual((status, out, err), (1, "", f"tenure-top: {message}\n"))

    def test_no_such_process(self):
        ended = subprocess.Popen(["true"])
        ended.wait()
        self.refused(ended.pid, f"there is no process {ended.pid}")

    def test_no_live_view(self):
        with Target(live="") as target:
            self.refused(target.pid, f"process {target.pid} has no live view: "
                         "start it with TENURE_LIVE=1 or call tn_live_start()")

    def test_a_zombie(self):
        with Target() as target:
            os.kill(int(target.pid), signal.SIGKILL)
            time.sleep(0.1)
            self.refused(target.pid, f"process {target.pid} has ended")

    @unittest.skipIf(os.geteuid() != 0, "only root can be another user")
    def test_another_user(self):
        with Target() as target:
            self.refused(target.pid, f"process {target.pid} belongs to another user (uid 0): "
                         "run tenure-top as that user", user=NOBODY)


class Screen:
    """tenure-top on a terminal of its own."""

    def __init__(self, *arguments, rows=24, columns=100, command=()):
        self.master, slave = pty.openpty()
        self.slave = slave
        self.resize(rows, columns)
        self.before = termios.tcgetattr(slave)
        environment = dict(os.environ, LC_ALL="C.UTF-8", TERM="xterm-256color")
        self.process = subprocess.Popen([*command, TOP, *arguments], stdin=slave, stdout=slave,
                                        stderr=subprocess.PIPE, env=environment,
                                        preexec_fn=self.take_terminal)
        self.seen = ""

    def take_terminal(self):
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys):
        os.write(self.master, keys.encode())

    def read(self, seconds):
        if not select.select([self.master], [], [], seconds)[0]:
            return ""
        return os.read(self.master, 65536).decode("utf-8", "replace")

    def wait(self, pattern, seconds=10):
        """Reads on until a whole frame matches; the frame, without styles."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.seen += self.read(0.05)
            for frame in self.seen.split("\033[H")[1:]:
                plain = re.sub(r"\033\[[0-9;?]*[A-Za-z]", "", frame)
                if "q quit" in plain and re.search(pattern, plain, re.S):
                    self.seen = ""
                    return plain
        raise AssertionError(f"no {pattern!r} on the screen: {self.seen!r}")

    def end(self):
        """Exit status, standard error, whether the terminal is as before, and what was written last."""
        last = self.seen
        end = time.monotonic() + 10
        while self.process.poll() is None and time.monotonic() < end:
            last += self.read(0.05)
        last += self.read(0.05)
        status = self.process.wait(1)
        error = self.process.stderr.read().decode()
        self.process.stderr.close()
        restored = termios.tcgetattr(self.slave) == self.before
        os.close(self.master)
        os.close(self.slave)
        return status, error, restored and last.endswith("\033[?25h\033[?1049l"), last


class Interactive(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.target = Target()

    @classmethod
    def tearDownClass(cls):
        cls.target.__exit__()

    def test_keys(self):
        screen = Screen("-d", "0.2", self.target.pid)
        screen.wait(r"committed\*")
        self.assertEqual(termios.tcgetattr(screen.slave)[3] & (termios.ECHO | termios.ICANON), 0)
        for key, name in zip("naolhcg", ("name", "active", "total", "live", "cached", "committed",
                                         "growth")):
            screen.press(key)
            screen.wait(rf"{key} {name}\*")
        screen.press("n")
        self.assertRegex(screen.wait(r"n name\*"), r"(?s)buffers.*connection.*documents.*nodes")
        screen.press("t")
        self.assertRegex(screen.wait("t table"), r"└─ request")
        screen.press("t")
        screen.wait("t tree")
        screen.press("?")
        help = screen.wait("Columns:")
        for line in help.splitlines():
            self.assertLessEqual(len(line), 100)
        self.assertNotIn("Process  resident", help)
        screen.press("t")
        self.assertIn("t tree", screen.wait("Process  resident"), "the key only left the help")
        screen.press("?")
        screen.wait("Columns:")
        screen.press("q")
        self.assertEqual(screen.end()[:3], (0, "", True))

    def test_scrolling_and_size(self):
        screen = Screen("-d", "0.2", "-s", "name", self.target.pid, rows=10)
        screen.wait(r"rows 1 to 4 of \d+")
        screen.press("\033[B")
        screen.wait("rows 2 to 5 of")
        screen.press("\033[6~")
        screen.wait("rows 6 to 9 of")
        screen.press("\033[F")
        screen.wait(r"rows \d+ to (\d+) of \1\b")
        screen.press("\033[H")
        screen.wait("rows 1 to 4 of")
        for rows, columns in ((40, 200), (24, 80), (5, 30), (1, 1), (24, 100)):
            screen.resize(rows, columns)
            end = time.monotonic() + 10
            while time.monotonic() < end:
                screen.seen += screen.read(0.05)
                frames = screen.seen.split("\033[H")[1:-1]
                plain = [re.sub(r"\033\[[0-9;?]*[A-Za-z]", "", frame) for frame in frames[-1:]]
                if plain and max(map(len, plain[0].splitlines())) == columns:
                    break
            else:
                self.fail(f"no line as wide as {columns}: {screen.seen!r}")
            screen.seen = ""
        screen.press("q")
        self.assertEqual(screen.end()[:3], (0, "", True))

    def test_narrow(self):
        """At 80 columns the figures that matter most are there, and no column of dashes."""
        for arguments in ((), ("-t",)):
            screen = Screen("-d", "0.2", *arguments, self.target.pid, columns=80)
            frame = screen.wait(r"GROWTH/S.*\n.*[0-9]").splitlines()
            titles = next(line for line in frame if line.startswith("NAME")).split()
            for title in ("KIND", "LIVE", "COMMITTED", "AGE"):
                self.assertIn(title, titles)
            self.assertNotIn("TOTAL", titles)
            self.assertTrue(all(len(line) <= 80 for line in frame))
            screen.press("?")
            self.assertTrue(all(len(line) <= 80 for line in screen.wait("A dash marks").splitlines()))
            screen.press("q")
            self.assertEqual(screen.end()[:3], (0, "", True))

    def test_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            screen = Screen(self.target.pid)
            screen.wait("NAME")
            if number == signal.SIGINT:
                screen.press("\003")
            else:
                screen.process.send_signal(number)
            self.assertEqual(screen.end()[:3], (-number, "", True))

    def test_stop_and_go_on(self):
        """As a job of a shell, which waits for a line while it is stopped."""
        screen = Screen("-d", "0.2", self.target.pid,
                        command=("sh", "-m", "-c", '"$0" "$@"; read line; fg; exit $?'))
        screen.wait("NAME")
        screen.press("\x1a")
        end = time.monotonic() + 10
        while "\033[?1049l" not in screen.seen and time.monotonic() < end:
            screen.seen += screen.read(0.05)
        self.assertEqual(termios.tcgetattr(screen.slave), screen.before)
        screen.press("\n")
        screen.wait("NAME")
        screen.press("q")
        self.assertEqual(screen.end()[:3], (0, "", True))

    def test_the_target_ends(self):
        with Target() as target:
            screen = Screen("-d", "0.2", target.pid)
            screen.wait("NAME")
            target.process.kill()
            status, error, restored, _ = screen.end()
        self.assertEqual((status, error, restored),
                         (1, f"tenure-top: process {target.pid} has ended\n", True))

    def test_a_terminal_that_can_do_nothing(self):
        master, slave = pty.openpty()
        environment = dict(os.environ, TERM="dumb", NO_COLOR="1")
        done = subprocess.run([TOP, self.target.pid], stdin=slave, stdout=slave, env=environment,
                              timeout=10)
        self.assertEqual(done.returncode, 0)
        self.assertNotIn(b"\033", os.read(master, 65536))
        os.close(master)
        os.close(slave)


if __name__ == "__main__":
    # What is the same in all modes is tried in one.
    unittest.main(argv=sys.argv[:1], defaultTest=None if MODE == "release" else "Printed")
