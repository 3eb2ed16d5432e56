"""A damaged trace gives exactly its prefix of whole blocks, and exit status 3."""

import os
import random
import unittest

from recording import Recording, main


class Damaged(Recording):
    def setUp(self):
        super().setUp()
        self.record(self.program("ends"), "exit")
        with open(self.trace, "rb") as f:
            self.image = f.read()

    def read(self, image):
        path = os.path.join(self.folder.name, "damaged")
        with open(path, "wb") as f:
            f.write(image)
        return self.tenure("stats", "--json", "--symbols", "none", path)

    def test_cut_off(self):
        whole = self.stats()["events"]
        seen = set()
        step = max(1, len(self.image) // 40)
        for size in [*range(0, len(self.image), step), len(self.image) - 1]:
            ran = self.read(self.image[:size])
            self.assertEqual(ran.returncode, 3, size)
            if size >= 16:
                self.assertIn("truncated at ", ran.stderr)
                self.assertIn('"events":', ran.stdout)
            seen.add(ran.stdout.split('"events":')[1].split(",")[0] if ran.stdout else "")
        self.assertIn(str(whole), seen)

    def test_flipped_bits(self):
        source = random.Random(1)
        for _ in range(60):
            image = bytearray(self.image)
            at = source.randrange(len(image))
            image[at] ^= 1 << source.randrange(8)
            self.assertEqual(self.read(bytes(image)).returncode, 3, at)

    def test_bytes_after_the_end(self):
        self.assertEqual(self.read(self.image + b"x").returncode, 3)

    def test_not_a_trace(self):
        self.assertEqual(self.read(b"").returncode, 3)
        self.assertEqual(self.read(b"some text that is longer than a header").returncode, 3)
        self.assertEqual(self.tenure("stats", self.trace + "-none").returncode, 2)


if __name__ == "__main__":
    main()
