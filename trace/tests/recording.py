"""Runs programs under the recorder for the tests: `python3 test_X.py RECORDER PROGRAMS`. The command
comes from `cargo build` in cli/, into build/cargo or where CARGO_TARGET_DIR says."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "build", "cargo"))
TENURE = os.path.join(TARGET, "debug", "tenure")
RECORDER, PROGRAMS = (os.path.abspath(p) for p in sys.argv[1:3])


class Recording(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.trace = os.path.join(self.folder.name, "trace")

    def tearDown(self):
        self.folder.cleanup()

    def program(self, name):
        return os.path.join(PROGRAMS, "record-" + name)

    def tenure(self, *arguments, **options):
        environment = dict(os.environ, TENURE_RECORDER=RECORDER, **options.pop("env", {}))
        return subprocess.run([TENURE, *arguments], env=environment, capture_output=True, text=True,
                              timeout=120, **options)

    def record(self, *command, options=(), **more):
        return self.tenure("record", "-o", self.trace, *options, "--", *command, **more)

    def stats(self, path=None, status=0):
        ran = self.tenure("stats", "--json", path or self.trace)
        self.assertEqual(ran.returncode, status, ran.stderr)
        return json.loads(ran.stdout)


def main():
    subprocess.run(["cargo", "build", "--quiet", "--locked"], cwd=os.path.join(ROOT, "cli"), check=True,
                   env=dict(os.environ, CARGO_TARGET_DIR=TARGET))
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=1)
