"""Runs the tests of pyverbs in the directory of the first argument, and writes one JSON line for each to a file."""

import json
import os
import sys
import time
import unittest

directory, results = sys.argv[1:3]
sys.argv[1:] = sys.argv[3:]
sys.path.insert(0, directory)

from args_parser import parser  # noqa: E402 (a module of the tests)

parser.parse_args()


class Results(unittest.TextTestResult):
    """Writes the outcome of each test when the test ends."""

    def startTest(self, test):
        super().startTest(test)
        self.started = time.monotonic()

    def write(self, test, outcome, reason=""):
        seconds = time.monotonic() - getattr(self, "started", time.monotonic())
        line = {"name": test.id(), "outcome": outcome, "reason": reason.strip(), "seconds": seconds}
        with open(results, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def addSuccess(self, test):
        super().addSuccess(test)
        self.write(test, "passed")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.write(test, "skipped", reason)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.write(test, "failed", str(error[1]))

    def addError(self, test, error):
        super().addError(test, error)
        self.write(test, "failed", str(error[1]))

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self.write(test, "failed", str(error[1]))


suite = unittest.defaultTestLoader.discover(os.path.join(directory, "tests"), top_level_dir=directory)
unittest.TextTestRunner(resultclass=Results, verbosity=2).run(suite)
