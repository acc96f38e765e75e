#!/usr/bin/env python3
"""Answers of `webstrata query` with times as 14 digits, as the independent oracle writes them.

  webstrata query STORE < questions.jsonl | digits.py > answers.jsonl

Reads and writes JSON lines. Only the field `captures` changes: 2008-06-01T12:10:00Z becomes 20080601121000. Any other
text in it ends the script with an error.
"""
import json
import re
import sys

TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)Z")


def digits(lines):
    """The lines, each with its captures as 14 digits."""
    for line in lines:
        answer = json.loads(line)
        if "captures" in answer:
            answer["captures"] = ["".join(TIME.fullmatch(time).groups()) for time in answer["captures"]]
        yield json.dumps(answer) + "\n"


if __name__ == "__main__":
    sys.stdout.writelines(digits(sys.stdin))
