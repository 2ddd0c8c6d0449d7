#!/usr/bin/env python3
"""Makes unicode_table.h from a list of Unicode 16.0 code point ranges.

    gen_unicode.py unicode16-classes.txt > unicode_table.h

Each line of the list is `first last class` in hexadecimal; classes are Han (the script), L, Lu, Ll,
Lt, Lm, Lo, M, N and S (white space); # begins a comment. The result is a two-stage table of class
bits for the split pattern: a block number for every 128 code points, and the blocks.
"""
import sys

BLOCK = 128
LIMIT = 0x110000
HAN, UP, LO, L, N, S = 1, 2, 4, 8, 16, 32  # the K3_CH_ bits of pretoken.h


def read_classes(path):
    classes = {}
    with open(path, encoding="ascii") as lines:
        for line in lines:
            fields = line.split("#")[0].split()
            if fields:
                first, last, name = int(fields[0], 16), int(fields[1], 16), fields[2]
                classes.setdefault(name, set()).update(range(first, last + 1))
    return classes


def bits(classes):
    table = bytearray(LIMIT)

    def add(bit, names, without=()):
        for name in names:
            for cp in classes[name]:
                if cp not in without:
                    table[cp] |= bit

    han = classes["Han"]
    add(HAN, ["Han"])
    add(UP, ["Lu", "Lt", "Lm", "Lo", "M"], han)
    add(LO, ["Ll", "Lm", "Lo", "M"], han)
    add(L, ["L"])
    add(N, ["N"])
    add(S, ["S"])
    return table


def rows(values):
    per = 16
    for i in range(0, len(values), per):
        yield "    " + " ".join("%d," % v for v in values[i:i + per])


def main():
    table = bits(read_classes(sys.argv[1]))
    blocks, index = {}, []
    for at in range(0, LIMIT, BLOCK):
        block = bytes(table[at:at + BLOCK])
        index.append(blocks.setdefault(block, len(blocks)))
    assert len(blocks) <= 256
    print("/* unicode_table.h - made by gen_unicode.py; Unicode 16.0. Bits: see pretoken.h. */")
    print("static const unsigned char char_index[%d] = {" % len(index))
    print("\n".join(rows(index)))
    print("};\nstatic const unsigned char char_blocks[%d][%d] = {" % (len(blocks), BLOCK))
    for block in blocks:
        print("{\n" + "\n".join(rows(block)) + "\n},")
    print("};")


if __name__ == "__main__":
    main()
