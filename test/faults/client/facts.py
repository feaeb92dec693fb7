"""What clients know of keys: there, gone, or nobody knows yet."""

import threading

from .session import Difference

THERE, GONE, MAYBE = "there", "gone", "maybe"


class Facts:
    """State of each key, with the time of its last change.  A reader asks for the time, takes a
    snapshot, and may then rely on the keys that have not changed since that time."""

    def __init__(self):
        self.lock = threading.Lock()
        self.keys = {}
        self.time = 0

    def now(self):
        with self.lock:
            return self.time

    def put(self, keys, state):
        with self.lock:
            self.time += 1
            for key in keys:
                self.keys[key] = (state, self.time)

    def take(self, wanted, state):
        """Some keys of that state, which are MAYBE from now on: an operation on them begins."""
        with self.lock:
            self.time += 1
            found = []
            for key, (is_now, _) in self.keys.items():
                if len(found) == wanted:
                    break
                if is_now == state:
                    found.append(key)
            for key in found:
                del self.keys[key]      # it goes to the end, so each has its turn
                self.keys[key] = (MAYBE, self.time)
            return found

    def count(self, state):
        with self.lock:
            return sum(is_now == state for is_now, _ in self.keys.values())

    def forget(self, keep):
        """Keys that are gone, but for the newest of them: whoever sees one sees what never was."""
        with self.lock:
            gone = [key for key, (state, _) in self.keys.items() if state == GONE]
            for key in gone[:-keep]:
                del self.keys[key]

    def compare(self, seen, since, what):
        """Seen are all keys that a snapshot has, which was taken after that time."""
        with self.lock:
            never = [key for key in seen if key not in self.keys]
            lost = [k for k, (s, at) in self.keys.items() if s == THERE and at <= since and k not in seen]
            back = [k for k, (s, at) in self.keys.items() if s == GONE and at <= since and k in seen]
        if never or lost or back:
            raise Difference(
                f"{what}: lost {lost[:9]} of {len(lost)}, came back {back[:9]} of {len(back)},"
                f" never there {never[:9]} of {len(never)}"
            )

    def resolve(self, seen):
        """At rest nothing is under way: what nobody knew is as the table says, and stays."""
        with self.lock:
            self.time += 1
            for key, (state, _) in list(self.keys.items()):
                if state == MAYBE:
                    self.keys[key] = (THERE if key in seen else GONE, self.time)
