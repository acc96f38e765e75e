"""Counts values of what the explorer shows, and prints the first that are wrong."""
import collections


class Tally:
    """Values by view, and how many of them are wrong."""

    def __init__(self, show=3):
        # What the values are of, for messages.
        self.show, self.store = show, ""
        self.values, self.wrong = collections.Counter(), collections.Counter()

    def same(self, view, where, shown, expected):
        """Compares two lists of values, in which a value may be there more than once. The order does not count."""
        one, other = collections.Counter(shown), collections.Counter(expected)
        missing, strange = other - one, one - other
        self.values[view] += sum((one | other).values())
        self.count(view, where, max(sum(missing.values()), sum(strange.values())), list(missing), list(strange))

    def pairs(self, view, where, shown, expected):
        """Compares two dictionaries of values."""
        self.same(view, where, shown.items(), expected.items())

    def rows(self, view, where, shown, expected):
        """Compares two lists of values in order."""
        self.same(view, where, enumerate(shown), enumerate(expected))

    def count(self, view, where, number, missing, strange):
        self.wrong[view] += number
        if number and self.wrong[view] - number < self.show:
            print(f"wrong: {view}: {self.store}: {where}", flush=True)
            for name, values in (("expected", missing), ("shown   ", strange)):
                for value in sorted(values, key=str)[:3]:
                    print(f"  {name} {str(value)[:400]}", flush=True)

    def print(self):
        print(f"{'view':36}{'values':>10}{'wrong':>8}")
        for view, number in sorted(self.values.items()):
            print(f"{view:36}{number:>10,}{self.wrong[view]:>8,}")
        print(f"{'all':36}{sum(self.values.values()):>10,}{sum(self.wrong.values()):>8,}")
