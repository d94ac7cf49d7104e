# SPDX-License-Identifier: Apache-2.0
"""Cache policies in their textbook form, with dictionaries and lists, independent of lib/trace.

usage: policies.py PAIRS >sim_textbook.sh.stdout.exact    PAIRS: k3-trace export of that test's trace
Prints, for each size, the hits of lru fifo clock slru 2q arc s3fifo sieve wtinylfu.
"""
import struct
import sys
from collections import Counter, OrderedDict, deque

TRACE = list(struct.iter_unpack("<ii", open(sys.argv[1], "rb").read()))


def lru(size):
    held, hits = OrderedDict(), 0
    for x in TRACE:
        if x in held:
            hits += 1
            held.move_to_end(x)
            continue
        if len(held) >= size:
            held.popitem(last=False)
        held[x] = 1
    return hits


def fifo(size):
    queue, held, hits = deque(), set(), 0
    for x in TRACE:
        if x in held:
            hits += 1
            continue
        if len(held) >= size:
            held.discard(queue.popleft())
        held.add(x)
        queue.append(x)
    return hits


def clock(size):
    ring, used, hand, hits = [], {}, 0, 0
    for x in TRACE:
        if x in used:
            used[x] = True
            hits += 1
            continue
        if len(ring) < size:
            ring.append(x)
            used[x] = False
            continue
        while used[ring[hand]]:
            used[ring[hand]] = False
            hand = (hand + 1) % size
        del used[ring[hand]]
        ring[hand] = x
        used[x] = False
        hand = (hand + 1) % size
    return hits


def slru(size):
    limit, probation, protected, hits = size * 4 // 5, OrderedDict(), OrderedDict(), 0
    for x in TRACE:
        if x in protected:
            hits += 1
            protected.move_to_end(x)
        elif x in probation:
            hits += 1
            del probation[x]
            protected[x] = 1
            if len(protected) > limit:
                probation[protected.popitem(last=False)[0]] = 1
        else:
            if len(probation) + len(protected) >= size:
                (probation or protected).popitem(last=False)
            probation[x] = 1
    return hits


def two_queues(size):
    in_limit, out_limit = max(1, size // 4), max(1, size // 2)
    a_in, a_out, main, hits = OrderedDict(), OrderedDict(), OrderedDict(), 0
    for x in TRACE:
        if x in main:
            main.move_to_end(x)
            hits += 1
            continue
        if x in a_in:
            hits += 1
            continue
        ghost = a_out.pop(x, None)
        if len(a_in) + len(main) >= size:
            if len(a_in) > in_limit or not main:
                a_out[a_in.popitem(last=False)[0]] = 1
                if len(a_out) > out_limit:
                    a_out.popitem(last=False)
            else:
                main.popitem(last=False)
        (main if ghost else a_in)[x] = 1
    return hits


def arc(size):
    t1, t2, b1, b2 = OrderedDict(), OrderedDict(), OrderedDict(), OrderedDict()
    target, hits = 0, 0

    def replace(in_b2):
        if t1 and (len(t1) > target or (in_b2 and len(t1) == target)):
            b1[t1.popitem(last=False)[0]] = 1
        else:
            b2[t2.popitem(last=False)[0]] = 1

    for x in TRACE:
        if x in t1:
            del t1[x]
            t2[x] = 1
            hits += 1
        elif x in t2:
            t2.move_to_end(x)
            hits += 1
        elif x in b1:
            target = min(size, target + max(len(b2) // len(b1), 1))
            del b1[x]
            replace(False)
            t2[x] = 1
        elif x in b2:
            target = max(0, target - max(len(b1) // len(b2), 1))
            del b2[x]
            replace(True)
            t2[x] = 1
        else:
            known = len(t1) + len(t2) + len(b1) + len(b2)
            if len(t1) + len(b1) == size:
                if len(t1) < size:
                    b1.popitem(last=False)
                    replace(False)
                else:
                    t1.popitem(last=False)
            elif known >= size:
                if known == 2 * size:
                    b2.popitem(last=False)
                replace(False)
            t1[x] = 1
    return hits


def s3fifo(size):
    limit, small, main, ghosts, uses, hits = max(1, size // 10), deque(), deque(), OrderedDict(), {}, 0

    def evict():
        while True:
            if small and (len(small) >= limit or not main):
                x = small.popleft()
                if uses[x]:
                    uses[x] = 0
                    main.append(x)
                    continue
                ghosts[x] = 1
                if len(ghosts) > size:
                    ghosts.popitem(last=False)
            else:
                x = main.popleft()
                if uses[x]:
                    uses[x] -= 1
                    main.append(x)
                    continue
            del uses[x]
            return

    for x in TRACE:
        if x in uses:
            hits += 1
            uses[x] = min(3, uses[x] + 1)
            continue
        if len(uses) >= size:
            evict()
        (main if ghosts.pop(x, None) else small).append(x)
        uses[x] = 0
    return hits


def sieve(size):
    queue, used, hand, hits = [], {}, None, 0  # newest first
    for x in TRACE:
        if x in used:
            used[x] = True
            hits += 1
            continue
        if len(queue) >= size:
            i = len(queue) - 1 if hand is None else queue.index(hand)
            while used[queue[i]]:
                used[queue[i]] = False
                i = i - 1 if i else len(queue) - 1
            hand = queue[i - 1] if i else None
            del used[queue.pop(i)]
        queue.insert(0, x)
        used[x] = False
    return hits


def wtinylfu(size):
    limit = max(1, size // 100)
    protected_limit = (size - limit) * 4 // 5
    window, probation, protected = OrderedDict(), OrderedDict(), OrderedDict()
    count, hits = Counter(), 0
    for n, x in enumerate(TRACE, 1):
        count[x] = min(15, count[x] + 1)
        if x in window:
            hits += 1
            window.move_to_end(x)
        elif x in protected:
            hits += 1
            protected.move_to_end(x)
        elif x in probation:
            hits += 1
            del probation[x]
            protected[x] = 1
            if len(protected) > protected_limit:
                probation[protected.popitem(last=False)[0]] = 1
        if n % (10 * size) == 0:
            for k in count:
                count[k] //= 2
        if x in window or x in probation or x in protected:
            continue
        if len(window) + len(probation) + len(protected) >= size:
            newcomer = next(iter(window)) if len(window) >= limit else None
            resident = next(iter(probation or protected), None)
            if resident is not None and (newcomer is None or count[newcomer] > count[resident]):
                probation.pop(resident, None)
                protected.pop(resident, None)
            else:
                window.popitem(last=False)
        window[x] = 1
        if len(window) > limit:
            probation[window.popitem(last=False)[0]] = 1
    return hits


for slots in (1, 2, 5, 10, 31, 40, 100, 200):
    print(slots, *(policy(slots) for policy in (lru, fifo, clock, slru, two_queues, arc, s3fifo, sieve, wtinylfu)))
