"""Writes small.trace by spec/trace.md alone: python3 make.py [FOLDER]. small.txt is what it decodes
to."""

import os
import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def signed(value):
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


blocks = []


def block(kind, body, stream=0, first=0, last=0):
    head = struct.pack("<IIIIQBB10x", 0x4B4C4254, len(body), len(body), stream, len(blocks), kind, 0)
    blocks.append((kind, stream, first, last, head + struct.pack("<I", crc32c(head + body)) + body))


def events_of_first_thread():
    body = bytes([61]) + varint(100) + varint(10) + varint(0)
    # a module with build-id ab cd, then main (node 1) and f below it (node 2)
    body += bytes([59]) + varint(0) + varint(0x1000) + varint(0x1000) + varint(0x1000)
    body += varint(2) + b"\xab\xcd" + varint(6) + b"/a/exe"
    body += bytes([58]) + varint(1) + signed(0x1100)
    body += bytes([58]) + varint(1) + signed(0x40)
    # malloc(24) = 0x5000 at 15 in f; timed, 300 ticks, padded
    body += bytes([1 | 0x40]) + varint(5) + signed(0x500) + varint(24) + signed(2) + b"\xac\x82\x00"
    # aligned_alloc(64, 128) = 0x5040 at 17 in main
    body += bytes([5]) + varint(2) + signed(4) + varint(128) + signed(-1) + bytes([6])
    # realloc(0x5000, 100) = 0x6008 from 20 to 23; addresses in bytes, in main
    body += bytes([3 | 0x80]) + varint(3) + varint(3) + signed(-0x40) + signed(0x1008) + varint(100)
    body += signed(0)
    # a mark at 24; a realloc that fails, from 25 to 26
    body += bytes([63]) + varint(1) + varint(4) + b"mark"
    body += bytes([3 | 0x80]) + varint(1) + varint(1) + signed(0) + signed(-0x6008) + varint(1 << 50)
    body += signed(0)
    return body + bytes([62]) + varint(4)


def events_of_second_thread():
    body = bytes([61]) + varint(101) + varint(18) + varint(0)
    # free(0x5040) at 18: between two events of the first; free(0x6008) at 27
    body += bytes([20]) + varint(0) + signed(0x504)
    return body + bytes([20 | 0x80]) + varint(9) + signed(0x6008 - 0x5040)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    block(1, b"pid=100\ntick_shift=4\ntimed_one_in=64\nargument=a\\nb\nargument=back\\\\slash\n")
    block(3, struct.pack("<12Q", 0, 1000, 400, 300, 200, 100, 50, 0, 0, 0, 0, 0))
    block(2, events_of_first_thread(), 1, 10, 30)
    block(2, events_of_second_thread(), 2, 18, 27)
    block(3, struct.pack("<12Q", 40, 1200, 500, 300, 200, 100, 50, 0, 0, 0, 5000, 0))
    head = b"TENURETR" + struct.pack("<I", 1)
    image = head + struct.pack("<I", crc32c(head))
    index = struct.pack("<5Q", 0, 0, 0, 0, len(blocks))
    for kind, stream, first, last, text in blocks:
        index += struct.pack("<QQQII", len(image), first, last, stream, kind)
        image += text
    end = len(image)
    block(4, index)
    image += blocks[-1][4] + struct.pack("<Q", end) + b"TENURETR"
    with open(os.path.join(folder, "small.trace"), "wb") as file:
        file.write(image)


main()
